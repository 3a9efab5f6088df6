"""Reads rows from CSV and validates each cell, and writes rows as CSV.

Cells are separated by commas, semicolons or tabs: programs write what is usual in the country of their user.
A first line such as `sep=;` is skipped, and so are empty cells at the end of a line.
The apostrophe that is written before a cell that looks like a formula is removed when the cell is read.

A whole number is read if it is written with digits only, and a minus sign before them. Other spellings mean different
numbers in different countries: `1.000` is a thousand in German, and one in English. They are refused with the numbers
that they can mean.
"""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from holdfast.inventory.spreadsheets.model import MAX_ROWS, RowRefusal
from holdfast.kit.contract.command import integers, normalized
from holdfast.kit.contract.csv_cells import as_csv, original
from holdfast.kit.contract.messages import Message, message, message_of, translatable
from holdfast.kit.contract.problems import invalid
from holdfast.kit.contract.validation import mismatch

PLAIN = re.compile(r"0|-?[1-9][0-9]{0,18}")
SHORTENED = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)?[eE][+-]?[0-9]+")
"""What programs write for a long number that does not fit its column, with fewer digits than it has."""

SPACES_AND_QUOTES = re.compile("(?<=[0-9])[ \u00a0\u2009\u202f'\u2019](?=[0-9]{3}(?![0-9]))")
"""Separators of thousands that are no decimal signs anywhere."""

GROUPS = re.compile(r"([+-]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+)(?:,0+)?|([+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+)(?:\.0+)?")
"""A number with separators of thousands, and maybe with decimal places that are zero."""

DECIMALS = re.compile(r"([+-]?[0-9]+)[.,]([0-9]+)")
DIGITS = re.compile(r"[+-]?[0-9]+")
MAX_DIGITS = 40
"""The most characters of a cell whose number is named in a refusal."""

R = TypeVar("R", bound=msgspec.Struct)

SEPARATOR_LINE = re.compile(r'\A"?sep=([,;|\t])"?[,;|\t]*(?:\r\n|\r|\n|\Z)', re.IGNORECASE)
"""The line that tells Excel the separator. A program that takes it for a row may add empty cells to it."""


def whole_number(cell: str) -> int | str:
    """The number of a cell; the cell itself if it is no number at all.

    Raises ValueError with a message that names what the cell can mean, if that is not certain.
    """
    if PLAIN.fullmatch(cell):
        return int(cell)
    if refusal := _refusal(cell):
        raise ValueError(refusal)
    return cell


def _refusal(cell: str) -> Message | None:
    text = _ascii(cell)
    if len(text) > MAX_DIGITS:
        return None
    if SHORTENED.fullmatch(text):
        return message(
            "%(value)s was shortened, and digits may be lost: show the column as numbers without decimal places, "
            "and save it again",
            value=cell,
        )
    grouped = _grouped(text)
    if decimal := DECIMALS.fullmatch(text):
        integer, has_fraction = int(decimal[1]), bool(decimal[2].strip("0"))
        if grouped is not None:
            return _two_readings(cell, grouped, integer, has_fraction=has_fraction)
        return None if has_fraction else _only_reading(cell, integer)
    if grouped is not None:
        return _only_reading(cell, grouped)
    return _only_reading(cell, int(text)) if DIGITS.fullmatch(text) else None


def _ascii(cell: str) -> str:
    """The cell with digits and signs of ASCII, and without separators that cannot be decimal signs."""
    spaced = SPACES_AND_QUOTES.sub("", cell)
    return unicodedata.normalize("NFKC", spaced).replace("\N{MINUS SIGN}", "-")


def _grouped(text: str) -> int | None:
    """The number of a text with separators of thousands; None if it has none, or others."""
    groups = GROUPS.fullmatch(text)
    return int(re.sub("[.,]", "", groups[1] or groups[2])) if groups else None


def _two_readings(cell: str, grouped: int, integer: int, *, has_fraction: bool) -> Message:
    """The message about a cell with one separator, which may be of thousands or of decimal places."""
    text = translatable("%(value)s can mean %(one)s or %(other)s: write the number without separators")
    if has_fraction:
        text = translatable(
            "%(value)s can mean %(one)s, or %(other)s and a fraction: write the number without separators"
        )
    return message(text, value=cell, one=f"{grouped}", other=f"{integer}")


def _only_reading(cell: str, number: int) -> Message:
    return message("write %(number)s, not %(value)s", number=f"{number}", value=cell)


