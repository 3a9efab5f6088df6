"""Two checkouts and the floor by turns: all serve at the same time, and get rounds of the same load one by one.

The speed of a shared machine changes by a fifth within minutes, so one run of each says little about a few per cent.
Portions of half a second see the same machine, and the median of their ratios is steady. The floor is the bare handler
with the same group commit (`benchmarks/bare.py`).

python -m benchmarks.turns OTHER_CHECKOUT [--help]
"""

import itertools
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import psycopg
import typer
from rich.table import Table

from benchmarks import load
from benchmarks.queue import queue_at
from benchmarks.registrations import event_at
from benchmarks.stage import say, server
from benchmarks.stock import SHOP, call, make_pools
from holdfast.kit.postgres import bundled

HERE = Path(__file__).parents[1]
CAPACITY = 10_000_000
POOLS = 1_000
SETTLE = "import asyncio, sys; from benchmarks.registrations import settled; print(*asyncio.run(settled(sys.argv[1])))"


class Side:
    """A checkout that serves, with an organizer, two events, a queue, and a shop with `POOLS` pools."""

    def __init__(self, checkout: Path, stack: ExitStack) -> None:
        self.checkout = checkout
        directory = bundled.scratch_directory()
        self.events_url = bundled.database_url(directory, "events")
        self.inventory_url = bundled.database_url(directory, "inventory")
        environment = {
            **os.environ,
            "EVENTS_DATABASE_URL": self.events_url,
            "INVENTORY_DATABASE_URL": self.inventory_url,
            "EVENTS_SECRET_KEY": "a secret that only benchmarks use",
            "INVENTORY_SECRET_KEY": "a secret that only benchmarks use",
            "HOLDFAST_DATA_DIR": str(directory),
            "API_REGISTRATION_NOTIFY": "false",
            **dict.fromkeys(
                ("API_REGISTRATION_RATE_LIMIT", "API_QUEUE_JOIN_RATE_LIMIT", "MCP_RATE_LIMIT"), "1000000000"
            ),
        }
        program = str(checkout / ".venv" / "bin" / "holdfast")
        for service in ("events", "inventory"):
            subprocess.run([program, service, "migrate"], env=environment, check=True, capture_output=True)
        serve = [program, "events", "serve", "--port", "0", "--no-background"]
        self.events = stack.enter_context(server(serve, environment))
        self.key, self.event_id = event_at(self.events, CAPACITY)
        _, self.second_event_id = event_at(self.events, CAPACITY, self.key)
        _, self.queue_id = queue_at(self.events, self.key)
        added = subprocess.run(
            [program, "inventory", "shop", "add", SHOP], env=environment, check=True, capture_output=True, text=True
        )
        self.shop_key = added.stdout.splitlines()[-1]
        self.inventory = stack.enter_context(server([program, "inventory", "serve", "--port", "0"], environment))
        self.pools = make_pools(self.inventory, self.shop_key, POOLS)

    def new_people(self, numbers: range) -> Iterator[bytes]:
        for number in numbers:
            yield self._registration({"event_id": self.event_id, "email": f"n{number}@example.com"})

    def known_people(self, numbers: range) -> Iterator[bytes]:
        for public_id in self._public_ids(numbers):
            yield self._registration({"event_id": self.second_event_id, "user_id": public_id})

    def polls(self, numbers: range) -> Iterator[bytes]:
        for public_id in self._public_ids(numbers):
            yield load.request("GET", f"/api/registrations/{self.event_id}/{public_id}", self.key)

    def event_reads(self, numbers: range) -> Iterator[bytes]:
        return (load.request("GET", f"/api/events/{self.event_id}", self.key) for _ in numbers)

    def joins(self, numbers: range) -> Iterator[bytes]:
        for number in numbers:
            body = msgspec.json.encode({"visitor_id": f"v{number}@example.com"})
            yield load.request("POST", f"/api/queues/{self.queue_id}/join", self.key, body)

    def hot_pool(self, numbers: range) -> Iterator[bytes]:
        return self._changes(self.pools[:1], numbers)

    def many_pools(self, numbers: range) -> Iterator[bytes]:
        return self._changes(self.pools, numbers)

    def settle(self) -> tuple[float, int]:
        """Settle all that was accepted. Returns the seconds it took, and the number of registrations."""
        python = str(self.checkout / ".venv" / "bin" / "python")
        settled = subprocess.run(
            [python, "-c", SETTLE, self.events_url], cwd=self.checkout, check=True, capture_output=True, text=True
        )
        seconds, count = settled.stdout.split()
        return float(seconds), int(count)

    def _registration(self, registration: dict[str, int | str]) -> bytes:
        return load.request("POST", "/api/registrations", self.key, msgspec.json.encode({"registration": registration}))

    def _changes(self, pools: Sequence[int], numbers: range) -> Iterator[bytes]:
        chance = random.Random(numbers.start)
        for _ in numbers:
            arguments = {"pool_id": chance.choice(pools), "delta": chance.choice([-1, 1, 2])}
            yield call(self.shop_key, "adjust_pool_quantity", arguments)

    def _public_ids(self, numbers: range) -> list[str]:
        """The public ids of the people who registered as the new ones with these numbers."""
        with psycopg.connect(self.events_url) as connection:
            emails = [f"n{number}@example.com" for number in numbers]
            rows = connection.execute("select public_id from users where email = any(%s)", [emails]).fetchall()
            return [public_id for (public_id,) in rows]


