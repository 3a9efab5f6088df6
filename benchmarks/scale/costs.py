"""What single calls cost, as it was measured: the input of the model."""

from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

FILE = Path(__file__).with_name("costs.json")


class Cost(Struct, frozen=True):
    """Processor microseconds of one part for a kind of call: for each batch, and for each call in it."""

    batch: float
    call: float

    def times(self, factor: float) -> "Cost":
        return Cost(self.batch * factor, self.call * factor)


class CallCosts(Struct, frozen=True):
    """What one kind of call costs.

    waits       microseconds of a batch in which no processor works for it, mostly the commit, and pauses of the
                process, PostgreSQL and the disk: quantiles of 0, 0.05 … 0.95 and 0.995
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

    def times(self, factor: float) -> "CallCosts":
        """The costs on a machine of which the processor takes so many times as long."""
        parts = (part.times(factor) for part in (self.generator, self.service, self.database))
        return replace(self, **dict(zip(("generator", "service", "database"), parts, strict=True)))


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

    def times(self, factor: float) -> "Costs":
        """The costs of calls on a machine of which the processor takes so many times as long."""
        return replace(self, calls={name: call.times(factor) for name, call in self.calls.items()})


def read() -> Costs:
    """Read the committed costs."""
    return msgspec.json.decode(FILE.read_bytes(), type=Costs)


def write(costs: Costs) -> None:
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(costs), indent=2) + b"\n")
