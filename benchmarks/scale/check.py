"""Compare the model with real runs under three loads that are not used to measure costs.

The load generator, the service and PostgreSQL share the cores of this machine, in the model too. The speed of its
processors and of its disk changes within seconds. So the costs of single calls are measured again right before and
right after each real run, as `benchmarks.scale.measure` does it, and the model of that run gets the mean of both.
During the run a fixed piece of work is timed again and again, and the cores of the model become faster and slower as
it did. Each load is run for some seconds; the kinds of calls are dealt out among the clients.

python -m benchmarks.scale.check [--help]
"""

import datetime as dt
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import mean, median
from typing import Annotated, NamedTuple

import msgspec
import typer
from rich.table import Table

from benchmarks.scale import checked
from benchmarks.scale.checked import Checked, Compared, Figures, Ratio
from benchmarks.scale.clients import ClosedLoop, percentile
from benchmarks.scale.costs import CallCosts, mean_costs
from benchmarks.scale.driving import Driven, Spent
from benchmarks.scale.engine import Cores, Simulation
from benchmarks.scale.measure import measured
from benchmarks.scale.model import Kind, Primary, Process
from benchmarks.scale.services import Events, events_service
from benchmarks.stage import say

MAIN = ("registrations by e-mail", "registrations by id", "polls", "joins")

SHARED_BATCHES: dict[str, str] = {
    "registrations by e-mail": "registrations",
    "registrations by id": "registrations",
}
"""Kinds of calls that are the same operation of the service."""

LOADS: tuple[tuple[int, tuple[str, ...]], ...] = ((64, ("registrations by e-mail",)), (200, ("joins",)), (500, MAIN))
"""The clients of each load, and what they ask."""

MAX_THROUGHPUT_DIFFERENCE, MAX_P99_DIFFERENCE = 0.15, 0.30
"""By how much the model may differ."""

WARM_SECONDS = 0.5

MEASURED_SECONDS = 1.5
"""Seconds for which one client, and then many, ask single calls of a kind."""


class Expected(NamedTuple):
    """What the model says: answers a second, p50 and p99 in seconds, and processor seconds a second in all."""

    per_second: float
    p50: float
    p99: float
    busy: float
    sent: int
    answered: int


class Comparison(NamedTuple):
    """One real run, and what the model says of it."""

    real: Figures
    model: Figures

    @property
    def answers_ratio(self) -> float:
        """The answers of the model as a part of the real ones."""
        return self.model.per_second / self.real.per_second

    @property
    def p99_ratio(self) -> float:
        """The p99 of the model as a part of the real one."""
        return self.model.p99 / self.real.p99


def expected(
    costs: Mapping[str, CallCosts], clients: int, cores: float, seconds: float = 4, paces: Sequence[float] = ()
) -> Expected:
    """Let the model run a closed loop of calls with these costs on a machine with this many cores.

    paces    how fast the machine is in equal parts of the time; 1 is what costs were measured with
    """
    simulation = Simulation()
    machine = Cores(simulation, cores)
    for number, pace in enumerate(paces):
        simulation.after(WARM_SECONDS + number * seconds / len(paces), partial(machine.set_pace, pace))
    process = Process(simulation, machine, Primary(simulation, machine))
    kinds = [Kind(name, cost, batches=SHARED_BATCHES.get(name)) for name, cost in costs.items()]
    clients_of_it = ClosedLoop(simulation, machine, process, kinds, clients, WARM_SECONDS)
    simulation.run(WARM_SECONDS + seconds)
    latencies = clients_of_it.seen.all
    return Expected(
        len(latencies) / seconds,
        percentile(latencies, 0.5),
        percentile(latencies, 0.99),
        machine.busy / simulation.now,
        clients_of_it.seen.sent,
        clients_of_it.seen.answered,
    )


