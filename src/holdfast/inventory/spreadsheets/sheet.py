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
from holdfast.kit.validation import misfit

R = TypeVar("R", bound=msgspec.Struct)


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
            raise invalid({"text": [f"line 1 must name columns, each once, out of: {', '.join(known)}"]})
        if missing := {field.name for field in msgspec.structs.fields(kind) if field.required} - {*columns}:
            raise invalid({"text": [f"line 1 lacks the columns: {', '.join(sorted(missing))}"]})
        for cells in lines:
            if not any(cells):
                continue
            if len(good) + len(refused) >= MOST_ROWS:
                raise invalid({"text": [f"has more than {MOST_ROWS} rows: import it in parts"]})
            try:
                good.append((lines.line_num, _row(columns, cells, kind)))
            except ValueError as error:
                refused.append(Refused(lines.line_num, str(error)))
    except csv.Error as error:
        raise invalid({"text": [f"is not CSV at line {lines.line_num}: {error}"]}) from error
    return good, refused


def _row(columns: Sequence[str], cells: Sequence[str], kind: type[R]) -> R:
    if len(cells) != len(columns):
        raise ValueError(f"has {len(cells)} cells under {len(columns)} columns")
    values = {name: original(cell.strip()) for name, cell in zip(columns, cells, strict=True) if cell.strip()}
    try:
        return sound(msgspec.convert(values, kind, strict=False))
    except msgspec.ValidationError as error:
        place, message = misfit(error, kind, values)
        raise ValueError(f"{place.removeprefix('.')}: {message}" if place else message) from error
