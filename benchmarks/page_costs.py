"""What pages and lists that no cache keeps cost: microseconds of the service's processor time for each request.

The kinds are measured by turns, so that all of them see the same machine; so are two checkouts. PostgreSQL is not
counted.

python -m benchmarks.page_costs [OTHER_CHECKOUT] [--help]
"""

import os
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Annotated, NamedTuple

import psutil
import typer
from rich.table import Table

from benchmarks import crowded_shop, load
from benchmarks.page_cost_kinds import Kind, of_events, of_inventory
from benchmarks.stage import process_seconds, say, server
from benchmarks.streams import is_listening
from holdfast.kit.postgres import bundled

HERE = Path(__file__).parents[1]

SHOP = crowded_shop.Sizes(entries=2_000, variants=1_200, shops=10)


class MeasuredKind(NamedTuple):
    """A kind of requests, the port and process that answer them, and the microseconds of each round but the first."""

    kind: Kind
    port: int
    process_id: int
    costs: list[float]

    def measure(self, number: int, requests: int) -> None:
        """Send the requests of a round."""
        before = process_seconds(self.process_id)
        result = load.run(self.port, self.kind.requests(number, requests), 8)
        spent = process_seconds(self.process_id) - before
        if set(result.statuses) != {200}:
            raise SystemExit(f"Not every answer to {self.kind.what} was 200: {result.statuses}")
        if number:  # The first round compiles templates and fills what is kept.
            self.costs.append(spent / requests * 1e6)


def main(
    other: Annotated[
        Path | None, typer.Argument(help="Another checkout to compare with, with its environment in .venv.")
    ] = None,
    requests: Annotated[int, typer.Option(help="Requests of each round.")] = 300,
    rounds: Annotated[int, typer.Option(help="Portions of each kind; the median is reported.")] = 5,
    only: Annotated[str, typer.Option(help="Measure only kinds with this text in their names.")] = "",
) -> None:
    """Measure what pages and lists cost that no cache keeps."""
    with ExitStack() as stack:
        checkouts = [HERE, *([other.resolve()] if other else [])]
        sides = [[kind for kind in _served(checkout, stack) if only in kind.kind.what] for checkout in checkouts]
        for number in range(rounds + 1):
            for kinds in zip(*sides, strict=True):
                for kind in kinds if number % 2 else reversed(kinds):
                    kind.measure(number, requests)
    _show(sides, f"What no cache keeps: {rounds} rounds of {requests:,}, median")


def _show(sides: Sequence[Sequence[MeasuredKind]], title: str) -> None:
    table = Table(title=title)
    more = ["other", "this/other"] if len(sides) > 1 else []
    for heading in ("what", "µs of the service each", *more, "goal"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for kinds in zip(*sides, strict=True):
        figures = [f"{median(kind.costs):,.0f}" for kind in kinds]
        if more:
            ratios = [this / other for this, other in zip(*(kind.costs for kind in kinds), strict=True)]
            figures.append(f"{median(ratios):.2f}")
        table.add_row(kinds[0].kind.what, *figures, f"≤ {kinds[0].kind.goal:,}")
    say(table)


def _served(checkout: Path, stack: ExitStack) -> list[MeasuredKind]:
    """Serve a checkout on new databases until the stack is closed, and say what is asked of it."""
    directory = bundled.scratch_directory()
    url = bundled.database_url(directory, "events")
    environment = {
        **os.environ,
        "EVENTS_DATABASE_URL": url,
        "EVENTS_SECRET_KEY": "a secret that only benchmarks use",
        "INVENTORY_DATABASE_URL": bundled.database_url(directory, "inventory"),
        "INVENTORY_SECRET_KEY": "a secret that only benchmarks use",
        "API_REGISTRATION_RATE_LIMIT": "1000000000",
        "WAITING_ROOM_JOIN_RATE_LIMIT": "1000000000",
        "MCP_RATE_LIMIT": "1000000000",
    }
    program = str(checkout / ".venv" / "bin" / "holdfast")
    ports: list[int] = []
    for service in ("events", "inventory"):
        subprocess.run([program, service, "migrate"], env=environment, check=True, capture_output=True)
        serve = [program, service, "serve", "--port", "0", "--no-background"]
        ports.append(stack.enter_context(server(serve, environment)))
    events, inventory = ports
    return [
        *_measured(events, of_events(events, url)),
        *_measured(inventory, of_inventory(inventory, crowded_shop.fill(environment, SHOP))),
    ]


def _measured(port: int, kinds: Sequence[Kind]) -> list[MeasuredKind]:
    process = next(process for process in psutil.process_iter() if is_listening(process, port))
    return [MeasuredKind(kind, port, process.pid, []) for kind in kinds]


if __name__ == "__main__":
    typer.run(main)
