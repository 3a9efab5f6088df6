"""Cells of CSV files that people open in spreadsheet programs.

Such a program runs a cell that looks like a formula. So an apostrophe is put before a formula sign: at the beginning of
a cell, and after each character at which a program that does not split at commas may begin a new cell.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

SIGNS = "-=+@\uff1d\uff0b\uff0d\uff20"
"""The first characters of formulas: `=`, `+`, `-` and `@`, also in their full-width forms."""

UNMARKED = re.compile(rf"""\A(?=["' ]*[{SIGNS}]|'*[\t\r\n])|(?<=[;|\t\r\n])(?=["' ]*[{SIGNS}])""")
MARKED = re.compile(rf"""\A'(?=["' ]*[{SIGNS}]|'*[\t\r\n])|(?<=[;|\t\r\n])'(?=["' ]*[{SIGNS}])""")
"""The places where a formula could begin, without and with the apostrophe. The two patterns match the same places."""

BEGINNINGS = f"{SIGNS}\"' \t\r\n"
SEPARATORS = re.compile(r"[;|\t\r\n]")
"""A formula can begin only in a cell that begins with one of the first, or that contains one of the second."""


def as_csv(rows: Iterable[Sequence[Any]]) -> str:
    """Rows as CSV: lines end with CR and LF (RFC 4180). None is an empty cell."""
    text = io.StringIO()
    # The writer quotes cells that contain one of these two characters.
    csv.writer(text).writerows([neutral(cell) for cell in row] for row in rows)
    return text.getvalue()


def neutral(cell: Any) -> Any:
    """The cell in a form that no program runs."""
    if isinstance(cell, str) and (cell[:1] in BEGINNINGS or SEPARATORS.search(cell)):
        return UNMARKED.sub("'", cell)
    return cell


def original(cell: str) -> str:
    """The cell before it was made neutral."""
    return MARKED.sub("", cell)
