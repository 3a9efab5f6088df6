"""What became of the rows of an import: saved as one change, or all refused."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from holdfast.inventory.resources import Tx
from holdfast.inventory.spreadsheets import sheet
from holdfast.inventory.spreadsheets.model import CellChange, ImportCsv, Imported, Row, RowRefusal
from holdfast.inventory.stock.stock_changes import CHANGES, bump, present_version
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.messages import Message, message
from holdfast.kit.contract.problems import VALIDATION_FAILED, Problem, invalid

T = TypeVar("T")

MAX_REPORTED_ROWS = 200
"""The most rows that an answer or a refusal reports."""


async def apply(
    tx: Tx, caller: Caller, command: ImportCsv, report: Sequence[Row], save: Callable[[int], Awaitable[None]]
) -> Imported:
    """Save all rows as one change, and report it. Raises `validation_failed` if there are no rows."""
    if not report:
        raise invalid({"text": [message("has no rows below the names of the columns")]})
    if all(row.outcome == "unchanged" for row in report):
        return Imported(command.dry_run, False, 0, 0, len(report), None, [*report[:MAX_REPORTED_ROWS]])
    await save(await bump(tx, caller.tenant))
    version = await present_version(tx, caller.tenant)
    await tx.notify(CHANGES, f"{caller.tenant} {version}")
    return Imported(
        dry_run=command.dry_run,
        applied=not command.dry_run,
        created=sum(row.outcome == "created" for row in report),
        updated=sum(row.outcome == "updated" for row in report),
        unchanged=sum(row.outcome == "unchanged" for row in report),
        version=None if command.dry_run else version,
        rows=[*report[:MAX_REPORTED_ROWS]],
    )


def cell_changes(new: Struct, present: Mapping[str, int | str | None]) -> list[CellChange]:
    """The values that a row sets: those of its filled cells that differ from the present ones."""
    return [
        CellChange(column, before, after)
        for column, before in present.items()
        if (after := getattr(new, column)) is not None and after != before
    ]


def nothing_imported(refused: Sequence[RowRefusal]) -> Problem:
    """Return the problem of a spreadsheet, with its bad rows in order."""
    messages = [message("line %(line)s: %(message)s", **row._asdict()) for row in sorted(refused)]
    left_out = len(messages) - MAX_REPORTED_ROWS
    more = [message("and %(count)s more rows", count=left_out)] if left_out > 0 else []
    return VALIDATION_FAILED(
        f"Nothing was imported: {len(refused)} {'row is' if len(refused) == 1 else 'rows are'} not acceptable.",
        hint="Correct the rows named in `errors` and import the text again.",
        errors={"text": [*messages[:MAX_REPORTED_ROWS], *more]},
    )


def repeated_message(column: str, name: str) -> Message:
    return sheet.column_message(column, message("%(name)s is in an earlier row too", name=name))


def repeated(rows: Sequence[tuple[int, T]], keys: Sequence[object]) -> list[tuple[int, T]]:
    """Return the rows whose key is in an earlier row too."""
    first = {key: place for place, key in reversed([*enumerate(keys)])}
    return [row for place, row in enumerate(rows) if first[keys[place]] < place]
