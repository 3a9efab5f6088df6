"""A crowd of clients from many addresses. Each waits for its answer, and comes again when it is told to."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import psutil
import uvloop

from benchmarks import load
from benchmarks.probes import Probe, Probes, Promise

CLIENTS_OF_AN_ADDRESS = 20

CONNECTING_AT_A_TIME = 100


class Kind(NamedTuple):
    """What clients send: requests without an end, and the status of what is accepted.

    warm              seconds before anything is noted, beside the time to connect
    promise           what is accepted becomes visible; None: the answer is all there is
    replaces_probe    the name of a probe that is left out, because this kind is a crowd of the same requests
    """

    name: str
    requests: Iterator[bytes]
    status: int
    warm: float = 1
    promise: Promise | None = None
    replaces_probe: str = ""


class CrowdedService(NamedTuple):
    """A service that crowds come to.

    stream    makes the request of an event stream: the address of a storefront's stream is valid for 15 minutes
    """

    name: str
    port: int
    process: psutil.Process
    kinds: Sequence[Kind]
    probes: Sequence[Probe]
    stream: Callable[[], bytes]


class Seen(NamedTuple):
    """What a crowd saw.

    accepted       answers with the expected status a second
    refused        answers with 503 or 429 a second
    latencies      seconds until an accepted answer, sorted
    visible        seconds from an answer with 202 until what was accepted is visible, sorted
    pauses         how often clients were told to wait, by seconds
    other          other statuses; 0 is a connection that was closed or refused
    probes         seconds until each answer, for each probe, sorted
    generator      the processor seconds of this process, a second
    service        the processor seconds of the service with its subprocesses, a second
    megabytes      the memory of the service, at most
    calm           seconds after the crowd has gone until every probe is answered quickly
    """

    clients: int
    accepted: float
    refused: float
    latencies: list[float]
    visible: list[float]
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


def address_of_client(number: int) -> str:
    """The local address of a client: `CLIENTS_OF_AN_ADDRESS` share one."""
    place = number // CLIENTS_OF_AN_ADDRESS
    return f"127.1.{place // 200}.{1 + place % 200}"


class Crowd:
    """Clients of one service.

    patient    whether clients wait as they are told after a refusal; else they send again at once
    """

    def __init__(self, port: int, process: psutil.Process, *, patient: bool = True) -> None:
        self._port = port
        self._process = process
        self._patient = patient
        self._from = float("inf")
        self._accepted = self._refused = 0
        self._latencies: list[float] = []
        self._pauses: Counter[int] = Counter()
        self._other: Counter[int] = Counter()
        self._memory = 0
        self._connections: list[load.Connection] = []

    def run(self, kinds: Sequence[Kind], clients: int, probes: Sequence[Probe] = (), *, seconds: float = 10) -> Seen:
        """Let this many clients come, and look at `seconds` of it when everything is warm."""
        return uvloop.run(self._drive(kinds, clients, probes, seconds))

    async def _drive(self, kinds: Sequence[Kind], clients: int, probes: Sequence[Probe], seconds: float) -> Seen:
        connecting = asyncio.Semaphore(CONNECTING_AT_A_TIME)
        replaced = {kind.replaces_probe for kind in kinds}
        promise = next((kind.promise for kind in kinds if kind.promise), None)
        all_probes = Probes(self._port, [probe for probe in probes if probe.name not in replaced], promise)
        tasks = [
            asyncio.create_task(self._client(kinds[number % len(kinds)], number, connecting))
            for number in range(clients)
        ]
        tasks += all_probes.start()
        await asyncio.sleep(max(kind.warm for kind in kinds) + clients / 2_000)
        processes = [self._process, *self._process.children(recursive=True)]
        service_before, generator_before = _processor_seconds(processes), time.process_time()
        self._from = time.perf_counter()
        all_probes.note()
        while time.perf_counter() < self._from + seconds:
            self._memory = max(self._memory, self._process.memory_info().rss)
            await asyncio.sleep(0.25)
        took = time.perf_counter() - self._from
        service, generator = _processor_seconds(processes) - service_before, time.process_time() - generator_before
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in self._connections:
            connection.close()
        seen = Seen(
            clients,
            self._accepted / took,
            self._refused / took,
            sorted(self._latencies),
            sorted(all_probes.visible),
            self._pauses,
            self._other + all_probes.other,
            {name: sorted(values) for name, values in all_probes.seconds.items()},
            generator / took,
            service / took,
            self._memory / 1e6,
            0,
        )
        return seen._replace(calm=await all_probes.calm())

    async def _client(self, kind: Kind, number: int, connecting: asyncio.Semaphore) -> None:
        connection: load.Connection | None = None
        request = next(kind.requests)
        while True:
            try:
                if connection is None or not connection.is_open:
                    async with connecting:
                        connection = await load.connect(self._port, address_of_client(number))
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
                pause = connection.retry_after
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


def _processor_seconds(processes: Sequence[psutil.Process]) -> float:
    return sum(
        times.user + times.system for times in (process.cpu_times() for process in processes if process.is_running())
    )