class Kind(NamedTuple):
    """A kind of requests: to which service, the status of each answer, and what the floor is asked meanwhile."""

    what: str
    service: str
    status: int
    requests: Callable[[Side, range], Iterator[bytes]]
    floor: tuple[bytes, int] | None


BODY = msgspec.json.encode({"registration": {"event_id": 1, "email": "someone@example.com"}})
STORED = (load.request("POST", "/bare", body=BODY), 202)
ANSWERED = (load.request("GET", "/bare/1/someone"), 200)

KINDS = (
    Kind("registrations of new people", "events", 202, Side.new_people, STORED),
    Kind("registrations by user id", "events", 202, Side.known_people, STORED),
    Kind("status polls", "events", 200, Side.polls, ANSWERED),
    Kind("reads of an event", "events", 200, Side.event_reads, None),
    Kind("joins of a queue", "events", 202, Side.joins, STORED),
    Kind("changes of one hot pool", "inventory", 200, Side.hot_pool, STORED),
    Kind(f"changes of {POOLS:,} pools", "inventory", 200, Side.many_pools, STORED),
)

SETTLED = "settled"


def main(
    other: Annotated[Path, typer.Argument(help="Another checkout, with its environment in .venv.", exists=True)],
    pairs: Annotated[int, typer.Option(help="Pairs of rounds of each kind.")] = 9,
    size: Annotated[int, typer.Option(help="Requests of a round.")] = 3_000,
    only: Annotated[str, typer.Option(help="Only kinds with this text in their names.")] = "",
) -> None:
    """Compare the speed of this checkout with that of another one, and with the floor."""
    table = Table(title=f"By turns: {pairs} pairs of {size:,} requests of each kind, 64 connections")
    for heading in ("what", "this, a second", "other, a second", "this/other", "range", "this/floor", "other/floor"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    with ExitStack() as stack:
        sides = [Side(checkout, stack) for checkout in (HERE, other.resolve())]
        url = bundled.database_url(bundled.scratch_directory(), "events")
        bare = stack.enter_context(
            server([sys.executable, "-m", "benchmarks.bare"], {**os.environ, "EVENTS_DATABASE_URL": url})
        )
        for kind in KINDS:
            if only not in kind.what and not kind.what.startswith("registrations"):
                continue  # polls, and registrations by id, are of people who have registered before
            seconds = [list[float](), list[float](), list[float]()]
            for pair in range(pairs):
                numbers = range(pair * size, (pair + 1) * size)
                for place in _turns(pair):
                    port = getattr(sides[place], kind.service)
                    seconds[place].append(_sent(port, list(kind.requests(sides[place], numbers)), kind.status))
                if kind.floor:
                    request, status = kind.floor
                    seconds[2].append(_sent(bare, [*itertools.repeat(request, size)], status))
            _add_row(table, kind.what, seconds, size)
            if kind.what == "registrations of new people" and only in SETTLED:
                _add_row(table, SETTLED, _settled(sides, pairs, size), 1)
            elif kind.what == "registrations of new people":
                for side in sides:
                    side.settle()  # for the polls
    say(table)


def _turns(pair: int) -> tuple[int, int]:
    """Which of two sides is first changes from pair to pair."""
    return (0, 1) if pair % 2 else (1, 0)


def _sent(port: int, requests: Sequence[bytes], status: int) -> float:
    """The seconds for a round."""
    result = load.run(port, iter(requests))
    if set(result.statuses) != {status}:
        raise SystemExit(f"Not every answer was {status}: {result.statuses}")
    return result.seconds


def _settled(sides: Sequence[Side], pairs: int, size: int) -> list[list[float]]:
    """The seconds for settling a registration."""
    seconds = [list[float](), list[float](), list[float]()]
    for side in sides:
        side.settle()
    for pair in range(pairs):
        numbers = range((pairs + pair) * size, (pairs + pair + 1) * size)
        for place in _turns(pair):
            _sent(sides[place].events, list(sides[place].new_people(numbers)), 202)
            took, count = sides[place].settle()
            seconds[place].append(took / count)
    return seconds


def _add_row(table: Table, what: str, seconds: Sequence[Sequence[float]], size: int) -> None:
    this, other, floor = seconds
    ratios = [theirs / ours for ours, theirs in zip(this, other, strict=True)]
    rates = [f"{size / statistics.median(column):,.0f}" for column in (this, other)]
    to_floor = [
        f"{statistics.median(bare / ours for ours, bare in zip(column, floor, strict=True)):.2f}" if floor else ""
        for column in (this, other)
    ]
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    table.add_row(what, *rates, f"{statistics.median(ratios):.2f}", spread, *to_floor)


if __name__ == "__main__":
    typer.run(main)
