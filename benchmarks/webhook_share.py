"""What webhooks cost while no tenant has an endpoint: two installations in turn, one with the triggers of webhooks.

Summed is the processor time of the service and of PostgreSQL; for registrations until all of a round are settled.

python -m benchmarks.webhook_share [--help]
"""

import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Annotated, NamedTuple

import psycopg
import typer
from psycopg.sql import SQL, Identifier
from rich.table import Table

from benchmarks import load
from benchmarks.scale.driving import Bench
from benchmarks.stage import say
from benchmarks.turns import HERE, Side

TRIGGERS = """
    select tgrelid::regclass::text, tgname from pg_trigger where starts_with(tgname, 'tell_webhooks_')
"""


class Kind(NamedTuple):
    """A kind of requests: to which service, the status of each answer, and whether all of them are settled then."""

    what: str
    service: str
    status: int
    requests: Callable[[Side, range], Iterator[bytes]]
    is_settled: bool = False


KINDS = (
    Kind("registrations, until they are settled", "events", 202, Side.new_people, is_settled=True),
    Kind("joins of a queue", "events", 202, Side.joins),
    Kind("changes of one hot pool", "inventory", 200, Side.hot_pool),
    Kind("changes of 1,000 pools", "inventory", 200, Side.many_pools),
)


def main(
    pairs: Annotated[int, typer.Option(help="Pairs of rounds of each kind.")] = 9,
    size: Annotated[int, typer.Option(help="Requests of a round.")] = 5_000,
    only: Annotated[str, typer.Option(help="Only kinds with this text in their names.")] = "",
) -> None:
    """Compare the processor time with and without the triggers of webhooks, while there is no endpoint."""
    table = Table(title=f"Processor time of a request, µs: {pairs} pairs of {size:,}")
    for heading in ("what", "without triggers", "with triggers", "more, median", "range"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    with ExitStack() as stack:
        without, present = Side(HERE, stack), Side(HERE, stack)
        for url in (without.events_url, without.inventory_url):
            _drop_triggers(url)
        for kind in (kind for kind in KINDS if only in kind.what):
            seconds: tuple[list[float], list[float]] = ([], [])
            for pair in range(-1, pairs):  # the first pair warms up
                for place in (0, 1) if pair % 2 else (1, 0):
                    numbers = range((pair + 1) * size, (pair + 2) * size)
                    spent = _spent((without, present)[place], kind, numbers)
                    if pair >= 0:
                        seconds[place].append(spent)
            shares = [more / less - 1 for less, more in zip(*seconds, strict=True)]
            table.add_row(
                kind.what,
                *(f"{statistics.median(column) / size * 1e6:.0f}" for column in seconds),
                f"{statistics.median(shares):.1%}",
                f"{min(shares):.1%} to {max(shares):.1%}",
            )
    say(table)


def _drop_triggers(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for table, trigger in connection.execute(TRIGGERS).fetchall():
            connection.execute(SQL("drop trigger {} on {}").format(Identifier(trigger), Identifier(table)))


def _spent(side: Side, kind: Kind, numbers: range) -> float:
    """The processor seconds of a round."""
    requests = list(kind.requests(side, numbers))
    url = side.events_url if kind.service == "events" else side.inventory_url
    bench = Bench(getattr(side, kind.service), url)
    before = bench.spent()
    result = load.run(bench.port, iter(requests))
    if set(result.statuses) != {kind.status}:
        raise SystemExit(f"Not every answer was {kind.status}: {result.statuses}")
    if kind.is_settled:
        side.settle()
    spent = bench.spent().since(before)
    return spent.service + spent.database


if __name__ == "__main__":
    typer.run(main)
