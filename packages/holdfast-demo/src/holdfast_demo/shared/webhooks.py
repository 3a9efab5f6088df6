"""Webhooks: messages that are sent to subscribers, and sent again after pauses until they are accepted."""

import asyncio
import contextlib
from abc import ABC, abstractmethod

import httpx2

from holdfast_demo.shared.store import Clock, SQLiteStore

MAX_CONCURRENT_DELIVERIES = 16

_TABLES = """
create table if not exists deliveries (
    id integer primary key autoincrement,
    {columns},
    due real not null,
    attempts integer not null default 0,
    waits integer not null default 1
);
create index if not exists deliveries_waiting on deliveries (due) where waits = 1;
"""


class WebhookSender(ABC):
    """Sends the waiting rows of the table `deliveries`, which has the columns of the double too. For tests:

    hold           nothing is sent while this is true
    newest_first   whether waiting messages are sent in the opposite order, one after the other
    """

    def __init__(self, store: SQLiteStore, clock: Clock, columns: str) -> None:
        self._db = store.db
        self._db.executescript(_TABLES.format(columns=columns))
        self._clock = clock
        self.newest_first = False
        self._is_held = False
        self._change_signal = asyncio.Event()
        self._sending: set[int] = set()
        clock.on_move.append(self.wake)

    @property
    def hold(self) -> bool:
        return self._is_held

    @hold.setter
    def hold(self, is_held: bool) -> None:
        self._is_held = is_held
        self.wake()

    def wake(self) -> None:
        """Check again which deliveries are due."""
        self._change_signal.set()

    def waiting(self) -> int:
        """How many deliveries are not accepted yet."""
        (count,) = self._db.execute("select count(*) from deliveries where waits = 1").fetchone()
        return count

    def on_their_way(self) -> int:
        """How many deliveries were sent and are not answered yet."""
        return len(self._sending)

    async def run(self) -> None:
        """Send due deliveries until the task is cancelled."""
        async with self._client() as client, asyncio.TaskGroup() as group:
            while True:
                self._change_signal.clear()
                for delivery in self._due():
                    self._sending.add(delivery)
                    group.create_task(self._send(client, delivery))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._pause()):
                        await self._change_signal.wait()

    @abstractmethod
    def _client(self) -> httpx2.AsyncClient:
        """The client that sends messages."""

    @abstractmethod
    async def _attempt(self, client: httpx2.AsyncClient, delivery: int) -> float | None:
        """Send a delivery. Returns the seconds until it is sent again; None if it is finished. An error ends `run`."""

    def _due(self) -> list[int]:
        """The deliveries to start now."""
        room = self._free_slots()
        if self._is_held or room < 1:
            return []
        order = "id desc" if self.newest_first else "due, id"
        rows = self._db.execute(
            f"select id from deliveries where waits = 1 and due <= ? order by {order} limit ?",
            (self._clock.time(), room + len(self._sending)),
        )
        return [id for (id,) in rows if id not in self._sending][:room]

    def _pause(self) -> float | None:
        """The seconds until the next delivery is due; None if only a change can make one due."""
        rows = self._db.execute(
            "select id, due from deliveries where waits = 1 order by due limit ?", (MAX_CONCURRENT_DELIVERIES + 1,)
        )
        next = [due for id, due in rows if id not in self._sending]
        if self._is_held or self._free_slots() < 1 or not next:
            return None
        return max(0.0, next[0] - self._clock.time())

    def _free_slots(self) -> int:
        """How many deliveries can start now."""
        return (1 if self.newest_first else MAX_CONCURRENT_DELIVERIES) - len(self._sending)

    async def _send(self, client: httpx2.AsyncClient, delivery: int) -> None:
        try:
            pause = await self._attempt(client, delivery)
        finally:
            self._sending.discard(delivery)
            self.wake()
        self._db.execute(
            "update deliveries set waits = ?, due = ?, attempts = attempts + 1 where id = ?",
            (pause is not None, self._clock.time() + (pause or 0), delivery),
        )
