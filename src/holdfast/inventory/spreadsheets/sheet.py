"""CSV as text: rows out of it, each cell checked, and rows into it.

The apostrophe that is written before a cell that looks like a formula is removed when the cell is read.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from holdfast.inventory.spreadsheets.model import MOST_ROWS, Refused
from holdfast.kit.cells import as_csv, original
from holdfast.kit.command import sound
from holdfast.kit.problems import invalid
from holdfast.kit.said import Said, said, told
from holdfast.kit.validation import misfit

R = TypeVar("R", bound=msgspec.Struct)


class Misread(Exception):
    """A row does not fit."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def written(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A spreadsheet with a line of column names."""
    return as_csv([columns, *rows])


def read(text: str, kind: type[R]) -> tuple[list[tuple[int, R]], list[Refused]]:
    """The rows that are well-formed, each with its line, and a report on the others.

    Raises `validation_failed` when the text is not CSV with the columns that are expected.
    """
    lines = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    known = kind.__struct_fields__
    good: list[tuple[int, R]] = []
    refused: list[Refused] = []
    try:
        columns = [name.strip().lower() for name in next(lines, [""])]
        if len(set(columns)) < len(columns) or not {*columns} <= {*known}:
            wrong = said("line 1 must name columns, each once, out of: %(columns)s", columns=", ".join(known))
            raise invalid({"text": [wrong]})
        if missing := {field.name for field in msgspec.structs.fields(kind) if field.required} - {*columns}:
            raise invalid({"text": [said("line 1 lacks the columns: %(columns)s", columns=", ".join(sorted(missing)))]})
        for cells in lines:
            if not any(cells):
                continue
            if len(good) + len(refused) >= MOST_ROWS:
                raise invalid({"text": [said("has more than %(most)s rows: import it in parts", most=MOST_ROWS)]})
            try:
                good.append((lines.line_num, _row(columns, cells, kind)))
            except Misread as error:
                refused.append(Refused(lines.line_num, error.message))
    except csv.Error as error:
        wrong = said("is not CSV at line %(line)s: %(why)s", line=lines.line_num, why=_why(error))
        raise invalid({"text": [wrong]}) from error
    return good, refused


def _row(columns: Sequence[str], cells: Sequence[str], kind: type[R]) -> R:
    if len(cells) != len(columns):
        raise Misread(said("has %(cells)s cells under %(columns)s columns", cells=len(cells), columns=len(columns)))
    values = {name: original(cell.strip()) for name, cell in zip(columns, cells, strict=True) if cell.strip()}
    try:
        return sound(msgspec.convert(values, kind, strict=False))
    except msgspec.ValidationError as error:
        place, message = misfit(error, kind, values)
        raise Misread(of_column(place.removeprefix("."), message) if place else message) from error
    except ValueError as error:
        raise Misread(told(error)) from error


def of_column(column: str, message: str) -> Said:
    """What is wrong with the cell of a column, which people know by the name in line 1."""
    return said("%(column)s: %(message)s", column=column, message=message)


def _why(error: csv.Error) -> Said:
    """Why a text is not CSV: the module `csv` says it in English only."""
    text = str(error)
    if "expected after" in text:
        return said("after a quoted cell comes neither a comma nor the end of the line")
    if "field limit" in text:
        return said("a cell has more than %(most)s characters", most=csv.field_size_limit())
    return said("a quoted cell has no end")
