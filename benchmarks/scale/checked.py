"""What the last check found: the model beside real runs, as it was committed."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

FILE = Path(__file__).with_name("checked.json")


class Figures(Struct, frozen=True):
    """Answers a second, p50 and p99 in milliseconds, and how many cores were busy."""

    per_second: float
    p50: float
    p99: float
    busy: float


class Ratio(Struct, frozen=True):
    """What the model says as a part of what was real: the middle one of several comparisons, and the outermost."""

    middle: float
    lowest: float
    highest: float

    def __str__(self) -> str:
        return f"{self.middle:.2f} ({self.lowest:.2f} to {self.highest:.2f})"


class Compared(Struct, frozen=True):
    """One load: what was asked, by how many clients, and what the machine and the model gave, in the middle each."""

    clients: int
    what: str
    real: Figures
    model: Figures
    answers_ratio: Ratio
    p99_ratio: Ratio


class Checked(Struct, frozen=True):
    """load_before: the load of the machine before the check began."""

    checked_on: str
    load_before: float
    command: str
    loads: list[Compared]


def table_of_results(table: Callable[[Sequence[str], Iterable[Sequence[str]], int], str]) -> str:
    """The results as a table, and when they were found."""
    checked = msgspec.json.decode(FILE.read_bytes(), type=Checked)
    rows = [
        [
            f"{load.clients} clients: {load.what}",
            f"{load.real.per_second:,.0f}",
            str(load.answers_ratio),
            f"{load.real.p99:.1f}",
            str(load.p99_ratio),
        ]
        for load in checked.loads
    ]
    headings = ["load", "a second", "model/real", "p99, ms", "model/real"]
    when = f"{checked.checked_on}, with a load of {checked.load_before:g} before it began"
    return f"Checked on {when}.\n\n{table(headings, rows, 1)}"
