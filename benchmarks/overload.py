"""Ten times too much: what is accepted, what is refused, and who still gets an answer.

Clients come from many addresses. Each waits for its answer, and comes again after the seconds of Retry-After. First is
looked how many clients it takes to saturate a service; then come 1, 2, 5 and 10 times as many by turns.

python -m benchmarks.overload [--help]
"""

import resource
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from statistics import median
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.crowd import Crowd, CrowdedService, Kind, Seen, percentile
from benchmarks.overload_events import events
from benchmarks.overload_inventory import inventory
from benchmarks.overload_streams import Storm, storm

say = Console(width=200).print

SERVICES: Mapping[str, Callable[[str], AbstractContextManager[CrowdedService]]] = {
    "events": events,
    "inventory": inventory,
}

SATURATING = (64, 128, 256, 500)
"""The numbers of clients among which the smallest one is looked for that saturates the service."""

SATURATED = 0.95
"""The share of the most accepted that is taken as saturated."""

SEARCH_SECONDS = 2

TIMES = (1, 2, 5, 10)

MAX_CLIENTS = 5_000

HEADINGS = (
    "what",
    "clients",
    "accepted/s",
    "of best",
    "p50 ms",
    "p99 ms",
    "visible p99 ms",
    "refused/s",
    "told to wait",
    "µs a refusal",
    "slowest probe, p99 ms",
    "calm s",
    "MB",
    "service",
    "clients'",
    "other",
)

STORM_HEADINGS = (
    "streams",
    "count",
    "told to wait s",
    "all back after s",
    "p50 ms",
    "p99 ms",
    "refused",
    "closed",
    "slowest probe, p99 ms",
    "MB before",
    "MB after",
)


def main(
    only: Annotated[str, typer.Option(help="Only what has this text in its name, such as together, or streams.")] = "",
    service: Annotated[str, typer.Option(help="Only this service: events or inventory.")] = "",
    seconds: Annotated[float, typer.Option(help="Seconds of each run.")] = 3,
    rounds: Annotated[int, typer.Option(help="Runs of each number of clients; the medians are reported.")] = 3,
    streams: Annotated[int, typer.Option(help="Streams that reconnect at once.")] = 10_000,
    impatient: Annotated[bool, typer.Option(help="Clients that are refused send again at once.")] = False,
    markdown: Annotated[bool, typer.Option(help="Print the tables as Markdown.")] = False,
) -> None:
    """Measure both services under overload: each kind of request alone, all together, and streams that reconnect."""
    raise_file_limit()
    rows: list[Sequence[str]] = []
    storms: list[Sequence[str]] = []
    for serve in [SERVICES[service]] if service else SERVICES.values():
        with tempfile.TemporaryDirectory(prefix="holdfast-overload-") as directory, serve(directory) as crowded:
            for name, group in _groups(crowded).items():
                if only in name:
                    rows += _measure(crowded, name, group, seconds, rounds, not impatient)
            name = f"streams of {crowded.name}"
            if only in name:
                storms.append(_storm_row(name, [storm(crowded, streams) for _ in range(rounds)]))
    show = _show_markdown if markdown else _show
    show(f"Overload: {seconds:g} s each, median of {rounds}", HEADINGS, rows)
    show(f"Streams that reconnect at once, median of {rounds}", STORM_HEADINGS, storms)


def raise_file_limit() -> None:
    """Let this process and those that it starts open as many files as the system allows."""
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))


def _groups(service: CrowdedService) -> Mapping[str, Sequence[Kind]]:
    """Each kind alone, and all together. What is only ever refused is left out there."""
    together = [kind for kind in service.kinds if kind.status < 400]
    return {kind.name: [kind] for kind in service.kinds} | {f"all of {service.name} together": together}


