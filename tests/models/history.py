"""Histories: what clients of two processes asked and were told, while processes and the database fail.

A request whose connection broke, or that was not answered in time, goes to another process. Until a process answers
it, its outcome is unknown: it may have been done, and may still be done. A request that was refused under overload was
not begun: it is sent again after the seconds of Retry-After, or given up, and then nothing of it may be there.
"""

import asyncio
import contextlib
import itertools
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

import httpx2
import psycopg

from holdfast.kit.security.http_client import HttpClient
from tests.helpers.events_service import eventually
from tests.helpers.processes import Process
from tests.helpers.serving import PLAIN
from tests.models.crowd_client import AnyClient
from tests.models.machine import SEED, SOAK

CLIENTS = 12
TIMEOUT_SECONDS = 0.5
"""Seconds after which an answer is no longer awaited."""
STOPPED = 0.8
"""Seconds for which a process is stopped: it handles requests after their clients have given up."""
BETWEEN = 60
"""Answers between two faults."""
RETRY_SECONDS = 0.5
"""How long a client at least waits that was refused."""
NOT_BEGUN = ("This request was not begun.", "Too much of your own work waits already.")
"""Why requests are refused under overload: before they are read, and by how much of one shop waits."""
FAULTS = ("stop", "crash", "kill") * (60 if SOAK else 2)


@dataclass
class SentRequest:
    """A request, when it was sent first, and when and what was answered. What was not answered is unknown.

    lost        whether it was sent again because the first answer was lost
    given_up    whether all that came of it was a refusal before it was begun
    """

    request: Any
    sent: float
    answered: float = inf
    answer: Any = None
    lost: bool = False
    given_up: bool = False


@dataclass
class History:
    """What was asked of two processes on one database."""

    processes: list[Process]
    database_url: str
    headers: Mapping[str, str]
    exchanges: list[SentRequest] = field(default_factory=list[SentRequest])
    answers: int = 0
    refusals: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    chance: random.Random = field(default_factory=lambda: random.Random(SEED))

    async def ask(
        self, http: AnyClient, request: Any, method: str, path: str, *, once: bool = False, **options: Any
    ) -> SentRequest:
        """Ask until there is an answer, or with `once` only once. Half of what is refused is given up."""
        exchange = SentRequest(request, time.monotonic())
        self.exchanges.append(exchange)
        for number in itertools.count(self.chance.randrange(len(self.processes))):
            try:
                response = await http.request(
                    method, self.processes[number % len(self.processes)].url + path, **options
                )
            except httpx2.TransportError:
                response = None
            if response is not None and was_not_begun(response):
                self.refusals += 1
                if not exchange.lost and (self.ended.is_set() or self.chance.random() < 0.5):
                    exchange.given_up = True
                    break
                await self._come_again(int(response.headers["retry-after"]))
                continue
            # 503 says that it failed just now, not that nothing was done.
            if response is not None and response.status_code != 503:
                agree(
                    response.status_code < 500, f"{request} was answered with {response.status_code}: {response.text}"
                )
                exchange.answered, exchange.answer = time.monotonic(), response
                self.answers += 1
                break
            if once:
                break
            exchange.lost = True
        return exchange

    async def _come_again(self, seconds: int) -> None:
        """Wait as long as was told. When all is over, no client waits so long any more."""
        await asyncio.sleep(RETRY_SECONDS)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds - RETRY_SECONDS):
                await self.ended.wait()

    async def run(self, client: Callable[[AnyClient, int], Awaitable[None]]) -> None:
        """Let clients work again and again while everything fails in turn, and then until all work."""

        async def keep_on(number: int) -> None:
            async with HttpClient(verify=PLAIN, headers=dict(self.headers), timeout=TIMEOUT_SECONDS) as http:
                while not self.ended.is_set():
                    await client(http, number)

        await asyncio.gather(self._fail(), *map(keep_on, range(CLIENTS)))

    async def _fail(self) -> None:
        try:
            for fault in FAULTS:
                await self._progress()
                process = self.chance.choice(self.processes)
                if fault == "kill":
                    await asyncio.to_thread(process.kill)
                    await asyncio.to_thread(process.start)
                elif fault == "stop":
                    process.suspend()
                    await asyncio.sleep(STOPPED)
                    process.resume()
                else:
                    await asyncio.to_thread(crash, self.database_url)
            await self._progress()
        finally:
            self.ended.set()

    async def _progress(self) -> None:
        goal = self.answers + BETWEEN
        await eventually(lambda: self.answers >= goal, seconds=120)


def crash(database_url: str) -> None:
    """Kill a process of PostgreSQL. It ends all others, and starts again with what is on disk."""
    with psycopg.connect(database_url) as connection:
        os.kill(connection.info.backend_pid, signal.SIGKILL)


def was_not_begun(response: httpx2.Response) -> bool:
    """Whether a request was refused under overload, before anything of it was done."""
    return response.status_code == 503 and any(reason in response.text for reason in NOT_BEGUN)


def nothing_of_refused(exchanges: Iterable[SentRequest], done: Container[object]) -> None:
    """Fail if something was done of a request that was refused before it was begun. `done`: names of requests."""
    made = [exchange.request for exchange in exchanges if exchange.given_up and exchange.request[1] in done]
    agree(not made, f"{made[:5]} were refused, and are there")


def agree(holds: object, message: str) -> None:
    """Fail unless a history is explained."""
    assert holds, f"The history disagrees: {message}"


def never_inverted(published: Iterable[SentRequest]) -> None:
    """Fail if something was answered before something else was sent that is published before it."""
    first = SentRequest("nothing", -inf)
    for exchange in reversed([*published]):
        agree(
            first.answered >= exchange.sent,
            f"{first.request} was answered before {exchange.request} was sent, and is later",
        )
        first = min(first, exchange, key=lambda exchange: exchange.answered)
