"""Measures a service with little stored beside the same with much, by turns: lists, and hot paths."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import uvloop
from rich.table import Table

from benchmarks import load
from benchmarks.stage import Best, row, say

FAR = "far behind"
"""In the names of lists that are read far behind the first page."""

ENOUGH = 1.0
"""Seconds after which a slow list is read no more."""

WARM = 6
"""How often a list is read before it is timed: until then the database makes a new plan each time."""


class Path(NamedTuple):
    """A hot path. `requests`: makes a number of them, for the run with a number; each is answered by `status`."""

    requests: Callable[[int, int], Iterator[bytes]]
    status: int


def measure_lists(title: str, ports: Sequence[int], lists: Sequence[Mapping[str, bytes]], pages: int) -> None:
    """Print the time of a page of each list, for the small and the large database."""
    table = Table(title=f"{title}: a page, the median of {pages}")
    for heading in ("what", "small", "large", "large/small", "goal"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for name in lists[0]:
        few, many = (
            uvloop.run(_median(port, requests[name], pages)) for port, requests in zip(ports, lists, strict=True)
        )
        cells = [f"{few * 1000:,.1f} ms", f"{many * 1000:,.1f} ms", f"{many / few:.1f}"]
        table.add_row(name, *cells, "" if FAR in name else "≤ 3")
        say(f"  {name}: {', '.join(cells)}", style="dim")
    say(table)


async def _median(port: int, request: bytes, pages: int) -> float:
    """The median of the seconds until the answer."""
    connection = await load.connect(port)
    seconds: list[float] = []
    while len(seconds) < WARM + pages and (len(seconds) < WARM + 3 or sum(seconds) < ENOUGH):
        sent = time.perf_counter()
        status, body = await connection.send(request)
        seconds.append(time.perf_counter() - sent)
        if status != 200 or b'"isError":true' in body:
            raise SystemExit(f"{request.decode()} was answered by {status}: {body[:500].decode()}")
    return statistics.median(seconds[WARM:])


def table_of_paths(title: str, requests: int, rounds: int) -> Table:
    table = Table(title=f"{title}: {requests:,} requests a run, best of {rounds}, 64 connections")
    for heading in ("what, a second", "large", "small", "large/small", "goal"):
        table.add_column(heading, justify="left" if heading.startswith("what") else "right")
    return table


def compare(
    table: Table, name: str, ports: Sequence[int], paths: Sequence[Mapping[str, Path]], requests: int, rounds: int
) -> None:
    """Add a row for a hot path: the large database beside the small one."""
    say(f"  {name}", style="dim")
    few, many = Best(), Best()
    for run in range(rounds):
        for port, of, best in zip(ports, paths, (few, many), strict=True):
            made = [*of[name].requests(requests, run)]
            best.take(load.run(port, iter(made)), of[name].status)
    row(table, name, many, few, "≥ 0.9")
