"""Plain reads: one thing, a list, availability, constant answers and pages, beside polls and a constant answer.

The kinds are measured by turns in rounds, so that all of them see the same machine. The processor time of the service
for each answer says more than the rate: other work on the machine disturbs it less.

python -m benchmarks.reads [--help]
"""

import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import httpx2
import psutil
import typer
from rich.table import Table

from benchmarks import load
from benchmarks.stage import say, server
from benchmarks.stock import SHOP, call, make_pools, tool_answer
from benchmarks.streams import is_listening

HERE = Path(__file__).parents[1]

VARIANT = "gid://shopify/ProductVariant/1"

POLLS = "poll of a registration"

EVENTS = 20
"""The events of the organizer: as many as one page shows."""


class Kind:
    """A kind of requests to one process, and what its rounds gave: answers a second, and microseconds for each."""

    def __init__(self, what: str, port: int, request: bytes, goal: str = "") -> None:
        self.what = what
        self.goal = goal
        self.rates: list[float] = []
        self.micros: list[float] = []
        self._port = port
        self._request = request
        self._process = next(process for process in psutil.process_iter() if is_listening(process, port))

    def measure(self, count: int) -> None:
        """Send a round."""
        before = self._processor_seconds()
        result = load.run(self._port, itertools.repeat(self._request, count))
        if set(result.statuses) != {200}:
            raise SystemExit(f"Not every answer to {self.what} was 200: {result.statuses}")
        self.rates.append(result.per_second)
        self.micros.append((self._processor_seconds() - before) / count * 1e6)

    def _processor_seconds(self) -> float:
        times = self._process.cpu_times()
        return times.user + times.system


def main(
    other: Annotated[
        Path | None, typer.Argument(help="Another checkout to compare with, with its environment in .venv.")
    ] = None,
    requests: Annotated[int, typer.Option(help="Requests of each round.")] = 2_000,
    rounds: Annotated[int, typer.Option(help="Portions of each kind; the median is reported.")] = 7,
    only: Annotated[str, typer.Option(help="Measure only kinds with this text in their names, and polls.")] = "",
) -> None:
    """Measure plain reads."""
    checkouts = [HERE, *([other.resolve()] if other else [])]
    with ExitStack() as stack:
        sides = [_kinds(checkout, stack) for checkout in checkouts]
        sides = [[kind for kind in side if only in kind.what or kind.what == POLLS] for side in sides]
        for number in range(rounds):
            for kinds in zip(*sides, strict=True):
                for kind in kinds if number % 2 else reversed(kinds):
                    kind.measure(requests)
    _show(sides, f"Reads: {rounds} rounds of {requests:,}, median, 64 connections")


def _show(sides: Sequence[Sequence[Kind]], title: str) -> None:
    table = Table(title=title)
    headings = ["what", "a second", "µs each", "of polls", *(["other: a second", "µs each"] if len(sides) > 1 else [])]
    for heading in (*headings, "goal"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    polls = median(next(kind for kind in sides[0] if kind.what == POLLS).rates)
    for kinds in zip(*sides, strict=True):
        figures = [(f"{median(kind.rates):,.0f}", f"{median(kind.micros):.0f}") for kind in kinds]
        of_polls = f"{median(kinds[0].rates) / polls:.2f}"
        table.add_row(kinds[0].what, *figures[0], of_polls, *itertools.chain(*figures[1:]), kinds[0].goal)
    say(table)


def _kinds(checkout: Path, stack: ExitStack) -> list[Kind]:
    """Serve a checkout on new databases until the stack is closed, and say what is asked of it."""
    environment = {
        **os.environ,
        "HOLDFAST_DATA_DIR": stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-reads-")),
        "API_REGISTRATION_RATE_LIMIT": "1000000000",
        "API_REGISTRATION_NOTIFY": "false",
        "MCP_RATE_LIMIT": "1000000000",
        "INVENTORY_SECRET_KEY": "a secret that only benchmarks use",
    }
    program = str(checkout / ".venv" / "bin" / "holdfast")
    events = stack.enter_context(server([program, "events", "serve", "--port", "0"], environment))
    inventory = stack.enter_context(
        server([program, "inventory", "serve", "--port", "0", "--no-background"], environment)
    )
    added = subprocess.run(
        [program, "inventory", "shop", "add", SHOP], env=environment, check=True, capture_output=True, text=True
    )
    return [*_of_events(events, stack), *_of_inventory(inventory, added.stdout.splitlines()[-1])]


def _of_events(port: int, stack: ExitStack) -> list[Kind]:
    base = f"http://127.0.0.1:{port}"
    organizer = {"name": "Benchmark", "email": "bench@example.com", "slug": "bench"}
    answer = httpx2.post(f"{base}/api/organizers/register", json={"organizer": organizer}).json()
    key = answer["data"]["api_key"]["key"]
    event: dict[str, Any] = {"title": "Sale", "body": "An evening.", "datetime": "2099-01-01T00:00:00Z", "price": 0}
    event |= {"pricing_mode": "free", "capacity": 100}
    with httpx2.Client(base_url=base, headers={"X-API-Key": key}) as client:
        ids = [client.post("/api/events", json={"event": event}).json()["data"]["id"] for _ in range(EVENTS)]
        person = {"registration": {"event_id": ids[0], "email": "one@example.com"}}
        poll = client.post("/api/registrations", json=person).json()["next"]["url"]
        while client.get(poll).status_code != 200:
            pass
    page = f"/organizers/bench/events/{ids[0]}"
    size = len(httpx2.get(f"{base}/llms.txt", headers={"Accept-Encoding": "identity"}).content)
    command = [sys.executable, "-m", "benchmarks.constant", str(size)]
    constant = stack.enter_context(server(command, {**os.environ}))
    return [
        Kind("constant of the size of /llms.txt (floor)", constant, load.request("GET", "/")),
        Kind(POLLS, port, load.request("GET", poll, key)),
        Kind("an event", port, load.request("GET", f"/api/events/{ids[0]}", key), "≥ 0.5 of polls"),
        Kind(f"list of {EVENTS} events", port, load.request("GET", "/api/events", key)),
        Kind("page of an event", port, load.request("GET", page)),
        Kind("page of an organizer", port, load.request("GET", "/organizers/bench"), "≥ 10,000"),
        Kind("/healthz", port, load.request("GET", "/healthz"), "as the page of an event"),
        Kind("/llms.txt", port, load.request("GET", "/llms.txt"), "as the page of an event"),
    ]


def _of_inventory(port: int, key: str) -> list[Kind]:
    (pool,) = make_pools(port, key, 1)
    members = [{"variant_gid": VARIANT, "units_per_sale": 1}]
    tool_answer(port, key, "create_pool", {"name": "Shelf", "quantity": 100, "members": members})
    return [
        Kind("tool get_pool", port, call(key, "get_pool", {"pool_id": pool})),
        Kind("tool get_availability", port, call(key, "get_availability", {"variant_gids": [VARIANT]}), "≥ 8,000"),
    ]


if __name__ == "__main__":
    typer.run(main)
