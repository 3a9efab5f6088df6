"""LISTEN and NOTIFY: every process of a service receives the notices that one of them sends after a commit.

When a transaction that notifies commits, PostgreSQL takes one lock for the whole server, and holds it until a
synchronous standby has answered. So a notice is not sent in the transaction that it is about. A separate statement
changes nothing, waits for no standby, and so holds the lock only briefly. One such statement sends several notices.

A process that is killed between a commit and its notice does not send the notice. So listeners also poll.
"""

import asyncio
import contextlib
import itertools
import socket
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from hashlib import sha256
from typing import Any, LiteralString

import structlog
from psycopg import AsyncConnection

from holdfast.kit.compat.task_ending import end_tasks
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE, Problem
from holdfast.kit.environment.logs import first_line
from holdfast.kit.postgres.connection_pool import RETRY_SECONDS

POSTGRES_CHANNEL: LiteralString = "holdfast"
"""The only channel of ours in PostgreSQL. A notification has the name of one of our channels, a space, and payloads,
one a line.
"""

POLL_SECONDS = 5.0
"""Seconds until a loop looks for work without a notice. A notice is lost when its connection breaks."""

PAYLOAD_SEPARATOR = "\n"
"""The separator of the payloads of a notification."""

SEND_INTERVAL_SECONDS = 0.005
"""Seconds between two statements of a process. The notices in between share the second statement."""

MAX_NOTICE_BYTES = 7999
"""The maximum size of a notification in PostgreSQL, in bytes."""

CLOSE_TIMEOUT_SECONDS = 2.0
"""Seconds that an ending process still tries to send its notices."""

NOTIFICATION: LiteralString = (
    f"select pg_notify('{POSTGRES_CHANNEL}', notice) from unnest(%(notices)s::text[]) as notice"
)

Notice = tuple[str, str]
"""A channel, in ASCII letters, and a payload of one line."""

Send = Callable[[Sequence[str]], Awaitable[object]]

MACHINE = sha256(socket.gethostname().encode()).hexdigest()[:8]
"""An identifier of this machine."""

log = structlog.get_logger()


def listener_name(service: str, machine: str = MACHINE) -> str:
    """The name of a process's listening session, which shows other processes on which machine it runs."""
    return f"{service} {machine} listener"


def listeners(service: str) -> dict[str, str]:
    """The parameters of `LISTENERS`."""
    return {"listeners": listener_name(service, "_" * len(MACHINE))}


LISTENERS: LiteralString = """
    select count(*), count(distinct (application_name, client_addr)) from pg_stat_activity
     where datname = current_database() and application_name like %(listeners)s
"""
"""Counts the processes of a service that listen, and their machines. Machines with equal names differ by address."""


