"""Cells of CSV files that people open in spreadsheet programs.

Such a program runs a cell that looks like a formula. A cell like that is written with an apostrophe before it.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", *"\uff1d\uff0b\uff0d\uff20")
"""How a cell begins that may be run: the last four are the full-width forms of the first four."""


def as_csv(rows: Iterable[Sequence[Any]]) -> str:
    """Rows as CSV: lines end with CR and LF (RFC 4180). None is an empty cell."""
    text = io.StringIO()
    # It quotes what has one of both characters in it.
    csv.writer(text).writerows([neutral(cell) for cell in row] for row in rows)
    return text.getvalue()


def neutral(cell: Any) -> Any:
    """A cell that no program runs."""
    if cell is None:
        return ""
    return f"'{cell}" if isinstance(cell, str) and cell.lstrip("'").startswith(FORMULA) else cell


def original(cell: str) -> str:
    """What a cell was before it was made neutral."""
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(FORMULA) else cell
