"""Measure what single calls cost, and write it to `costs.json`.

Each kind of call is asked by one client, by 8 and by 32. The service counts its batches. From the last two follows what
a batch costs and what a call in it costs, for the load generator, the service and PostgreSQL. One client alone says for
how long nothing works for a call. Its processor time says little: a process that sleeps between two calls finds nothing
in the caches of its processor. The machine should do nothing else. It takes five minutes.

python -m benchmarks.scale.measure [--help]
"""

import asyncio
import datetime as dt
import os
import platform
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import mean, median
from typing import Annotated, NamedTuple

import psutil
import psycopg
import typer
import uvloop
from rich.table import Table

from benchmarks import load, shops, sync
from benchmarks.registrations import settled
from benchmarks.scale import costs
from benchmarks.scale.costs import QUANTILES, CallCosts, Cost, Costs
from benchmarks.scale.driving import Bench, Driven, Spent, Traffic, processor_seconds
from benchmarks.scale.services import Events, events_service, inventory_service
from benchmarks.stage import holdfast, say
from benchmarks.streams import Subscriber
from holdfast.kit.postgres import bundled

FEW, MANY = 8, 32
"""The clients of the second and third measurement of each kind: fewer than in any check."""

STORING = (
    "registrations by e-mail",
    "registrations by id",
    "joins",
    "pages of the waiting room that give a place",
    "changes of stock",
)
"""Kinds that store something. What PostgreSQL writes during others is work that was left over."""

STREAMS = 500

MAILS = 2_000

ORDERS_PER_SECOND, ORDERS_SECONDS = 30, 10


def main(
    seconds: Annotated[float, typer.Option(help="Seconds of each measurement of a kind.")] = 2,
    rounds: Annotated[int, typer.Option(help="Measurements of each kind, by turns. The middle one counts.")] = 3,
    only: Annotated[str, typer.Option(help="Print the costs of kinds with this text, and write nothing.")] = "",
) -> None:
    """Measure the costs of single calls."""
    load_before = os.getloadavg()[0]
    single: dict[str, float] = {}
    runs: dict[str, Measured] = {}
    with events_service() as events:
        runs |= _all(events.bench, events.kinds, seconds, rounds, only)
        if not only:
            single |= _settlement(events.bench)
    with inventory_service() as inventory:
        runs |= _all(inventory.bench, inventory.kinds, seconds, rounds, only)
    loop = median(run.many.loop for run in runs.values())
    calls = {name: run.costs(name, loop) for name, run in runs.items()}
    _show(calls)
    if only:
        return
    with events_service(notify=True) as events:
        single |= _streams(events.bench, events.kinds["registrations by id"])
        single |= _mails(events)
    single |= _orders()
    machine = f"{os.cpu_count()} cores, Linux {platform.release().split('-')[0]}, Python {platform.python_version()}"
    machine += f", load {load_before:.1f} before it began"
    day = dt.datetime.now(dt.UTC).date().isoformat()
    costs.write(Costs(day, machine, "python -m benchmarks.scale.measure", loop, calls, single))
    for name, value in single.items():
        say(f"{name}: {value:,.1f}")


