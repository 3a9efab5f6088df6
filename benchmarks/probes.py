"""Probes: single requests beside a crowd, one at a time, each on a new connection, as balancers send them."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from benchmarks import load

PAUSE_SECONDS = 0.1

POLL_SECONDS = 0.02

CALM_SECONDS = 0.1
"""Everything is calm when each probe is answered within this time."""

MAX_CALM_SECONDS = 120

ACCEPTED_CLIENTS = 20
"""Clients that look whether what was accepted becomes visible."""


class Probe(NamedTuple):
    """Requests that are sent again and again beside a crowd, and the usual status of their answers."""

    name: str
    requests: Iterator[bytes]
    status: int


class Promise(NamedTuple):
    """Requests that are accepted with 202, and the poll that says when one is visible.

    poll    returns the poll from the body of the answer with 202. Its answer is 404 until it is visible, and then 200.
    """

    requests: Iterator[bytes]
    poll: Callable[[bytes], bytes]


class Probes:
    """What probes see of one service.

    seconds    seconds until each answer, for each probe
    visible    seconds from each 202 until it was visible
    other      answers with another status than the usual one; 0 is a connection that was closed or refused
    """

    def __init__(self, port: int, probes: Sequence[Probe], promise: Promise | None = None) -> None:
        self._port = port
        self._probes = probes
        self._promise = promise
        self._from = float("inf")
        self.seconds: dict[str, list[float]] = {probe.name: [] for probe in probes}
        self.visible: list[float] = []
        self.other: Counter[int] = Counter()

    def start(self) -> list[asyncio.Task[None]]:
        """Send them until the tasks are cancelled. Nothing is noted before `note` was called."""
        tasks = [asyncio.create_task(self._repeat(probe, number)) for number, probe in enumerate(self._probes)]
        if promise := self._promise:
            tasks += [asyncio.create_task(self._follow(promise, number)) for number in range(ACCEPTED_CLIENTS)]
        return tasks

    def note(self) -> None:
        """Note what is seen from now on."""
        self._from = time.perf_counter()

    async def calm(self) -> float:
        """Wait until every probe is answered within `CALM_SECONDS`. Returns the seconds; at most `MAX_CALM_SECONDS`."""
        started = time.perf_counter()
        while (before := time.perf_counter()) < started + MAX_CALM_SECONDS:
            answers = [await self._ask(probe, "127.2.1.1") for probe in self._probes]
            if all(answer < CALM_SECONDS for answer in answers):
                break
        return before - started

    async def _repeat(self, probe: Probe, number: int) -> None:
        while True:
            took = await self._ask(probe, f"127.2.0.{1 + number}")
            if self._from < time.perf_counter():
                self.seconds[probe.name].append(took)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _ask(self, probe: Probe, address: str) -> float:
        """The seconds until the answer, on a new connection."""
        sent = time.perf_counter()
        try:
            connection = await load.connect(self._port, address)
            status, _ = await connection.send(next(probe.requests))
            connection.close()
        except OSError:
            status = 0
        if status != probe.status and self._from < time.perf_counter():
            self.other[status] += 1
        return time.perf_counter() - sent

    async def _follow(self, promise: Promise, number: int) -> None:
        connection = await load.connect(self._port, f"127.2.2.{1 + number}")
        while True:
            status, body = await connection.send(next(promise.requests))
            accepted = time.perf_counter()
            if status != 202:
                await asyncio.sleep(connection.retry_after)
                continue
            poll = promise.poll(body)
            while True:
                status, _ = await connection.send(poll)
                if status == 200:
                    break
                await asyncio.sleep(POLL_SECONDS if status == 404 else connection.retry_after)
            if self._from < accepted:
                self.visible.append(time.perf_counter() - accepted)
            await asyncio.sleep(PAUSE_SECONDS)
