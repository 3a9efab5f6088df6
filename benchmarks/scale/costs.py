"""What single calls cost, as it was measured: the input of the model."""

from pathlib import Path

import msgspec
from msgspec import Struct

FILE = Path(__file__).with_name("costs.json")


class Cost(Struct, frozen=True):
    """Processor microseconds of one part for a kind of call: for each batch, and for each call in it."""

    batch: float
    call: float


class CallCosts(Struct, frozen=True):
    """What one kind of call costs.

    waits       microseconds of a batch in which no processor works for it, mostly the commit:
                quantiles of 0, 0.05 … 0.95 and 0.995
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
        return sum(self.waits) / len(self.waits)


class Stalls(Struct, frozen=True):
    """Moments in which a process does nothing, though it has work: other programs, pauses of its own.

    seconds    how long some of them were
    """

    per_second: float
    seconds: tuple[float, ...]


NO_STALLS = Stalls(0, ())


class Costs(Struct, frozen=True):
    """Everything that was measured.

    machine     on what
    command     by what
    calls       by the name of the kind of call
    stalls      measured under 32 clients that poll
    single      microseconds and bytes of what is not a call, by name
    """

    measured_on: str
    machine: str
    command: str
    calls: dict[str, CallCosts]
    single: dict[str, float]
    stalls: Stalls


def read() -> Costs:
    """Read the committed costs."""
    return msgspec.json.decode(FILE.read_bytes(), type=Costs)


def write(costs: Costs) -> None:
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(costs), indent=2) + b"\n")