def _all(bench: Bench, kinds: Mapping[str, Traffic], seconds: float, rounds: int, only: str) -> dict[str, "Measured"]:
    """Measure all kinds by turns. Returns the middle round of each kind."""
    rest = bench.rest(1)
    runs: dict[str, list[Measured]] = {name: [] for name in kinds if only in name}
    for _ in range(rounds):
        for name, measurements in runs.items():
            measurements.append(measured(bench, kinds[name], seconds, rest))
    return {
        name: sorted(measurements, key=lambda one: sum(_micros(one.many, rest, 1)))[rounds // 2]
        for name, measurements in runs.items()
    }


class Measured(NamedTuple):
    """Calls of a kind by one client, by few and by many.

    stored    bytes by which the database grew for a call
    rest      what is spent in a second in which nothing is asked
    """

    alone: Driven
    few: Driven
    many: Driven
    stored: float
    rest: Spent

    def costs(self, name: str, loop: float) -> CallCosts:
        """What calls cost at the speed at which the fixed piece of work takes `loop` seconds."""
        alone, many = self.alone, self.many
        few_micros, many_micros = (_micros(driven, self.rest, loop) for driven in (self.few, many))
        alone_batches, *batches = (driven.spent.batches / driven.answers for driven in self[:3])
        if alone_batches < 0.5:
            # Nothing is shared but turns of the event loop, and those are not counted.
            generator, service, database = (
                Cost(0.0, round(many_micros[0], 2)),
                Cost(0.0, round(many_micros[1], 2)),
                Cost(0.0, 0.0),
            )
        else:
            generator, service, database = (
                _cost(*both, *(count / alone_batches for count in batches))
                for both in zip(few_micros, many_micros, strict=True)
            )
        # The median from one client, of whom nothing else is late; how much longer the others take from many clients.
        spent, latencies = sum(_micros(alone, self.rest, alone.loop)), many.all_latencies
        usual = max(0.0, median(alone.all_latencies) * 1e6 - spent)
        waits = [usual + max(0.0, latency - median(latencies)) * 1e6 for latency in latencies]
        return CallCosts(
            generator,
            service,
            database,
            tuple(round(waits[min(len(waits) - 1, int(len(waits) * share))], 1) for share in QUANTILES),
            round(many.sent[name]),
            round(many.received[name]),
            round(many.spent.wal / many.answers) if name in STORING else 0,
            round(self.stored) if name in STORING else 0,
        )


def measured(bench: Bench, kind: Traffic, seconds: float, rest: Spent) -> Measured:
    """Measure calls of a kind. `rest`: what is spent in a second in which nothing is asked."""
    alone, few = bench.drive([kind], 1, seconds), bench.drive([kind], FEW, seconds)
    size = bench.size()
    many = bench.drive([kind], MANY, seconds)
    return Measured(alone, few, many, max(0, bench.size() - size) / many.total, rest)


def _micros(driven: Driven, rest: Spent, loop: float) -> list[float]:
    """Microseconds of the generator, the service and PostgreSQL for each answer, at the speed of this `loop`."""
    spent = (
        driven.generator,
        max(0.0, driven.spent.service - rest.service * driven.seconds),
        max(0.0, driven.spent.database - rest.database * driven.seconds),
    )
    return [seconds / driven.answers * 1e6 * loop / driven.loop for seconds in spent]


def _cost(few: float, many: float, few_batches: float, many_batches: float) -> Cost:
    """What a batch and a call cost, computed from what a call costs among few and among many, and from the batches a
    call.

    A call of the waiting room needs several statements. All that one call needs counts as one batch here.
    """
    batch = max(0.0, (few - many) / (few_batches - many_batches))
    return Cost(round(batch, 2), round(max(0.0, many - batch * many_batches), 2))


def _settlement(bench: Bench) -> dict[str, float]:
    """What it costs to settle a registration: the registrations that were measured before wait for it."""
    before, began = bench.spent(), time.process_time()
    seconds, count = asyncio.run(settled(bench.database_url))
    return {
        "settlement, microseconds": seconds / count * 1e6,
        "settlement, microseconds of the service": (time.process_time() - began) / count * 1e6,
        "settlement, microseconds of PostgreSQL": (bench.spent().database - before.database) / count * 1e6,
    }


def _streams(bench: Bench, registrations: Traffic) -> dict[str, float]:
    """What a stream costs that is opened, held open and told a change."""
    event = _watched(bench)

    async def drive() -> tuple[Spent, Spent, Spent]:
        loop, arrivals = asyncio.get_running_loop(), asyncio.Queue[float]()
        request, before = load.request("GET", f"/events/{event}/stream"), bench.spent()
        streams: list[Subscriber] = []
        for number in range(STREAMS):
            transport, stream = await loop.create_connection(
                lambda: Subscriber(arrivals), "127.0.0.1", bench.port, local_addr=(f"127.3.0.{1 + number // 20}", 0)
            )
            transport.write(request)
            streams.append(stream)
            await stream.opened
        opened = bench.spent()
        connection = await load.connect(bench.port)
        await connection.send(next(registrations.requests))
        with psycopg.connect(bench.database_url, autocommit=True) as database:
            database.execute("update events set registered_count = registered_count + 1 where id = %s", [event])
        for _ in range(STREAMS):
            async with asyncio.timeout(30):
                await arrivals.get()
        return before, opened, bench.spent()

    memory = bench.memory()
    before, opened, after = uvloop.run(drive())
    return {
        "stream opened, microseconds of the service": (opened.service - before.service) / STREAMS * 1e6,
        "stream told, microseconds of the service": (after.service - opened.service) / STREAMS * 1e6,
        "stream, bytes of memory": (bench.memory() - memory) / STREAMS,
    }


def _watched(bench: Bench) -> int:
    with psycopg.connect(bench.database_url) as database:
        [event] = database.execute("select max(id) from events").fetchone() or [0]
    return event


def _mails(events: Events) -> dict[str, float]:
    """What a mail costs, from the registration that causes it; mails are written to files, by one worker."""
    bench, kind = events.bench, events.kinds["registrations by e-mail"]
    with psycopg.connect(bench.database_url, autocommit=True) as database:
        # Mails of organizers that are new would be few (decision 68).
        database.execute("update users set proved_at = now() - interval '90 days' where slug = 'bench'")
        load.run(bench.port, (next(kind.requests) for _ in range(MAILS)), MANY)
        before = bench.spent()
        environment = {**events.environment, "EVENTS_BASE_URL": f"http://127.0.0.1:{bench.port}"}
        worker = subprocess.Popen(
            [holdfast(), "events", "worker"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            parts = psutil.Process(worker.pid)
            sent, first, at_first, used = 0, 0.0, 0, 0.0
            started = time.perf_counter()
            while sent < MAILS and time.perf_counter() < started + 60:
                [sent] = database.execute("select count(*) from mails where outcome = 'sent'").fetchone() or [0]
                if sent and not first:
                    first, at_first = time.perf_counter(), sent
                    used = sum(map(processor_seconds, [parts, *parts.children(recursive=True)]))
                time.sleep(0.1)
            took = time.perf_counter() - first
            service = sum(map(processor_seconds, [parts, *parts.children(recursive=True)])) - used
            mails = sent - at_first
            return {
                "mails a second": mails / took,
                "mail, microseconds of the service": service / mails * 1e6,
                "mail, microseconds of PostgreSQL": (bench.spent().database - before.database) / sent * 1e6,
                "mail, bytes": _size_of_mails(events.environment["HOLDFAST_DATA_DIR"]),
            }
        finally:
            worker.terminate()
            worker.wait()


def _size_of_mails(directory: str) -> float:
    sizes = [path.stat().st_size for path in Path(directory).rglob("*.eml")]
    return mean(sizes) if sizes else 0.0


def _orders() -> dict[str, float]:
    """What an order costs, from its webhook to the levels at the platform, in two shops."""
    directory = bundled.scratch_directory()
    ports = shops.free_ports()
    url = bundled.database_url(directory, "inventory")
    environment = {
        **os.environ,
        **shops.settings(ports),
        "INVENTORY_DATABASE_URL": url,
        "HOLDFAST_DATA_DIR": str(directory),
    }
    subprocess.run([holdfast(), "inventory", "migrate"], env=environment, check=True, capture_output=True)
    with shops.platform(ports, environment) as platform_double, shops.service(ports, environment) as service:
        opened = [
            shops.opened(platform_double, service, f"shop-{number}.myshopify.com", 10, sync.POINTS)
            for number in range(2)
        ]
        bench = Bench(ports.service, url)
        before, size = bench.spent(), bench.size()
        measures = sync.ordered(platform_double, service, opened, ORDERS_PER_SECOND, ORDERS_SECONDS)
        spent, count = bench.spent().since(before), ORDERS_PER_SECOND * ORDERS_SECONDS
        p50, p99, answered_p50, answered_p99, webhooks, calls, levels, _ = measures
        return {
            "order, microseconds of the service": spent.service / count * 1e6,
            "order, microseconds of PostgreSQL": spent.database / count * 1e6,
            "order, bytes of WAL": spent.wal / count,
            "order, bytes stored": max(0, bench.size() - size) / count,
            "order, webhooks": webhooks / ORDERS_PER_SECOND,
            "order, calls to the platform": calls / ORDERS_PER_SECOND,
            "levels a call to the platform": levels,
            "order to level, milliseconds p50": p50,
            "order to level, milliseconds p99": p99,
            "webhook answered, milliseconds p50": answered_p50,
            "webhook answered, milliseconds p99": answered_p99,
        }


def _show(calls: Mapping[str, CallCosts]) -> None:
    table = Table(title="Microseconds of the processor: for a batch + for each call in it")
    for heading in ("what", "generator", "service", "PostgreSQL", "wait", "sent", "received", "WAL", "stored"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for name, cost in calls.items():
        parts = [f"{part.batch:,.0f} + {part.call:,.0f}" for part in (cost.generator, cost.service, cost.database)]
        sizes = [f"{size:,.0f}" for size in (cost.wait, cost.sent, cost.received, cost.wal, cost.stored)]
        table.add_row(name, *parts, *sizes)
    say(table)


if __name__ == "__main__":
    typer.run(main)
