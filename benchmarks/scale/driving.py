"""A closed loop of clients, and what each part of the machine spends on it.

Each client has one connection. It sends its next request when the answer to the last one has come.
"""

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import mean
from typing import NamedTuple

import httpx2
import psutil
import psycopg
import uvloop

from benchmarks import load
from benchmarks.streams import is_listening

CLIENTS_OF_AN_ADDRESS = 20

LOOPS, LOOP_PAUSE_SECONDS = 10_000, 0.05
"""A fixed piece of work, which the load generator does again and again: it tells how fast the machine is meanwhile. The
speed of a machine that is shared changes by half within seconds.
"""


MAX_ATTEMPTS = 3
"""How often a measurement is made in which no answer comes."""


class Traffic(NamedTuple):
    """What clients send: requests without an end, and the status of an answer that is expected."""

    name: str
    requests: Iterator[bytes]
    status: int


class Spent(NamedTuple):
    """Processor seconds of the service and of PostgreSQL, batches of the service, bytes of WAL."""

    service: float
    database: float
    batches: float
    wal: float

    def since(self, before: "Spent") -> "Spent":
        return Spent(*(late - early for early, late in zip(before, self, strict=True)))


class Driven(NamedTuple):
    """What a closed loop saw.

    total        how many answers came, also before and after the seconds that were looked at
    generator    the processor seconds of the load generator
    latencies    seconds until each answer, sorted, for each kind
    sent         the bytes of a request, on average, for each kind
    received     the bytes of an answer, on average, for each kind
    loops        the processor seconds of the fixed piece of work, each time that it was done, in equal pauses
    """

    clients: int
    seconds: float
    total: int
    generator: float
    latencies: dict[str, list[float]]
    sent: dict[str, float]
    received: dict[str, float]
    loops: tuple[float, ...]
    spent: Spent

    @property
    def loop(self) -> float:
        """The processor seconds of the fixed piece of work, on average."""
        return mean(self.loops)

    @property
    def answers(self) -> int:
        return sum(map(len, self.latencies.values()))

    @property
    def all_latencies(self) -> list[float]:
        return sorted(latency for values in self.latencies.values() for latency in values)


class Bench:
    """One process of a service with its database.

    others    further processes that belong to the service
    """

    def __init__(self, port: int, database_url: str, others: Sequence[psutil.Process] = ()) -> None:
        self.port = port
        self.database_url = database_url
        self._services = [next(one for one in psutil.process_iter() if is_listening(one, port)), *others]
        self._connection = psycopg.connect(database_url, autocommit=True)
        [backend] = self._row("select pg_backend_pid()")
        self._postmaster = psutil.Process(backend).parent()
        assert self._postmaster

    def _row(self, question: str) -> tuple[int, ...]:
        row = self._connection.execute(question.encode()).fetchone()
        assert row
        return row

    def spent(self) -> Spent:
        """What was spent since everything began."""
        [wal] = self._row("select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint")
        metrics = httpx2.get(f"http://127.0.0.1:{self.port}/metrics", timeout=60).text
        batches = sum(map(float, re.findall(r"^holdfast_batch_calls_count\S* (\S+)", metrics, re.MULTILINE)))
        assert self._postmaster
        times = self._postmaster.cpu_times()
        # Processes that have ended are counted by their parent.
        database = times.user + times.system + times.children_user + times.children_system
        database += sum(map(processor_seconds, self._postmaster.children()))
        service = sum(map(processor_seconds, self._services))
        return Spent(service, database, batches, wal)

    def rest(self, seconds: float) -> Spent:
        """What is spent in this many seconds in which nothing is asked."""
        before = self.spent()
        time.sleep(seconds)
        return self.spent().since(before)

    def memory(self) -> int:
        """The bytes of memory of the service."""
        return sum(process.memory_info().rss for process in self._services)

    def size(self, question: str = "select pg_database_size(current_database())") -> int:
        return self._row(question)[0]

    def drive(self, kinds: Sequence[Traffic], clients: int, seconds: float, warm: float = 0.5) -> Driven:
        """Let this many clients, dealt out among the kinds, ask for this many seconds after `warm` seconds.

        It is done again if no answer came in this time, since the disk stood still.
        """
        for _ in range(MAX_ATTEMPTS):
            driven = uvloop.run(_drive(self.port, self.spent, kinds, clients, seconds, warm))
            if driven.answers:
                return driven
        raise SystemExit(f"No answer came in {MAX_ATTEMPTS} measurements of {seconds} seconds.")


def processor_seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return times.user + times.system


async def _drive(
    port: int, spent: Callable[[], Spent], kinds: Sequence[Traffic], clients: int, seconds: float, warm: float
) -> Driven:
    began = until = float("inf")
    total = 0
    latencies: dict[str, list[float]] = {kind.name: [] for kind in kinds}
    sent_bytes, received_bytes = dict.fromkeys(latencies, 0), dict.fromkeys(latencies, 0)

    async def one(kind: Traffic, number: int) -> None:
        nonlocal total
        place = number // CLIENTS_OF_AN_ADDRESS
        connection = await load.connect(port, f"127.1.{place // 200}.{1 + place % 200}")
        seen = latencies[kind.name]
        while True:
            request = next(kind.requests)
            sent = time.perf_counter()
            if sent >= until:
                break
            status, body = await connection.send(request)
            now = time.perf_counter()
            if status != kind.status:
                raise SystemExit(f"{kind.name} was answered with {status}: {body[:500]!r}")
            total += 1
            if began <= now < until:
                seen.append(now - sent)
                sent_bytes[kind.name] += len(request)
                received_bytes[kind.name] += len(connection.head) + 4 + len(body)
        connection.close()

    loops: list[float] = []

    async def do_fixed_work() -> None:
        while True:
            before = time.thread_time()
            for _ in range(LOOPS):
                pass
            loops.append(time.thread_time() - before)
            await asyncio.sleep(LOOP_PAUSE_SECONDS)

    tasks = [asyncio.create_task(one(kinds[number % len(kinds)], number)) for number in range(clients)]
    await asyncio.sleep(warm)
    before = await asyncio.to_thread(spent)
    generator, began = time.process_time(), time.perf_counter()
    until = began + seconds
    fixed_work = asyncio.create_task(do_fixed_work())
    await asyncio.sleep(seconds)
    fixed_work.cancel()
    generator, took = time.process_time() - generator - sum(loops), time.perf_counter() - began
    after = await asyncio.to_thread(spent)
    await asyncio.gather(*tasks)
    return Driven(
        clients,
        took,
        total,
        generator,
        {name: sorted(values) for name, values in latencies.items()},
        {name: sent_bytes[name] / max(1, len(values)) for name, values in latencies.items()},
        {name: received_bytes[name] / max(1, len(values)) for name, values in latencies.items()},
        tuple(loops),
        after.since(before),
    )
