"""Webhooks: events signed and sent to those who listen, again and again with growing pauses until they are taken."""

import asyncio
import contextlib
import hmac
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import httpx2

from holdfast.events.payments.demo.store import Thing
from holdfast.events.payments.demo.world import World, moment, public

AT_ONCE = 16
ANSWER_SECONDS = 10
LONGEST_PAUSE = 3600
GIVEN_UP = 3 * 24 * 3600
"""Seconds after which an event is sent no more."""

WANTED = ("checkout.session.*", "charge.refunded", "refund.*", "account.updated", "v2.*")

_TABLES = """
create table if not exists deliveries (
    id integer primary key autoincrement,
    event text not null,
    endpoint integer not null,
    made real not null,
    due real not null,
    attempts integer not null default 0,
    waits integer not null default 1
);
create index if not exists deliveries_waiting on deliveries (due) where waits = 1;
"""


@dataclass(frozen=True)
class Endpoint:
    """Somebody who listens.

    secret    what its webhooks are signed with
    events    the types of events that it gets; `*` stands for any characters
    """

    url: str
    secret: str
    events: Sequence[str] = WANTED

    def wants(self, type: str) -> bool:
        return any(fnmatchcase(type, each.replace("[", "[[]")) for each in self.events)


class Webhooks:
    """Sends events. What follows is for tests; without it, each event is sent once, and again until it is taken.

    hold           nothing is sent as long as this is true
    copies         how many times each event is sent
    newest_first   whether events that wait are sent in the opposite order, one after the other
    delay          seconds that events wait before they are sent
    dropped        the types of events that are not sent at all
    first_pause    seconds until an event that was not taken is sent again; each pause is twice as long as the last
    """

    def __init__(self, world: World, endpoints: Iterable[Endpoint] = ()) -> None:
        self._world = world
        self._db = world.store.db
        self._db.executescript(_TABLES)
        self.endpoints: list[Endpoint] = list(endpoints)
        self.copies = 1
        self.newest_first = False
        self.delay = 0.0
        self.dropped: set[str] = set()
        self.first_pause = 1.0
        self._held = False
        self._changed = asyncio.Event()
        self._sending: set[int] = set()
        world.on_event.append(self._plan)
        world.clock.on_move.append(self.wake)

    @property
    def hold(self) -> bool:
        return self._held

    @hold.setter
    def hold(self, held: bool) -> None:
        self._held = held
        self.wake()

    def wake(self) -> None:
        """Look again at what is to be sent."""
        self._changed.set()

    def send_again(self, event_id: str) -> None:
        """Send an event once more to all who want its type."""
        event = self._event(event_id)
        self._enter(event, 1, self._world.clock.time())
        self.wake()

    def waiting(self) -> int:
        """How many deliveries are not taken yet."""
        (count,) = self._db.execute("select count(*) from deliveries where waits = 1").fetchone()
        return count

    def on_their_way(self) -> int:
        """How many deliveries were sent and are not answered yet."""
        return len(self._sending)

    async def run(self) -> None:
        """Send what is to be sent, until it is cancelled."""
        async with (
            httpx2.AsyncClient(timeout=ANSWER_SECONDS, trust_env=False) as client,
            asyncio.TaskGroup() as group,
        ):
            while True:
                self._changed.clear()
                for delivery in self._due():
                    self._sending.add(delivery)
                    group.create_task(self._send(client, delivery))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._pause()):
                        await self._changed.wait()

    def _plan(self, event: Thing) -> None:
        if event["type"] not in self.dropped:
            self._enter(event, self.copies, self._world.clock.time() + self.delay)
            self.wake()

    def _enter(self, event: Thing, copies: int, due: float) -> None:
        now = self._world.clock.time()
        self._db.executemany(
            "insert into deliveries (event, endpoint, made, due) values (?, ?, ?, ?)",
            [
                (event["id"], number, now, due)
                for number, endpoint in enumerate(self.endpoints)
                if endpoint.wants(event["type"])
                for _ in range(copies)
            ],
        )

    def _event(self, id: str) -> Thing:
        found = self._world.store.find("event", id) or self._world.store.find("v2.core.event", id)
        assert found, f"there is no event {id}"
        return found

    def _due(self) -> list[int]:
        """The deliveries to begin with now."""
        room = (1 if self.newest_first else AT_ONCE) - len(self._sending)
        if self._held or room < 1:
            return []
        order = "id desc" if self.newest_first else "due, id"
        rows = self._db.execute(
            f"select id from deliveries where waits = 1 and due <= ? order by {order} limit ?",
            (self._world.clock.time(), room + len(self._sending)),
        )
        return [id for (id,) in rows if id not in self._sending][:room]

    def _pause(self) -> float | None:
        """Seconds until something is due; None if only a change can bring something."""
        full = len(self._sending) >= (1 if self.newest_first else AT_ONCE)
        rows = self._db.execute("select id, due from deliveries where waits = 1 order by due limit ?", (AT_ONCE + 1,))
        next = [due for id, due in rows if id not in self._sending]
        if self._held or full or not next:
            return None
        return max(0.0, next[0] - self._world.clock.time())

    async def _send(self, client: httpx2.AsyncClient, delivery: int) -> None:
        row: tuple[str, int, float, int] = self._db.execute(
            "select event, endpoint, made, attempts from deliveries where id = ?", (delivery,)
        ).fetchone()
        event_id, number, made, attempts = row
        try:
            taken = number >= len(self.endpoints) or await self._taken(client, self.endpoints[number], event_id)
        finally:
            self._sending.discard(delivery)
            self.wake()
        now = self._world.clock.time()
        due = now + min(self.first_pause * 2**attempts, LONGEST_PAUSE)
        waits = not taken and now - made < GIVEN_UP
        self._db.execute(
            "update deliveries set waits = ?, due = ?, attempts = attempts + 1 where id = ?", (waits, due, delivery)
        )

    async def _taken(self, client: httpx2.AsyncClient, endpoint: Endpoint, event_id: str) -> bool:
        event = self._event(event_id)
        if event["object"] == "v2.core.event":
            event = {**event, "created": moment(event["created"])}
        body = json.dumps(public(event), indent=2)
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "Stripe-Signature": signature(body, endpoint.secret),
            "User-Agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
        }
        try:
            answer = await client.post(endpoint.url, content=body.encode(), headers=headers)
        except httpx2.HTTPError:
            return False
        return answer.is_success


def signature(body: str, secret: str, at: int | None = None) -> str:
    """The header that proves who sent a webhook, and when."""
    at = int(time.time()) if at is None else at
    return f"t={at},v1={hmac.digest(secret.encode(), f'{at}.{body}'.encode(), 'sha256').hex()}"
