"""Cells of CSV files that people open in spreadsheet programs.

Such a program runs a cell that looks like a formula. So an apostrophe is put before a formula sign: at the beginning of
a cell, and after each character at which a program may begin a new cell, whatever separates the cells of the file.

A program splits a file at the separator of its user's country, and reads amounts with its decimal sign. No file begins
with a line such as `sep=;`: Excel then takes a file with a byte order mark for one that is not UTF-8.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple


class CsvFormat(NamedTuple):
    """How the programs of a country write CSV: what separates cells, and the decimal sign of amounts."""

    separator: str
    decimal_sign: str


RFC_4180 = CsvFormat(",", ".")

BYTE_ORDER_MARK = "\ufeff"
"""At the beginning of a file it tells spreadsheet programs that the file is UTF-8."""

SIGNS = "-=+@\uff1d\uff0b\uff0d\uff20"
"""The first characters of formulas: `=`, `+`, `-` and `@`, also in their full-width forms."""

UNMARKED = re.compile(rf"""\A(?=["' ]*[{SIGNS}]|'*[\t\r\n])|(?<=[,;|\t\r\n])(?=["' ]*[{SIGNS}])""")
MARKED = re.compile(rf"""\A'(?=["' ]*[{SIGNS}]|'*[\t\r\n])|(?<=[,;|\t\r\n])'(?=["' ]*[{SIGNS}])""")
"""The places where a formula could begin, without and with the apostrophe. The two patterns match the same places."""

BEGINNINGS = f"{SIGNS}\"' \t\r\n"
SEPARATORS = re.compile(r"[,;|\t\r\n]")
"""A formula can begin only in a cell that begins with one of the first, or that contains one of the second."""


def csv_format(decimal_sign: str) -> CsvFormat:
    """The format of countries with a decimal sign: where that is a comma, semicolons separate cells."""
    return CsvFormat(";" if decimal_sign == "," else ",", decimal_sign)


def as_csv(rows: Iterable[Sequence[Any]], format: CsvFormat = RFC_4180) -> str:
    """Rows as CSV: lines end with CR and LF (RFC 4180). None is an empty cell; a `Decimal` has the decimal sign."""
    return _written(([_text(cell, format) for cell in row] for row in rows), format.separator)


def with_separator(text: str, separator: str) -> str:
    """A text of `as_csv` with another separator. It has no amounts with decimal places."""
    return _written(csv.reader(io.StringIO(text, newline="")), separator)


def _written(rows: Iterable[Sequence[Any]], separator: str) -> str:
    text = io.StringIO()
    # The writer quotes cells that contain the separator, a quote or one of the two line breaks.
    csv.writer(text, delimiter=separator).writerows(rows)
    return text.getvalue()


def _text(cell: Any, format: CsvFormat) -> Any:
    return str(cell).replace(".", format.decimal_sign) if isinstance(cell, Decimal) else neutral(cell)


def neutral(cell: Any) -> Any:
    """The cell in a form that no program runs."""
    if isinstance(cell, str) and (cell[:1] in BEGINNINGS or SEPARATORS.search(cell)):
        return UNMARKED.sub("'", cell)
    return cell


def original(cell: str) -> str:
    """The cell before it was made neutral."""
    return MARKED.sub("", cell)
