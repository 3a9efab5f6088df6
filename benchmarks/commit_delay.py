"""What a synchronous standby costs that is far away: changes of one shop and of many, and registrations.

python -m benchmarks.commit_delay [--help]
"""

import asyncio
import contextlib
import itertools
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

import msgspec
import typer
import uvloop
from rich.table import Table

from benchmarks import load
from benchmarks.registrations import event_at
from benchmarks.stage import Best, holdfast, say, server
from benchmarks.standby import Servers, servers
from benchmarks.stock import call, make_pools
from holdfast.inventory.resources import Tx
from holdfast.inventory.service import INVENTORY
from holdfast.inventory.settings import Settings
from holdfast.inventory.shops import operations as shops


class Shop(NamedTuple):
    """The key of a shop, and its pool."""

    key: str
    pool_id: int


def main(
    delays: Annotated[str, typer.Option(help="How many milliseconds late the standby applies commits.")] = "5",
    many: Annotated[int, typer.Option(help="Shops that change their stock at the same time.")] = 32,
    processes: Annotated[int, typer.Option(help="Processes that serve them.")] = 4,
    seconds: Annotated[float, typer.Option(help="How long a run of changes takes.")] = 4,
    requests: Annotated[int, typer.Option(help="Registrations in each run.")] = 15_000,
    crowd: Annotated[int, typer.Option(help="Connections that are enough to fill batches while others commit.")] = 256,
    rounds: Annotated[int, typer.Option(help="Runs of each; the best is reported.")] = 2,
) -> None:
    """Measure with a standby that is late, beside the same one at once."""
    late = [0, *map(int, delays.split())]
    table = Table(
        title=f"A standby that applies commits late, and without which nothing is committed; best of {rounds}"
    )
    for heading in ("what", "at once", *(f"{delay} ms" for delay in late[1:]), "goal"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    with servers() as standby_servers:
        measure_changes(table, standby_servers, late, many, processes, seconds, rounds)
        measure_registrations(table, standby_servers, late, requests, crowd, rounds)
    say(table)


def measure_changes(
    table: Table,
    standby_servers: Servers,
    delays: Sequence[int],
    many: int,
    processes: int,
    seconds: float,
    rounds: int,
) -> None:
    """Changes a second of one shop, and of many shops over several processes. Each shop has one connection."""
    url = standby_servers.make("inventory")
    environment = {
        **os.environ,
        "INVENTORY_DATABASE_URL": url,
        "INVENTORY_SECRET_KEY": "a secret that only benchmarks use",
        "MCP_RATE_LIMIT": "1000000000",
    }
    subprocess.run([holdfast(), "inventory", "migrate"], env=environment, check=True, capture_output=True)
    keys = asyncio.run(_keys(url, many))
    with contextlib.ExitStack() as stack:
        command = [holdfast(), "inventory", "serve", "--port", "0"]
        ports = [stack.enter_context(server(command, environment)) for _ in range(processes)]
        at = [ports[number % processes] for number in range(many)]
        stocked = [Shop(key, make_pools(port, key, 1)[0]) for key, port in zip(keys, at, strict=True)]
        figures: list[list[float]] = []
        for delay in delays:
            standby_servers.delay(delay)
            figures.append(
                [max(changes(at[:count], stocked[:count], seconds) for _ in range(rounds)) for count in (1, many)]
            )
    table.add_row("changes of one shop, a second", *(f"{one:,.0f}" for one, _ in figures), "")
    what = f"changes of {many} shops over {processes} processes, a second"
    table.add_row(what, *(f"{every:,.0f}" for _, every in figures), "")
    table.add_row("times those of one shop", *(f"{every / one:.1f}" for one, every in figures), "≥ 10")


async def _keys(url: str, many: int) -> list[str]:
    """The keys of new shops."""
    settings = Settings(database_url=url, secret_key="a secret that only benchmarks use")  # pyright: ignore
    database = INVENTORY.database(settings)

    async def add(tx: Tx) -> list[str]:
        added = [await shops.add(tx, f"bench-{number}.myshopify.com") for number in range(many)]
        return [key for _, key in added if key]

    async with database.pool:
        return await database.transact(add)


def changes(ports: Sequence[int], stocked: Sequence[Shop], seconds: float) -> float:
    """Changes a second when each shop makes one after the other."""

    async def drive() -> float:
        until = time.perf_counter() + seconds

        async def one(port: int, shop: Shop) -> int:
            connection = await load.connect(port)
            change = call(shop.key, "adjust_pool_quantity", {"pool_id": shop.pool_id, "delta": -1})
            for done in itertools.count():
                if time.perf_counter() > until:
                    return done
                status, body = await connection.send(change)
                if status != 200 or b'"isError":true' in body:
                    raise SystemExit(f"A change was not made: {body.decode()}")
            raise AssertionError

        done = await asyncio.gather(*(one(port, shop) for port, shop in zip(ports, stocked, strict=True)))
        return sum(done) / seconds

    rate = uvloop.run(drive())
    say(f"  {len(stocked)} shops: {rate:,.0f}/s", style="dim")
    return rate


def measure_registrations(
    table: Table, standby_servers: Servers, delays: Sequence[int], requests: int, crowd: int, rounds: int
) -> None:
    """Registrations a second that one process accepts, from 64 connections and from more."""
    environment = {
        **os.environ,
        "EVENTS_DATABASE_URL": standby_servers.make("events"),
        "EVENTS_SECRET_KEY": "a secret that only benchmarks use",
        "API_REGISTRATION_RATE_LIMIT": "1000000000",
        "API_REGISTRATION_NOTIFY": "false",
        "MAX_CONNECTIONS_PER_ADDRESS": "20000",
    }
    subprocess.run([holdfast(), "events", "migrate"], env=environment, check=True, capture_output=True)
    numbers = itertools.count()
    with server([holdfast(), "events", "serve", "--port", "0", "--no-background"], environment) as ours:
        key, event = event_at(ours, 2 * len(delays) * requests * rounds)

        def people() -> Iterator[bytes]:
            for _ in range(requests):
                person = {"event_id": event, "email": f"r{next(numbers)}@example.com"}
                yield load.request("POST", "/api/registrations", key, msgspec.json.encode({"registration": person}))

        for connections in (64, crowd):
            figures: list[float] = []
            for delay in delays:
                standby_servers.delay(delay)
                best = Best()
                for _ in range(rounds):
                    best.take(load.run(ours, iter(list(people())), connections), 202)
                figures.append(best.best)
            goal = "≥ 0.7" if connections == crowd else ""
            what = f"registrations from {connections} connections, a second"
            table.add_row(what, *(f"{figure:,.0f}" for figure in figures), "")
            table.add_row("share of those at once", *(f"{figure / figures[0]:.2f}" for figure in figures), goal)


if __name__ == "__main__":
    typer.run(main)
