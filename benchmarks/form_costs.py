"""What a form costs that comes at a steady pace: processor time of the service and of PostgreSQL, and transactions.

A batch of few forms costs the most for each, and polls wait for what it takes. Two checkouts are measured by turns.

python -m benchmarks.form_costs [OTHER_CHECKOUT] [--help]
"""

import asyncio
import os
import subprocess
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Annotated, NamedTuple

import psycopg
import typer
import uvloop
from rich.table import Table

from benchmarks.page_costs import HERE
from benchmarks.pages import create_scene, send_forms
from benchmarks.scale.driving import Bench
from benchmarks.stage import say, server
from holdfast.kit.postgres import bundled

TRANSACTIONS = "select xact_commit from pg_stat_database where datname = current_database()"

FLUSH_SECONDS = 1.2
"""Seconds after which PostgreSQL has counted the transactions of its sessions."""


class FormCosts(NamedTuple):
    """Microseconds of the service and of PostgreSQL, and transactions, for each form."""

    service: float
    database: float
    transactions: float


def main(
    other: Annotated[
        Path | None, typer.Argument(help="Another checkout to compare with, with its environment in .venv.")
    ] = None,
    pace: Annotated[int, typer.Option(help="Forms a second.")] = 100,
    seconds: Annotated[int, typer.Option(help="Seconds of a round.")] = 4,
    rounds: Annotated[int, typer.Option(help="Rounds of each checkout; the median is reported.")] = 5,
) -> None:
    """Measure what forms cost that come one by one."""
    with ExitStack() as stack:
        checkouts = [HERE, *([other.resolve()] if other else [])]
        served = [_serve(checkout, stack) for checkout in checkouts]
        costs: list[list[FormCosts]] = [[] for _ in served]
        for number in range(rounds + 1):
            for index in range(len(served)) if number % 2 else reversed(range(len(served))):
                measured = _measure(*served[index], f"r{number}n", pace, seconds)
                if number:  # the first round warms up
                    costs[index].append(measured)
    table = Table(title=f"A form, {pace} a second: {rounds} rounds of {seconds} s, median")
    for heading in ("what", "this", *(["other", "this/other"] if other else [])):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for index, what in enumerate(("service, µs", "PostgreSQL, µs", "transactions")):
        columns = [[values[index] for values in side] for side in costs]
        figures = [f"{median(values):,.0f}" if index < 2 else f"{median(values):.2f}" for values in columns]
        if other:
            figures.append(f"{median(one / another for one, another in zip(*columns, strict=True)):.2f}")
        table.add_row(what, *figures)
    say(table)


def _serve(checkout: Path, stack: ExitStack) -> tuple[int, Bench, psycopg.Connection]:
    """Serve a checkout on a new database until the stack is closed."""
    url = bundled.database_url(bundled.scratch_directory(), "events")
    environment = {
        **os.environ,
        "EVENTS_DATABASE_URL": url,
        "EVENTS_SECRET_KEY": "a secret that only benchmarks use",
        "FORM_RATE_LIMIT": "1000000000",
        "FORM_EVENT_RATE_LIMIT": "1000000000",
    }
    program = str(checkout / ".venv" / "bin" / "holdfast")
    subprocess.run([program, "events", "migrate"], env=environment, check=True, capture_output=True)
    port = stack.enter_context(server([program, "events", "serve", "--port", "0"], environment))
    return port, Bench(port, url), stack.enter_context(psycopg.connect(url, autocommit=True))


def _measure(port: int, bench: Bench, connection: psycopg.Connection, name: str, pace: int, seconds: int) -> FormCosts:
    """The costs of a form of a round, with its settlement and what its mail takes within `FLUSH_SECONDS`."""
    scene = create_scene(port)

    async def send() -> int:
        over = asyncio.Event()
        asyncio.get_running_loop().call_later(seconds, over.set)
        statuses = await send_forms(port, scene, pace, over, name)
        if set(statuses) != {303}:
            raise SystemExit(f"Not every answer was 303: {statuses}")
        await asyncio.sleep(FLUSH_SECONDS)
        return statuses[303]

    before, count_before = bench.spent(), _count_transactions(connection)
    forms = uvloop.run(send())
    spent = bench.spent().since(before)
    transactions = _count_transactions(connection) - count_before
    return FormCosts(spent.service / forms * 1e6, spent.database / forms * 1e6, transactions / forms)


def _count_transactions(connection: psycopg.Connection) -> int:
    row = connection.execute(TRANSACTIONS).fetchone()
    assert row
    return row[0]


if __name__ == "__main__":
    typer.run(main)