def main(
    seconds: Annotated[float, typer.Option(help="Seconds of each real run.")] = 8,
    rounds: Annotated[int, typer.Option(help="Comparisons of each load; the middle of each figure counts.")] = 5,
) -> None:
    """Compare the model with real runs."""
    load_before = os.getloadavg()[0]
    loads: list[Compared] = []
    with events_service() as events:
        rest = events.bench.rest(1)
        for clients, names in LOADS:
            comparisons: list[Comparison] = []
            for _ in range(rounds):
                comparisons.append(compare(events, names, clients, seconds, rest))
                last = comparisons[-1]
                ratios = f"{last.answers_ratio:.2f} of answers, {last.p99_ratio:.2f} of p99"
                say(f"  {clients} clients: {ratios}", style="dim")
            loads.append(summary(clients, ", ".join(names), comparisons))
    day = dt.datetime.now(dt.UTC).date().isoformat()
    result = Checked(day, round(load_before, 1), "python -m benchmarks.scale.check", loads)
    checked.FILE.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")
    say(_table(result, f"Model beside real runs: {seconds:g} s, the middle of {rounds} each"))
    say(f"Goals: throughput within {MAX_THROUGHPUT_DIFFERENCE:.0%}, p99 within {MAX_P99_DIFFERENCE:.0%}.")
    if not all(is_right(load) for load in loads):
        say("Not every goal is met.")
        sys.exit(1)


def compare(events: Events, names: Sequence[str], clients: int, seconds: float, rest: Spent) -> Comparison:
    """Measure single calls, run the load, and measure single calls again.

    rest    what is spent in a second in which nothing is asked
    """
    kinds = [events.kinds[name] for name in names]
    before = [measured(events.bench, kind, MEASURED_SECONDS, rest) for kind in kinds]
    run = events.bench.drive(kinds, clients, seconds, warm=1)
    after = [measured(events.bench, kind, MEASURED_SECONDS, rest) for kind in kinds]
    costs = {
        name: mean_costs(early.costs(name, run.loop), late.costs(name, run.loop))
        for name, early, late in zip(names, before, after, strict=True)
    }
    model = expected(costs, clients, os.cpu_count() or 1, run.seconds, paces_of(run.loops))
    modelled = Figures(model.per_second, model.p50 * 1000, model.p99 * 1000, model.busy)
    return Comparison(_figures(run), modelled)


def paces_of(loops: Sequence[float]) -> list[float]:
    """How fast the machine was in each part of a run, from the times of the fixed piece of work."""
    return [mean(loops) / loop for loop in loops]


def summary(clients: int, what: str, comparisons: Sequence[Comparison]) -> Compared:
    """The middle of each figure of several comparisons."""
    return Compared(
        clients,
        what,
        _middle([one.real for one in comparisons]),
        _middle([one.model for one in comparisons]),
        _ratio([one.answers_ratio for one in comparisons]),
        _ratio([one.p99_ratio for one in comparisons]),
    )


def _middle(figures: Sequence[Figures]) -> Figures:
    return Figures(
        median(one.per_second for one in figures),
        median(one.p50 for one in figures),
        median(one.p99 for one in figures),
        median(one.busy for one in figures),
    )


def _ratio(ratios: Sequence[float]) -> Ratio:
    return Ratio(median(ratios), min(ratios), max(ratios))


def is_right(load: Compared) -> bool:
    """Whether the model is as near to the real runs as it should be."""
    return (
        abs(load.answers_ratio.middle - 1) <= MAX_THROUGHPUT_DIFFERENCE
        and abs(load.p99_ratio.middle - 1) <= MAX_P99_DIFFERENCE
    )


def _figures(run: Driven) -> Figures:
    latencies = run.all_latencies
    busy = (run.generator + run.spent.service + run.spent.database) / run.seconds
    p50, p99 = percentile(latencies, 0.5), percentile(latencies, 0.99)
    return Figures(run.answers / run.seconds, p50 * 1000, p99 * 1000, busy)


def _table(result: Checked, title: str) -> Table:
    table = Table(title=title)
    for heading in ("clients", "what", "", "a second", "p50 ms", "p99 ms", "cores busy"):
        table.add_column(heading, justify="left" if heading in {"what", ""} else "right")
    for load in result.loads:
        for who, figures in (("real", load.real), ("model", load.model)):
            latencies = [f"{figures.p50:.1f}", f"{figures.p99:.1f}", f"{figures.busy:.2f}"]
            table.add_row(f"{load.clients}", load.what, who, f"{figures.per_second:,.0f}", *latencies)
        table.add_row("", "", "model/real", str(load.answers_ratio), "", str(load.p99_ratio), "")
    return table


if __name__ == "__main__":
    typer.run(main)