class Receiver:
    """The connection on which a process receives notices. It reconnects whenever the connection is lost.

    on_lost             called whenever the connection is lost
    other_channels      channels of PostgreSQL on which libraries notify, with payloads of theirs
    is_unreachable      whether the last attempt to reach the database failed
    connection_class    the class of the connection, as pools have it
    """

    connection_class: type[AsyncConnection[Any]] = AsyncConnection

    def __init__(
        self,
        url: str,
        name: str,
        options: dict[str, Any],
        on_lost: Callable[[], object],
        other_channels: Sequence[LiteralString] = (),
    ) -> None:
        self._other_channels = other_channels
        self._url = url
        self._name = name
        self._options = options
        self._on_lost = on_lost
        self._listeners: dict[str, list[Callable[[str], None]]] = {}
        self.is_unreachable = False
        self._receiving: asyncio.Task[None] | None = None

    def open(self) -> None:
        self._receiving = asyncio.create_task(self._receive(), name=self._name)

    async def close(self) -> None:
        if self._receiving:
            await end_tasks([self._receiving])

    @contextlib.contextmanager
    def listen(self, channel: str, listener: Callable[[str], None]) -> Generator[None]:
        """Call `listener(payload)` for every notice on a channel while the block lasts.

        `listener("")` is also called after each (re)connection, since notices may have been missed before it.
        """
        self._listeners.setdefault(channel, []).append(listener)
        try:
            yield
        finally:
            self._listeners[channel].remove(listener)

    def deliver(self, channel: str, payload: str) -> None:
        """Call the listeners of a channel in this process."""
        for listener in tuple(self._listeners.get(channel, ())):
            try:
                listener(payload)
            except Exception as error:
                log.error("a listener failed", channel=channel, exc_info=error)

    async def _receive(self) -> None:
        while True:
            try:
                async with await self.connection_class.connect(
                    self._url, autocommit=True, application_name=self._name, **self._options
                ) as connection:
                    await self._receive_from(connection)
            except Exception as error:
                if not self.is_unreachable:
                    log.warning("the database is away; trying until it is back", error=first_line(error))
                self.is_unreachable = True
                await asyncio.sleep(RETRY_SECONDS)

    async def _receive_from(self, connection: AsyncConnection[Any]) -> None:
        """Deliver notices. Returns when the connection is lost; raises if it did not work from the start."""
        for channel in (POSTGRES_CHANNEL, *self._other_channels):
            await connection.execute(f"listen {channel}")
        if self.is_unreachable:
            log.warning("the database is back")
        self.is_unreachable = False
        for channel in self._listeners:
            self.deliver(channel, "")
        try:
            async for notification in connection.notifies():
                if notification.channel != POSTGRES_CHANNEL:
                    self.deliver(notification.channel, notification.payload)
                    continue
                channel, _, payloads = notification.payload.partition(" ")
                for payload in payloads.split(PAYLOAD_SEPARATOR):
                    self.deliver(channel, payload)
        except Exception as error:
            log.warning("listener lost its connection", error=first_line(error))
            self._on_lost()


async def wait_for_notice(event: asyncio.Event, seconds: float) -> None:
    """Wait until a listener has set the event, at most `seconds`."""
    # Not `asyncio.wait_for`: in Python 3.11 it can lose a cancellation that arrives at the moment in which it ends.
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


class Notices:
    """The waiting notices of this process.

    send    sends texts to every process, in one statement
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: dict[Notice, None] = {}
        self._sending: asyncio.Task[None] | None = None

    def add(self, notices: Iterable[Notice]) -> None:
        """Send notices soon. Equal notices that wait together are sent once."""
        self._waiting.update(dict.fromkeys(notices))
        if self._waiting and (self._sending is None or self._sending.done()):
            self._sending = asyncio.create_task(self._work(), name="notices")

    async def flush(self, seconds: float = CLOSE_TIMEOUT_SECONDS) -> None:
        """Wait until all notices are sent, at most `seconds`."""
        if self._sending:
            await asyncio.wait([self._sending], timeout=seconds)

    async def close(self) -> None:
        """Send the waiting notices, for at most `CLOSE_TIMEOUT_SECONDS`."""
        await self.flush()
        if self._sending:
            await end_tasks([self._sending])

    async def _work(self) -> None:
        while self._waiting:
            texts = merge_notices(self._waiting)
            self._waiting = {}
            try:
                await self._send(texts)
            except Exception as error:
                # The database logs when it is unreachable.
                if not (isinstance(error, Problem) and error.type is SERVICE_UNAVAILABLE):
                    log.error("notices were not sent; others find the changes by their polls", error=first_line(error))
            await asyncio.sleep(SEND_INTERVAL_SECONDS)


def merge_notices(notices: Iterable[Notice]) -> list[str]:
    """The notices as texts: the payloads of one channel together, in their order, one a line."""
    texts: list[str] = []
    for channel, group in itertools.groupby(sorted(notices, key=_channel), key=_channel):
        payloads: list[str] = []
        bytes_left = max_bytes = MAX_NOTICE_BYTES - len(channel)
        for _, payload in group:
            size = len(payload.encode()) + 1
            if payloads and size > bytes_left:
                texts.append(f"{channel} {PAYLOAD_SEPARATOR.join(payloads)}")
                payloads, bytes_left = [], max_bytes
            payloads.append(payload)
            bytes_left -= size
        texts.append(f"{channel} {PAYLOAD_SEPARATOR.join(payloads)}")
    return texts


def _channel(notice: Notice) -> str:
    return notice[0]