class RowMismatch(Exception):
    """A row does not fit."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A spreadsheet with a line of column names."""
    return as_csv([columns, *rows])


def read_rows(text: str, kind: type[R]) -> tuple[list[tuple[int, R]], list[RowRefusal]]:
    """The well-formed rows, each with its line, and the refusals of the others.

    Raises `validation_failed` if the text is not CSV with the expected columns.
    """
    text = text.removeprefix("\ufeff")
    separator = _separator(text)
    text, skipped = SEPARATOR_LINE.subn("", text)
    lines = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
    known_columns = kind.__struct_fields__
    good: list[tuple[int, R]] = []
    refusals: list[RowRefusal] = []
    try:
        columns = [name.strip().lower() for name in next(lines, [""])]
        while len(columns) > 1 and not columns[-1]:
            columns.pop()
        head = 1 + skipped
        if len(set(columns)) < len(columns) or not {*columns} <= {*known_columns}:
            wrong = message(
                "line %(line)s must name columns, each once, out of: %(columns)s",
                line=head,
                columns=", ".join(known_columns),
            )
            raise invalid({"text": [wrong]})
        if missing_columns := {field.name for field in msgspec.structs.fields(kind) if field.required} - {*columns}:
            names = ", ".join(sorted(missing_columns))
            raise invalid({"text": [message("line %(line)s lacks the columns: %(columns)s", line=head, columns=names)]})
        for cells in lines:
            if not any(cell.strip() for cell in cells):
                continue
            line = skipped + lines.line_num
            if len(good) + len(refusals) >= MAX_ROWS:
                raise invalid({"text": [message("has more than %(most)s rows: import it in parts", most=MAX_ROWS)]})
            try:
                good.append((line, _row(columns, _fitted(cells, separator, len(columns)), kind)))
            except RowMismatch as error:
                refusals.append(RowRefusal(line, error.message))
    except csv.Error as error:
        line = skipped + lines.line_num
        wrong = message("is not CSV at line %(line)s: %(why)s", line=line, why=_csv_error(error))
        raise invalid({"text": [wrong]}) from error
    return good, refusals


def _separator(text: str) -> str:
    """What separates the names of the columns; no name contains a separator."""
    declared = SEPARATOR_LINE.match(text)
    names = re.split(r"[\r\n]", text[declared.end() :] if declared else text, maxsplit=1)[0]
    return max([*(declared[1] if declared else ""), ",", ";", "\t"], key=names.count)


def _fitted(cells: Sequence[str], separator: str, count: int) -> Sequence[str]:
    """The cells of a row without empty ones that are too many.

    Tabs at the end of a line are often lost when rows are copied, so missing cells are empty there.
    """
    while len(cells) > count and not cells[-1].strip():
        cells = cells[:-1]
    return [*cells, *[""] * (count - len(cells))] if separator == "\t" else cells


def _row(columns: Sequence[str], cells: Sequence[str], kind: type[R]) -> R:
    if len(cells) != len(columns):
        raise RowMismatch(
            message("has %(cells)s cells under %(columns)s columns", cells=len(cells), columns=len(columns))
        )
    texts = {name: original(cell.strip()) for name, cell in zip(columns, cells, strict=True) if cell.strip()}
    values = {name: _number(name, text) if name in integers(kind) else text for name, text in texts.items()}
    try:
        return normalized(msgspec.convert(values, kind))
    except msgspec.ValidationError as error:
        path, reason = mismatch(error, kind, values)
        raise RowMismatch(column_message(path.removeprefix("."), reason) if path else reason) from error
    except ValueError as error:
        raise RowMismatch(message_of(error)) from error


def _number(column: str, text: str) -> int | str:
    try:
        return whole_number(text)
    except ValueError as error:
        raise RowMismatch(column_message(column, message_of(error))) from error


def column_message(column: str, reason: str) -> Message:
    """The message about a cell of a column, which line 1 names."""
    return message("%(column)s: %(message)s", column=column, message=reason)


def _csv_error(error: csv.Error) -> Message:
    """Why a text is not CSV: the module `csv` has it in English only."""
    text = str(error)
    if "expected after" in text:
        return message("after a quoted cell comes neither a separator nor the end of the line")
    if "field limit" in text:
        return message("a cell has more than %(most)s characters", most=csv.field_size_limit())
    return message("a quoted cell has no end")
