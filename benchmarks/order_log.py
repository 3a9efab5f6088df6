"""Public logs: how fast arrivals are sealed, what a proof and a tile of a long log cost, and how long an audit takes.

The arrivals of one queue are written to what is pending, as its joins do it, and the service seals them.

python -m benchmarks.order_log [--help]
"""

import os
import random
import subprocess
import time
from collections.abc import Callable
from typing import Annotated

import httpx2
import psycopg
import typer
from rich.progress import Progress
from rich.table import Table

from benchmarks import load
from benchmarks.queue import queue_at
from benchmarks.stage import holdfast, say, server
from holdfast.kit.postgres import bundled

BATCH = 1_000
"""Arrivals that one row of what is pending has, at most."""

PENDING = """
    insert into log_pending (log_id, kind, first_number, received_at, visitor_ids, nonces)
    select %(log)s, 'arrivals', min(number), array_agg(clock_timestamp() order by number),
           array_agg('visitor ' || number order by number), array_agg(gen_random_uuid() order by number)
      from generate_series(%(first)s::bigint, %(first)s::bigint + %(count)s - 1) as number
"""


def main(
    arrivals: Annotated[int, typer.Option(help="Arrivals in the log.")] = 1_000_000,
    requests: Annotated[int, typer.Option(help="Requests of each kind.")] = 2_000,
) -> None:
    """Measure a long public log."""
    url = bundled.database_url(bundled.scratch_directory(), "events")
    environment = {
        **os.environ,
        "EVENTS_DATABASE_URL": url,
        "EVENTS_SECRET_KEY": "a secret that only benchmarks use",
    }
    subprocess.run([holdfast(), "events", "migrate"], env=environment, check=True, capture_output=True)
    with server([holdfast(), "events", "serve", "--port", "0"], environment) as port:
        _, queue = queue_at(port)
        path = f"/log/queues/{queue}"
        rate = sealing_rate(url, queue, arrivals)
        chance = random.Random(7)
        kinds: list[tuple[str, Callable[[], str]]] = [
            ("checkpoint", lambda: f"{path}/checkpoint"),
            ("proof of an arrival", lambda: f"{path}/proofs/{chance.randint(1, arrivals)}"),
            ("bundle of 256 entries", lambda: f"{path}/tile/entries/{tile_name(chance, arrivals)}"),
            ("tile of 256 hashes", lambda: f"{path}/tile/0/{tile_name(chance, arrivals)}"),
        ]
        table = Table(title=f"A log of {arrivals:,} arrivals")
        for heading in ("what", "alone, p50 ms", "p99 ms", "64 at once, a second"):
            table.add_column(heading, justify="left" if heading == "what" else "right")
        for what, address in kinds:
            times = times_alone(port, [address() for _ in range(requests)])
            result = load.run(port, (load.request("GET", address()) for _ in range(requests)))
            if set(result.statuses) != {200}:
                raise SystemExit(f"Not every {what} was 200: {result.statuses}")
            table.add_row(what, *(f"{value * 1000:.2f}" for value in times), f"{result.per_second:,.0f}")
        say(table)
        began = time.perf_counter()
        subprocess.run([holdfast(), "verify", f"http://127.0.0.1:{port}{path}"], check=True, capture_output=True)
        say(f"Sealed {rate:,.0f} arrivals a second. `holdfast verify` read all of it in", end=" ")
        say(f"{time.perf_counter() - began:.0f} s.")
        with psycopg.connect(url) as connection:
            row = connection.execute(
                "select sum(pg_table_size(name)) from unnest(array['log_entries', 'log_tiles']::regclass[]) as name"
            ).fetchone()
            assert row
            say(f"Stored: {row[0] / arrivals:.0f} bytes an arrival.")


def sealing_rate(url: str, queue: int, arrivals: int) -> float:
    """Write arrivals to what is pending, and wait until they are signed. Returns arrivals a second."""
    with psycopg.connect(url, autocommit=True) as connection, Progress() as progress:
        log = _number(connection, f"select id from logs where queue_id = {queue}")
        for first in range(1, arrivals + 1, BATCH):
            count = min(BATCH, arrivals + 1 - first)
            connection.execute(PENDING, {"log": log, "first": first, "count": count})
        connection.execute("update queues set tickets = %s where id = %s", (arrivals, queue))
        left = f"select count(*) from log_pending where log_id = {log}"
        began, rows = time.perf_counter(), _number(connection, left)
        task = progress.add_task("Sealing", total=rows)
        while waiting := _number(connection, left):
            progress.update(task, completed=rows - waiting)
            time.sleep(0.2)
        seconds = time.perf_counter() - began
        while _number(connection, f"select (size - signed_size)::int from log_heads where log_id = {log}"):
            time.sleep(0.1)
    return rows * BATCH / seconds


def tile_name(chance: random.Random, arrivals: int) -> str:
    """The path of a random full tile of the lowest level, such as `x001/234`."""
    number = chance.randrange(arrivals // 256)
    return f"x{number // 1000:03}/{number % 1000:03}" if number >= 1000 else f"{number:03}"


def times_alone(port: int, paths: list[str]) -> tuple[float, float]:
    """The median and the 99th percentile of the seconds that one client waits."""
    times: list[float] = []
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}") as client:
        for path in paths:
            began = time.perf_counter()
            client.get(path).raise_for_status()
            times.append(time.perf_counter() - began)
    times.sort()
    return times[len(times) // 2], times[int(len(times) * 0.99)]


def _number(connection: psycopg.Connection[tuple[int]], question: str) -> int:
    row = connection.execute(question.encode()).fetchone()
    return row[0] if row else 0


if __name__ == "__main__":
    typer.run(main)
