"""A crowd of clients from many addresses. Each waits for its answer, and comes again after the seconds that it is told.

Beside it, single probes send one request at a time, each on a new connection and from an address of its own.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import psutil
import uvloop

from benchmarks import load

CLIENTS_OF_AN_ADDRESS = 20

CONNECTING_AT_A_TIME = 100

PROBE_PAUSE_SECONDS = 0.1

CALM_SECONDS = 0.1


class Kind(NamedTuple):
    """What clients send: requests without an end, the status of what is accepted, and whose part it is."""

    name: str
    requests: Iterator[bytes]
    status: int


class Probe(NamedTuple):
    """A request that is sent again and again beside a crowd, and its usual status."""

    name: str
    request: bytes
    status: int


class Seen(NamedTuple):
    """What a crowd saw.

    accepted       answers with the expected status a second
    refused        answers with 503 or 429 a second
    latencies      seconds until an accepted answer, sorted
    pauses         how often clients were told to wait for so many seconds
    other          other statuses; 0 is a connection that was closed or refused
    probes         seconds until each answer, for each probe, sorted
    generator      the processor seconds of this process, a second
    service        the processor seconds of the service, a second
    megabytes      the memory of the service, at most
    calm           seconds after the crowd has gone until every probe is answered within `CALM_SECONDS`
    """

    clients: int
    accepted: float
    refused: float
    latencies: list[float]
    pauses: Counter[int]
    other: Counter[int]
    probes: dict[str, list[float]]
    generator: float
    service: float
    megabytes: float
    calm: float


def percentile(values: Sequence[float], share: float) -> float:
    """A percentile of sorted values; without values, infinity."""
    return values[min(len(values) - 1, int(len(values) * share))] if values else float("inf")


class Crowd:
    """Clients of one service.

    patient    whether clients wait as they are told after a refusal; else they send again at once
    """

    def __init__(self, port: int, process: psutil.Process, *, patient: bool = True) -> None:
        self._port = port
        self._process = process
        self._patient = patient
        self._from = self._until = 0.0
        self._accepted = self._refused = 0
        self._latencies: list[float] = []
        self._pauses: Counter[int] = Counter()
        self._other: Counter[int] = Counter()
        self._probes: dict[str, list[float]] = {}
        self._memory = 0
        self._connections: list[load.Connection] = []

    def run(
        self, kinds: Sequence[Kind], clients: int, probes: Sequence[Probe] = (), *, warm: float = 5, seconds: float = 10
    ) -> Seen:
        """Let so many clients come, and look at `seconds` of it after `warm` seconds."""
        return uvloop.run(self._drive(kinds, clients, probes, warm, seconds))

    async def _drive(
        self, kinds: Sequence[Kind], clients: int, probes: Sequence[Probe], warm: float, seconds: float
    ) -> Seen:
        self._from = float("inf")
        connecting = asyncio.Semaphore(CONNECTING_AT_A_TIME)
        tasks = [
            asyncio.create_task(self._client(kinds[number % len(kinds)], number, connecting))
            for number in range(clients)
        ]
        tasks += [asyncio.create_task(self._probe(probe, number)) for number, probe in enumerate(probes)]
        await asyncio.sleep(warm + clients / 2_000)
        service_before, generator_before = self._processor_seconds(), time.process_time()
        self._from = time.perf_counter()
        while time.perf_counter() < self._from + seconds:
            self._memory = max(self._memory, self._process.memory_info().rss)
            await asyncio.sleep(0.25)
        self._until = time.perf_counter()
        took = self._until - self._from
        service, generator = self._processor_seconds() - service_before, time.process_time() - generator_before
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        calm = await self._calm(probes)
        return Seen(
            clients,
            self._accepted / took,
            self._refused / took,
            sorted(self._latencies),
            self._pauses,
            self._other,
            {name: sorted(values) for name, values in self._probes.items()},
            generator / took,
            service / took,
            self._memory / 1e6,
            calm,
        )

    async def _calm(self, probes: Sequence[Probe]) -> float:
        started = time.perf_counter()
        for connection in self._connections:
            connection.close()
        while True:
            before = time.perf_counter()
            slowest = max([await self._ask(probe, "127.2.1.1") for probe in probes], default=0.0)
            if slowest < CALM_SECONDS:
                return before - started

    async def _client(self, kind: Kind, number: int, connecting: asyncio.Semaphore) -> None:
        place = number // CLIENTS_OF_AN_ADDRESS
        address = f"127.1.{place // 200}.{1 + place % 200}"
        connection: load.Connection | None = None
        request = next(kind.requests)
        while True:
            try:
                if connection is None or not connection.is_open:
                    async with connecting:
                        connection = await load.connect(self._port, address)
                    self._connections.append(connection)
                sent = time.perf_counter()
                status, _ = await connection.send(request)
            except OSError:
                self._count_other(0)
                connection = None
                await asyncio.sleep(1)
                continue
            now = time.perf_counter()
            if status == kind.status:
                request = next(kind.requests)
                if self._from < now:
                    self._accepted += 1
                    self._latencies.append(now - sent)
            elif status in {429, 503}:
                pause = _pause(connection.head)
                if self._from < now:
                    self._refused += 1
                    self._pauses[pause] += 1
                if self._patient:
                    await asyncio.sleep(pause)
            else:
                self._count_other(status)
                request = next(kind.requests)

    def _count_other(self, status: int) -> None:
        if self._from < time.perf_counter():
            self._other[status] += 1

    async def _probe(self, probe: Probe, number: int) -> None:
        seconds = self._probes.setdefault(probe.name, [])
        while True:
            took = await self._ask(probe, f"127.2.0.{1 + number}")
            if self._from < time.perf_counter():
                seconds.append(took)
            await asyncio.sleep(PROBE_PAUSE_SECONDS)

    async def _ask(self, probe: Probe, address: str) -> float:
        """The seconds until the answer, on a new connection, as balancers make them."""
        sent = time.perf_counter()
        try:
            connection = await load.connect(self._port, address)
            status, _ = await connection.send(probe.request)
            connection.close()
        except OSError:
            status = 0
        if status != probe.status:
            self._count_other(status)
        return time.perf_counter() - sent

    def _processor_seconds(self) -> float:
        times = self._process.cpu_times()
        return times.user + times.system


def _pause(head: bytes) -> int:
    """The seconds of the header Retry-After; 1 without it."""
    match = re.search(rb"\r\nretry-after: (\d+)", head, re.IGNORECASE)
    return int(match[1]) if match else 1
