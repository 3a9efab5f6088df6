"""Notices: what a process tells all processes after its commits, a moment's notices by one small statement.

PostgreSQL takes one lock for the whole server when a transaction that notifies commits, and keeps it until a
synchronous standby has answered. So a notice does not belong into the transaction that it is about. A statement of its
own changes nothing, waits for no standby, and so keeps the lock for a moment only.

A process that is killed between a commit and its notice tells nobody. So whoever listens also looks now and then.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import LiteralString

import structlog

from holdfast.kit.ending import end
from holdfast.kit.logs import first_line
from holdfast.kit.notifications import CHANNEL, NEXT
from holdfast.kit.problems import SERVICE_UNAVAILABLE, Problem

MOMENT_SECONDS = 0.005
"""Seconds between two statements of a process. What is to be told meanwhile shares the second."""

MOST_BYTES = 7999
"""PostgreSQL refuses a longer notice."""

CLOSE_SECONDS = 2.0
"""Seconds that a process which ends still tries to send its notices."""

SEND: LiteralString = f"select pg_notify('{CHANNEL}', notice) from unnest(%(notices)s::text[]) as notice"

Notice = tuple[str, str]
"""A channel of ours, of ASCII letters, and a payload, which has one line."""

Send = Callable[[Sequence[str]], Awaitable[object]]

log = structlog.get_logger()


class Notices:
    """The notices of this process that wait to be sent.

    send    sends some texts to every process, by one statement
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: dict[Notice, None] = {}
        self._sending: asyncio.Task[None] | None = None

    def add(self, notices: Iterable[Notice]) -> None:
        """Send notices soon. Equal ones that wait together are sent once."""
        self._waiting.update(dict.fromkeys(notices))
        if self._waiting and (self._sending is None or self._sending.done()):
            self._sending = asyncio.create_task(self._work(), name="notices")

    async def sent(self, seconds: float = CLOSE_SECONDS) -> None:
        """Wait until none is left, at most so long."""
        if self._sending:
            await asyncio.wait([self._sending], timeout=seconds)

    async def close(self) -> None:
        """Send what waits, if that is soon done."""
        await self.sent()
        if self._sending:
            await end([self._sending])

    async def _work(self) -> None:
        while self._waiting:
            texts = merged(self._waiting)
            self._waiting = {}
            try:
                await self._send(texts)
            except Exception as error:
                # The database logs when it is away.
                if not (isinstance(error, Problem) and error.type is SERVICE_UNAVAILABLE):
                    log.error("notices were not sent; others find the changes on patrol", error=first_line(error))
            await asyncio.sleep(MOMENT_SECONDS)


def merged(notices: Iterable[Notice]) -> list[str]:
    """The texts that say some notices: the payloads of one channel together, in their order, a line each."""
    texts: list[str] = []
    for channel, group in itertools.groupby(sorted(notices, key=_channel), key=_channel):
        payloads: list[str] = []
        room = most = MOST_BYTES - len(channel)
        for _, payload in group:
            size = len(payload.encode()) + 1
            if payloads and size > room:
                texts.append(f"{channel} {NEXT.join(payloads)}")
                payloads, room = [], most
            payloads.append(payload)
            room -= size
        texts.append(f"{channel} {NEXT.join(payloads)}")
    return texts


def _channel(notice: Notice) -> str:
    return notice[0]
