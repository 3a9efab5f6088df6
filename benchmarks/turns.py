"""Two checkouts by turns: both serve at the same time, and get portions of the same load one after the other.

The speed of a shared machine changes by a fifth within minutes, so one run of each says little about a few per cent.
Portions of half a second see the same machine, and the median of their ratios is steady.

python -m benchmarks.turns OTHER_CHECKOUT [--help]
"""

import os
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.table import Table

from benchmarks import load
from benchmarks.registrations import event_at
from benchmarks.stage import say, server

HERE = Path(__file__).parents[1]
CAPACITY = 10_000_000


class Side:
    """A checkout that serves. It has one event for new people, and another one for the same people."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.key, self.event_id = event_at(port, CAPACITY)
        _, self.second_event_id = event_at(port, CAPACITY, self.key)

    def new_people(self, numbers: range) -> Iterator[bytes]:
        return self._registrations(self.event_id, numbers)

    def known_people(self, numbers: range) -> Iterator[bytes]:
        return self._registrations(self.second_event_id, numbers)

    def event_reads(self, numbers: range) -> Iterator[bytes]:
        return (load.request("GET", f"/api/events/{self.event_id}", self.key) for _ in numbers)

    def _registrations(self, event_id: int, numbers: range) -> Iterator[bytes]:
        for number in numbers:
            body = msgspec.json.encode({"registration": {"event_id": event_id, "email": f"n{number}@example.com"}})
            yield load.request("POST", "/api/registrations", self.key, body)


KINDS: tuple[tuple[str, int, Callable[[Side, range], Iterator[bytes]]], ...] = (
    ("registrations of new people", 202, Side.new_people),
    ("registrations of known people", 202, Side.known_people),
    ("reads of an event", 200, Side.event_reads),
)
"""What is sent, the status of each answer, and the requests."""


def main(
    other: Annotated[Path, typer.Argument(help="Another checkout, with its environment in .venv.", exists=True)],
    pairs: Annotated[int, typer.Option(help="Pairs of portions of each kind.")] = 40,
    size: Annotated[int, typer.Option(help="Requests of a portion.")] = 3_000,
) -> None:
    """Compare the speed of this checkout with that of another one."""
    table = Table(title=f"By turns: {pairs} pairs of {size:,} requests of each kind, 64 connections")
    for heading in ("what", "this, a second", "other, a second", "this/other", "quartiles"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    with ExitStack() as stack:
        sides = [Side(_serve(checkout, stack)) for checkout in (HERE, other.resolve())]
        for what, status, requests in KINDS:
            seconds: list[list[float]] = [[], []]
            for pair in range(pairs):
                for place in (0, 1) if pair % 2 else (1, 0):
                    portion = list(requests(sides[place], range(pair * size, (pair + 1) * size)))
                    result = load.run(sides[place].port, iter(portion))
                    if set(result.statuses) != {status}:
                        raise SystemExit(f"Not every answer was {status}: {result.statuses}")
                    seconds[place].append(result.seconds)
            low, middle, high = statistics.quantiles((b / a for a, b in zip(*seconds, strict=True)), n=4)
            rates = [f"{size / statistics.median(column):,.0f}" for column in seconds]
            table.add_row(what, *rates, f"{middle:.2f}", f"{low:.2f} to {high:.2f}")
    say(table)


def _serve(checkout: Path, stack: ExitStack) -> int:
    """Serve a checkout on a new database until the stack is closed. Returns the port."""
    directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-turns-"))
    environment = {
        **os.environ,
        "HOLDFAST_DATA_DIR": directory,
        "API_REGISTRATION_RATE_LIMIT": "1000000000",
        "API_REGISTRATION_NOTIFY": "false",
    }
    program = str(checkout / ".venv" / "bin" / "holdfast")
    return stack.enter_context(server([program, "events", "serve", "--port", "0", "--no-background"], environment))


if __name__ == "__main__":
    typer.run(main)