def _measure(
    service: CrowdedService, name: str, kinds: Sequence[Kind], seconds: float, rounds: int, patient: bool
) -> list[Sequence[str]]:
    def run(clients: int, seconds: float) -> Seen:
        crowd = Crowd(service.port, service.process, patient=patient)
        seen = crowd.run(kinds, clients, service.probes, seconds=seconds)
        say(f"  {name}: {clients:,} clients, {seen.accepted:,.0f}/s", style="dim")
        return seen

    searches = [run(clients, SEARCH_SECONDS) for clients in SATURATING]
    max_accepted = max(search.accepted for search in searches)
    saturating = next(search.clients for search in searches if search.accepted >= SATURATED * max_accepted)
    runs: dict[int, list[Seen]] = {times: [] for times in TIMES}
    for _ in range(rounds):
        for times, same in runs.items():
            same.append(run(min(MAX_CLIENTS, saturating * times), seconds))
    return [_row(f"{name}, {times} times" if times > 1 else name, same, runs[1]) for times, same in runs.items()]


def _row(name: str, runs: Sequence[Seen], best: Sequence[Seen]) -> Sequence[str]:
    def of(figure: Callable[[Seen], float]) -> float:
        return median(map(figure, runs))

    def slowest(seen: Seen) -> tuple[float, str]:
        return max(((percentile(values, 0.99), name) for name, values in seen.probes.items()), default=(0.0, ""))

    best_accepted = median(seen.accepted for seen in best)
    pauses = [pause for seen in runs for pause in seen.pauses]
    other = sum((seen.other for seen in runs), runs[0].other.__class__())
    return (
        name,
        f"{runs[0].clients:,}",
        f"{of(lambda seen: seen.accepted):,.0f}",
        f"{of(lambda seen: seen.accepted) / max(best_accepted, 0.1):.2f}",
        f"{1000 * of(lambda seen: percentile(seen.latencies, 0.5)):,.0f}",
        f"{1000 * of(lambda seen: percentile(seen.latencies, 0.99)):,.0f}",
        f"{1000 * of(lambda seen: percentile(seen.visible, 0.99)):,.0f}" if any(seen.visible for seen in runs) else "",
        f"{of(lambda seen: seen.refused):,.0f}",
        f"{min(pauses)} to {max(pauses)} s" if pauses else "",
        _refusal_micros(runs, best),
        f"{sorted(map(slowest, runs))[len(runs) // 2][1]} {1000 * of(lambda seen: slowest(seen)[0]):,.0f}",
        f"{of(lambda seen: seen.calm):.1f}",
        f"{of(lambda seen: seen.megabytes):.0f}",
        f"{of(lambda seen: seen.service):.2f}",
        f"{of(lambda seen: seen.generator):.2f}",
        ", ".join(f"{status or 'closed'}: {count}" for status, count in other.items()),
    )


def _refusal_micros(runs: Sequence[Seen], best: Sequence[Seen]) -> str:
    """What a refusal costs, if what is accepted costs as much as without overload. Meaningful if most is refused."""
    an_answer = median(seen.service / max(1, seen.accepted) for seen in best)
    costs = [(seen.service - seen.accepted * an_answer) / seen.refused for seen in runs if seen.refused > seen.accepted]
    return f"{1e6 * median(costs):.0f}" if costs else ""


def _storm_row(name: str, storms: Sequence[Storm]) -> Sequence[str]:
    def of(figure: Callable[[Storm], float]) -> float:
        return median(map(figure, storms))

    return (
        name,
        f"{storms[0].streams:,}",
        f"{storms[0].retry[0]:.0f} to {storms[0].retry[1]:.0f}",
        f"{of(lambda seen: seen.back):.1f}",
        f"{1000 * of(lambda seen: seen.p50):,.0f}",
        f"{1000 * of(lambda seen: seen.p99):,.0f}",
        f"{of(lambda seen: seen.refused):,.0f}",
        f"{of(lambda seen: seen.closed):,.0f}",
        f"{storms[0].slowest} {1000 * of(lambda seen: seen.slowest_p99):,.0f}",
        f"{of(lambda seen: seen.before):.0f}",
        f"{of(lambda seen: seen.after):.0f}",
    )


def _show(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if rows:
        table = Table(title=title)
        for heading in headings:
            table.add_column(heading, justify="left" if heading == headings[0] else "right")
        for row in rows:
            table.add_row(*row)
        say(table)


def _show_markdown(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if rows:
        print(f"{title}:\n")
        for row in (headings, ["---", *["--:"] * (len(headings) - 1)], *rows):
            print(f"| {' | '.join(row)} |")
        print()


if __name__ == "__main__":
    typer.run(main)
