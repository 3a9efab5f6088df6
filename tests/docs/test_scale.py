"""The model of `docs/scale.md` is right where the answer is known, and the tables of the page are those it gives."""

import re
from functools import partial
from random import Random

import pytest

from benchmarks.scale import costs, document, plans
from benchmarks.scale.clients import ClosedLoop, OpenLoop
from benchmarks.scale.costs import QUANTILES, CallCosts, Cost
from benchmarks.scale.engine import Cores, Lock, Simulation
from benchmarks.scale.model import Kind, Primary, Process
from benchmarks.scale.waits import waits_behind, weighted

NOTHING = Cost(0, 0)


def kind(
    *, generator: float = 0, service: float = 0, database: Cost = NOTHING, wait: float = 0, lock: Lock | None = None
) -> Kind:
    return Kind(
        "call", CallCosts(Cost(0, generator), Cost(0, service), database, (wait,) * len(QUANTILES), 0, 0), lock=lock
    )


def mean_stay(load: float, *, shared: bool) -> float:
    """The mean stay of people who come by chance to one server that needs a second for each."""
    simulation, lock, chance = Simulation(), Lock(), Random(3)
    cores = Cores(simulation, 1)
    stays: list[float] = []

    def leave(came: float) -> None:
        stays.append(simulation.now - came)
        if not shared:
            lock.give_back()

    def come() -> None:
        serve = partial(cores.run, 1.0, partial(leave, simulation.now))
        serve() if shared else lock.take(serve)
        simulation.after(chance.expovariate(load), come)

    come()
    simulation.run(10_000)
    return sum(stays) / len(stays)


def test_work_takes_longer_while_the_machine_is_slower() -> None:
    simulation, ends = Simulation(), list[float]()
    cores = Cores(simulation, 1)
    cores.run(3, lambda: ends.append(simulation.now))
    simulation.after(1, partial(cores.set_pace, 0.5))
    simulation.after(3, partial(cores.set_pace, 2))

    simulation.run(10)

    assert ends == [3.5]  # 1 at full speed, 1 in two seconds, 1 in half a second
    assert cores.busy == 3.5


def test_the_waits_that_are_drawn_have_the_measured_quantiles_and_the_mean_of_the_page() -> None:
    costs = CallCosts(NOTHING, NOTHING, NOTHING, (0, 10, 20, 40, 90, 100, 300, 500, 900, 5_000), 0, 0)
    shares = [(number + 0.5) / 100_000 for number in range(100_000)]

    assert [costs.wait_at(share / QUANTILES[-1]) for share in QUANTILES] == pytest.approx(costs.waits)
    assert sum(map(costs.wait_at, shares)) / len(shares) == pytest.approx(costs.wait, rel=1e-3)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_waits_at_one_server_are_those_of_the_formulas(load: float) -> None:
    in_order = 1 + load / (2 * (1 - load))
    assert mean_stay(load, shared=False) == pytest.approx(in_order, rel=0.06)
    assert mean_stay(load, shared=True) == pytest.approx(1 / (1 - load), rel=0.06)


def throughput(call: Kind, clients: int) -> tuple[float, int]:
    """Answers a second to this many clients, who have a core of their own; and how many calls are under way then."""
    simulation = Simulation()
    primary = Primary(simulation, Cores(simulation, 1))
    process = Process(simulation, Cores(simulation, 1), primary)
    loop = ClosedLoop(simulation, Cores(simulation, 1), process, [call], clients, warm=0.1)
    simulation.run(0.35)
    return len(loop.seen.all) / 0.25, loop.seen.sent - loop.seen.answered


@pytest.mark.parametrize("clients", [1, 4, 256])
def test_a_closed_loop_is_as_fast_as_its_clients_or_as_its_slowest_part(clients: int) -> None:
    per_second, under_way = throughput(kind(generator=60, service=100), clients)
    assert per_second == pytest.approx(min(clients / 160e-6, 1 / 100e-6), rel=0.15 if clients == 4 else 0.02)
    assert under_way == clients


def test_a_batch_waits_for_one_commit_however_many_calls_are_in_it() -> None:
    stored = kind(database=Cost(1000, 0), wait=3000)
    assert throughput(stored, 1)[0] == pytest.approx(1 / 4e-3, rel=0.02)
    # Half of the clients are in the batch that is in progress, the others wait for the next one.
    assert throughput(stored, 100)[0] == pytest.approx(50 / 4e-3, rel=0.02)


def test_a_lock_lets_one_batch_of_all_processes_pass_at_a_time() -> None:
    simulation, lock = Simulation(), Lock()
    primary = Primary(simulation, Cores(simulation, 16))
    processes = [Process(simulation, Cores(simulation, 1), primary) for _ in range(4)]
    OpenLoop(simulation, processes, kind(database=Cost(1000, 0), wait=3000, lock=lock), 20_000, 0.5)
    simulation.run(0.4)
    assert primary.batches == pytest.approx(0.4 / 4e-3, rel=0.05)


def test_under_overload_no_visitor_is_lost_and_refused_visitors_come_again() -> None:
    simulation = Simulation()
    process = Process(simulation, Cores(simulation, 1), Primary(simulation, Cores(simulation, 1)))
    people = OpenLoop(simulation, [process], kind(database=Cost(0, 5000)), 600, 6)
    simulation.run(50)
    assert people.seen.refused > 0
    assert people.seen.answered == people.seen.sent > 3_000


def test_waits_behind_a_resource_follow_from_arrivals_and_served_requests() -> None:
    waits = waits_behind([100, 100, 0, 0], 50)
    assert [wait for _, wait in waits] == [0.5, 1.5, 1.5, 0.5]
    assert weighted(waits, 0.99) == 1.5
    assert plans.page_loads(200_000, 100) == pytest.approx(6_000 / 5 + 24_000 / 15 + 60_000 / 30 + 110_000 / 60)


def test_the_tables_of_the_page_follow_from_the_committed_costs() -> None:
    page = document.PAGE.read_text(encoding="utf-8")
    assert page == document.written(page), "python -m benchmarks.scale.document"
    assert page.count(f"{document.COMMAND} -->") == 12


def test_the_costs_of_a_mail_are_those_of_the_benchmarks() -> None:
    section = (document.PAGE.parent / "benchmarks.md").read_text(encoding="utf-8").split("\n## Mails\n")[1]
    [figures] = re.findall(
        r"^\| answers at once .*\| 1 \| (\d+) \| ([\d.]+) ms \| ([\d.]+) ms \|$", section, re.MULTILINE
    )
    single = costs.read().single

    assert [
        single["mails a second"],
        single["mail, microseconds of the service"] / 1000,
        single["mail, microseconds of PostgreSQL"] / 1000,
    ] == pytest.approx([float(figure) for figure in figures], rel=0.2)
