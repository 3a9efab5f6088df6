"""What one process does that works for a part of its time, by the model."""

from typing import NamedTuple

from benchmarks.scale import inputs
from benchmarks.scale.clients import OpenLoop, percentile
from benchmarks.scale.costs import CallCosts, Cost, Costs
from benchmarks.scale.engine import Cores, Simulation
from benchmarks.scale.model import MICRO, Kind, Primary, Process

CALLS = 1_500
"""The calls of each run of the model for a plan."""


class Cell(NamedTuple):
    """One process that does nothing but calls of one kind, for `FULL` of its time, with a core of the primary.

    per_second    calls
    together      calls in a batch
    service       processor seconds of the service for a call
    database      processor seconds of PostgreSQL for a call
    p50, p99      seconds until the answer
    """

    per_second: float
    together: float
    service: float
    database: float
    p50: float
    p99: float


class Cells(dict[str, Cell]):
    """The cells by the name of the kind of call. How many calls share a batch is found by the model."""

    def __init__(self, costs: Costs) -> None:
        super().__init__()
        self._costs = costs

    def __missing__(self, name: str) -> Cell:
        cost, together, per_second = self._costs.calls[name], 4.0, 0.0
        latencies: list[float] = []
        for _ in range(3):
            per_second = inputs.FULL.value / _spent(cost.service, together)
            latencies, together = self._run(Kind(name, cost, standby=_standby(cost)), per_second)
        service, database = _spent(cost.service, together), _spent(cost.database, together)
        waits = percentile(latencies, 0.5), percentile(latencies, 0.99)
        self[name] = Cell(per_second, together, service, database, *waits)
        return self[name]

    def _run(self, kind: Kind, per_second: float) -> tuple[list[float], float]:
        """The latencies of some thousand calls, and how many calls were in a batch."""
        seconds = CALLS / per_second
        simulation = Simulation()
        primary = Primary(simulation, Cores(simulation, 1))
        process = Process(simulation, Cores(simulation, 1), primary)
        people = OpenLoop(
            simulation, [process], kind, per_second, seconds, seconds_one_way=inputs.SECONDS_ONE_WAY.value
        )
        simulation.run(seconds + 1)
        return people.seen.latencies[kind.name], people.seen.answered / max(1, primary.batches)


def _spent(cost: Cost, together: float) -> float:
    """Processor seconds for a call that shares a batch with others."""
    return (cost.call + cost.batch / together) * MICRO


def _standby(cost: CallCosts) -> float:
    return inputs.STANDBY.value if cost.wal else 0.0
