"""Growth: each hot path and each list with little stored and with much, in one run. The figure is large/small.

python -m benchmarks.growth [--help]
"""

import asyncio
import os
import subprocess
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

import typer

from benchmarks import crowded_events, crowded_shop
from benchmarks.growing import compare, measure_lists, table_of_paths
from benchmarks.registrations import settled
from benchmarks.stage import holdfast, say, server
from holdfast.kit.postgres import bundled

T = TypeVar("T")

MIN_ROWS = 300
"""The least number of everything, so that every list has a whole page."""

DEEP = 100_000
"""The offset of pages far behind the first in the large database, the largest there is."""


class Which(Enum):
    both = "both"
    events = "events"
    inventory = "inventory"


class Run(NamedTuple):
    """How the small database is sized, and how much is measured."""

    share: int
    requests: int
    rounds: int
    pages: int

    def sizes(self, *large: int) -> tuple[list[int], list[int]]:
        """The sizes of both databases, the small one first."""
        return [max(MIN_ROWS, number // self.share) for number in large], [*large]


def main(
    service: Annotated[Which, typer.Option(help="Which services are measured.")] = Which.both,
    registrations: Annotated[int, typer.Option(help="Registrations of one organizer.")] = 2_000_000,
    events: Annotated[int, typer.Option(help="Events of one organizer.")] = 100_000,
    queues: Annotated[int, typer.Option(help="Queues of one organizer.")] = 10_000,
    organizers: Annotated[int, typer.Option(help="Organizers.")] = 1_000,
    prices: Annotated[int, typer.Option(help="Changes of dynamic prices.")] = 100_000,
    entries: Annotated[int, typer.Option(help="Entries in the ledger of one shop.")] = 1_000_000,
    variants: Annotated[int, typer.Option(help="Variants of one shop; each four draw on a pool.")] = 100_000,
    shops: Annotated[int, typer.Option(help="Shops.")] = 1_000,
    share: Annotated[int, typer.Option(help="The small database has this part of all that.")] = 100,
    requests: Annotated[int, typer.Option(help="Requests in each run of a hot path.")] = 10_000,
    rounds: Annotated[int, typer.Option(help="Runs of each hot path; the best is reported.")] = 3,
    pages: Annotated[int, typer.Option(help="How often each list is read; the median is reported.")] = 20,
) -> None:
    """Measure hot paths and lists."""
    run = Run(share, requests, rounds, pages)
    directory = bundled.scratch_directory()
    if service is not Which.inventory:
        measure_events(directory, run, run.sizes(registrations, events, queues, organizers, prices))
    if service is not Which.events:
        measure_inventory(directory, run, run.sizes(entries, variants, shops))


def measure_events(directory: Path, run: Run, sizes: tuple[list[int], list[int]]) -> None:
    environments = [
        {
            **os.environ,
            "EVENTS_DATABASE_URL": bundled.database_url(directory, f"events_{name}"),
            "EVENTS_SECRET_KEY": "a secret that only benchmarks use",
            "API_REGISTRATION_RATE_LIMIT": "1000000000",
            "API_QUEUE_JOIN_RATE_LIMIT": "1000000000",
            "API_REGISTRATION_NOTIFY": "false",
            "MCP_RATE_LIMIT": "1000000000",
            "ORGANIZER_MAX_EVENTS": "1000000000",
            "ORGANIZER_MAX_TEXT_BYTES": "1000000000000",
        }
        for name in ("small", "large")
    ]

    def fill(environment: dict[str, str], numbers: list[int]) -> crowded_events.Crowded:
        return crowded_events.fill(environment["EVENTS_DATABASE_URL"], crowded_events.Sizes(*numbers))

    both = [filled("events", *arguments, fill) for arguments in zip(environments, sizes, strict=True)]
    command = [holdfast(), "events", "serve", "--port", "0", "--no-background"]
    with server(command, environments[0]) as small, server(command, environments[1]) as large:
        ports = (small, large)
        lists = [
            crowded_events.lists(database, port, deep)
            for database, port, deep in zip(both, ports, (DEEP // run.share, DEEP), strict=True)
        ]
        measure_lists("Lists of the events service", ports, lists, run.pages)
        table = table_of_paths("Hot paths of the events service", run.requests, run.rounds)
        paths = [crowded_events.paths(database, port) for database, port in zip(both, ports, strict=True)]
        for name in paths[0]:
            compare(table, name, ports, paths, run.requests, run.rounds)
        few, many = (asyncio.run(settled(environment["EVENTS_DATABASE_URL"])) for environment in environments)
        rates = [count / seconds for seconds, count in (many, few)]
        table.add_row("settled", *(f"{rate:,.0f}" for rate in rates), f"{rates[0] / rates[1]:.2f}", "≥ 0.9")
        say(table)


def measure_inventory(directory: Path, run: Run, sizes: tuple[list[int], list[int]]) -> None:
    environments = [
        {
            **os.environ,
            "INVENTORY_DATABASE_URL": bundled.database_url(directory, f"inventory_{name}"),
            "INVENTORY_SECRET_KEY": "a secret that only benchmarks use",
            "MCP_RATE_LIMIT": "1000000000",
        }
        for name in ("small", "large")
    ]

    def fill(environment: dict[str, str], numbers: list[int]) -> crowded_shop.Crowded:
        return crowded_shop.fill(environment, crowded_shop.Sizes(*numbers))

    both = [filled("inventory", *arguments, fill) for arguments in zip(environments, sizes, strict=True)]
    command = [holdfast(), "inventory", "serve", "--port", "0", "--no-background"]
    with server(command, environments[0]) as small, server(command, environments[1]) as large:
        ports = (small, large)
        lists = [crowded_shop.lists(database, port) for database, port in zip(both, ports, strict=True)]
        measure_lists("Lists of the inventory service", ports, lists, run.pages)
        table = table_of_paths("Hot paths of the inventory service", run.requests, run.rounds)
        paths = [crowded_shop.paths(database) for database in both]
        for name in paths[0]:
            compare(table, name, ports, paths, run.requests, run.rounds)
        say(table)


def filled(
    service: str, environment: dict[str, str], numbers: list[int], fill: Callable[[dict[str, str], list[int]], T]
) -> T:
    """A migrated database with rows in it."""
    subprocess.run([holdfast(), service, "migrate"], env=environment, check=True, capture_output=True)
    started = time.perf_counter()
    database = fill(environment, numbers)
    say(f"{service}: filled with {numbers[0]:,} and more in {time.perf_counter() - started:.0f} s")
    return database


if __name__ == "__main__":
    typer.run(main)
