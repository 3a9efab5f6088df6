"""What single calls cost, as it was measured: the input of the model."""

from bisect import bisect_right
from itertools import pairwise
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

FILE = Path(__file__).with_name("costs.json")

QUANTILES = (0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995)
"""The shares of waits that are kept. What is rarer than the last is left out: a short measurement says little of it."""


class Cost(Struct, frozen=True):
    """Processor microseconds of one part for a kind of call: for each batch, and for each call in it."""

    batch: float
    call: float


class CallCosts(Struct, frozen=True):
    """What one kind of call costs.

    waits       microseconds of a batch in which no processor works for it, mostly the commit, and pauses of the
                process, PostgreSQL and the disk: the quantiles of `QUANTILES`
    sent        bytes of a request
    received    bytes of an answer
    wal         bytes that PostgreSQL writes to its log for a call
    stored      bytes by which the database grows for a call
    """

    generator: Cost
    service: Cost
    database: Cost
    waits: tuple[float, ...]
    sent: float
    received: float
    wal: float = 0
    stored: float = 0

    @property
    def wait(self) -> float:
        """The mean of the waits."""
        parts = zip(pairwise(QUANTILES), pairwise(self.waits), strict=True)
        return sum((to - since) * (low + high) / 2 for (since, to), (low, high) in parts) / QUANTILES[-1]

    def wait_at(self, share: float) -> float:
        """The wait that this share of the waits, 0 to 1, does not exceed."""
        share *= QUANTILES[-1]
        place = bisect_right(QUANTILES, share, hi=len(QUANTILES) - 1) - 1
        since, to = QUANTILES[place : place + 2]
        low, high = self.waits[place : place + 2]
        return low + (high - low) * (share - since) / (to - since)


def mean_costs(early: CallCosts, late: CallCosts) -> CallCosts:
    """The mean of two measurements of one kind of call."""

    def mean_of(first: Cost, second: Cost) -> Cost:
        return Cost((first.batch + second.batch) / 2, (first.call + second.call) / 2)

    return replace(
        early,
        generator=mean_of(early.generator, late.generator),
        service=mean_of(early.service, late.service),
        database=mean_of(early.database, late.database),
        waits=tuple(sum(pair) / 2 for pair in zip(early.waits, late.waits, strict=True)),
    )


class Costs(Struct, frozen=True):
    """Everything that was measured.

    machine     on what
    command     by what
    loop        the seconds of a fixed piece of work at that speed of the machine (`driving.LOOPS`)
    calls       by the name of the kind of call
    single      microseconds and bytes of what is not a call, by name
    """

    measured_on: str
    machine: str
    command: str
    loop: float
    calls: dict[str, CallCosts]
    single: dict[str, float]


def read() -> Costs:
    """Read the committed costs."""
    return msgspec.json.decode(FILE.read_bytes(), type=Costs)


def write(costs: Costs) -> None:
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(costs), indent=2) + b"\n")
