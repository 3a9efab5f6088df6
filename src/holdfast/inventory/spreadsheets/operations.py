"""Pools and their variants as spreadsheets."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from holdfast.inventory.cursor import cursor_page
from holdfast.inventory.pools import operations as pools
from holdfast.inventory.pools.model import ListPools, MemberFields, Pool
from holdfast.inventory.problems import NOT_ENOUGH_STOCK
from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.spreadsheets import sheet
from holdfast.inventory.spreadsheets.model import (
    ExportCsv,
    Exported,
    ImportCsv,
    Imported,
    MemberRow,
    PoolRow,
    Row,
    RowRefusal,
)
from holdfast.inventory.stock import operations as stock
from holdfast.inventory.stock.ledger_rules import Posting, Stock
from holdfast.inventory.stock.model import Entry, GetStockHistory, Write
from holdfast.inventory.stock.stock_changes import CHANGES, Draft, TouchedRows, bump, lock, present_version, write
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.messages import Message, message
from holdfast.kit.contract.problems import INSUFFICIENT_SCOPE, VALIDATION_FAILED, Problem, invalid, refuses
from holdfast.kit.running.run_modes import Batch, Call

POOLS = ("name", "unit", "quantity", "buffer", "low_stock_at", "version")
MEMBERS = ("pool", "variant_gid", "units_per_sale", "sku", "title")
HISTORY = Entry.__struct_fields__

T = TypeVar("T")

MAX_REPORTED_ROWS = 200
"""The most rows that an answer or a refusal reports."""


@refuses(INSUFFICIENT_SCOPE, VALIDATION_FAILED)
async def export(reader: Reader, caller: Caller, command: ExportCsv) -> Exported:
    """Read pools, their variants or the history as CSV.

    What is exported as `pools` or `members` can be changed in a spreadsheet and imported again.
    """
    if command.kind == "history":
        _require_scope(caller, "read_pools", "read_inventory")
        page = await stock.history(reader, caller, GetStockHistory(limit=command.limit, cursor=command.cursor))
        return _exported(command, HISTORY, [_cells(entry) for entry in page.entries], page.next_cursor)
    if command.kind == "members":
        after = command.after(tuple[int, str]) or (0, "")
        member_rows = await pools.list_members(reader, caller.tenant, after, command.limit + 1)
        members, cursor = cursor_page(member_rows, command, lambda row: (row.pool_id, row.variant_gid))
        return _exported(command, MEMBERS, [row[1:] for row in members], cursor)
    pool_page = await pools.list(reader, caller, ListPools(limit=command.limit, cursor=command.cursor))
    rows = [
        (pool.name, pool.unit, pool.on_hand, pool.buffer, pool.low_stock_at, pool.version) for pool in pool_page.pools
    ]
    return _exported(command, POOLS, rows, pool_page.next_cursor)


@refuses(INSUFFICIENT_SCOPE, VALIDATION_FAILED, NOT_ENOUGH_STOCK)
async def load(tx: Tx, caller: Caller, command: ImportCsv) -> Imported:
    """Import pools or variants from CSV: all rows, or none. A dry run unless you say `dry_run: false`.

    One bad row refuses them all; `errors` names every bad row. Pools are recognized by their names; unknown ones are
    created. Quantities need write_inventory too.
    """
    await lock(tx, caller.tenant)
    return await (_load_pools if command.kind == "pools" else _load_members)(tx, caller, command)


async def _load_pools(tx: Tx, caller: Caller, command: ImportCsv) -> Imported:
    rows, refused = sheet.read_rows(command.text, PoolRow)
    if any(row.quantity is not None for _, row in rows):
        _require_scope(caller, "write_pools", "write_inventory")
    names = [row.name for _, row in rows]
    known = await pools.find_by_name(tx, caller.tenant, names)
    keys = [known.keys[name] for name in names]
    report = [_pool_result(line, row, known.pool(row.name), command) for line, row in rows]
    refused += [result for result in report if isinstance(result, RowRefusal)]
    refused += [RowRefusal(line, _repeated_message("name", row.name)) for line, row in _repeated(rows, keys)]
    if refused:
        raise _nothing_imported(refused)
    results = [result for result in report if isinstance(result, Row)]
    changed = [row for (_, row), done in zip(rows, results, strict=True) if done.outcome != "unchanged"]

    async def save(version: int) -> None:
        fields = [
            {
                "id": pool.id if (pool := known.pool(row.name)) else None,
                "name": row.name,
                "unit": row.unit,
                "buffer": row.buffer,
                "low_stock_at": row.low_stock_at,
            }
            for row in changed
        ]
        await pools.save(tx, caller.tenant, version, fields)
        saved = await pools.find_by_name(tx, caller.tenant, names)
        counts = {
            pool.id: row.quantity
            for row in changed
            if row.quantity is not None and (pool := saved.pool(row.name)) and _counts(row, pool, command)
        }
        if counts:
            await _count(tx, caller, command, counts)

    return await _apply(tx, caller, command, results, save)


def _pool_result(line: int, row: PoolRow, pool: Pool | None, command: ImportCsv) -> Row | RowRefusal:
    """Return the result of a row, or its refusal."""
    if pool and row.version not in {None, pool.version}:
        wrong = message(
            "%(pool)s has changed since; its version is %(version)s", pool=row.name, version=f"{pool.version}"
        )
        return RowRefusal(line, sheet.column_message("version", wrong))
    if row.quantity is not None and row.quantity < 0 and command.mode == "set" and _counts(row, pool, command):
        wrong = message("must be at least %(least)s, not %(given)s", least=0, given=row.quantity)
        return RowRefusal(line, sheet.column_message("quantity", wrong))
    if pool is None:
        return Row(line, "created", row.name)
    changes_of_fields = [(row.unit, pool.unit), (row.buffer, pool.buffer), (row.low_stock_at, pool.low_stock_at)]
    changes = _counts(row, pool, command) or any(new not in {None, present} for new, present in changes_of_fields)
    return Row(line, "updated" if changes else "unchanged", row.name)


def _counts(row: PoolRow, pool: Pool | None, command: ImportCsv) -> bool:
    """Return whether a row changes a quantity."""
    present = pool.on_hand if pool and command.mode == "set" else 0
    return row.quantity not in {None, present}


async def _count(tx: Tx, caller: Caller, command: ImportCsv, counts: Mapping[int, int]) -> None:
    """Write the quantities of pools, all in one change."""

    def draft(present: Stock, _: Write) -> Draft:
        before = {id: 0 if command.mode == "adjust" else present.pool(id).on_hand for id in counts}
        return Draft([Posting(id, "import", quantity - before[id]) for id, quantity in counts.items()])

    batch = Batch(caller.tenant, [Call(caller, Write(reason=command.reason))])
    stock.only_answer(await write(tx, batch, "import_csv", lambda _: TouchedRows(counts), draft))


async def _load_members(tx: Tx, caller: Caller, command: ImportCsv) -> Imported:
    rows, refused = sheet.read_rows(command.text, MemberRow)
    known = await pools.find_by_name(tx, caller.tenant, [row.pool for _, row in rows])
    refused += [
        RowRefusal(line, sheet.column_message("pool", message("no pool is named %(name)s", name=row.pool)))
        for line, row in rows
        if known.pool(row.pool) is None
    ]
    keys = [(known.keys[row.pool], row.variant_gid) for _, row in rows]
    refused += [
        RowRefusal(line, _repeated_message("variant_gid", row.variant_gid)) for line, row in _repeated(rows, keys)
    ]
    if refused:
        raise _nothing_imported(refused)
    links = [
        (pool.id, MemberFields(row.variant_gid, row.units_per_sale, row.sku, row.title))
        for _, row in rows
        if (pool := known.pool(row.pool))
    ]
    linked = await pools.find_links(tx, caller.tenant, [pool.id for pool in known.pools.values()])
    links = [(pool_id, _new_fields(member, linked.get((pool_id, member.variant_gid)))) for pool_id, member in links]
    report = [
        _member_result(line, row, linked.get((pool_id, row.variant_gid)))
        for (line, row), (pool_id, _) in zip(rows, links, strict=True)
    ]
    changed = [link for link, done in zip(links, report, strict=True) if done.outcome != "unchanged"]
    return await _apply(
        tx, caller, command, report, lambda version: pools.link_many(tx, caller.tenant, version, changed)
    )


def _new_fields(member: MemberFields, present: MemberFields | None) -> MemberFields:
    """Return the new fields of a row: names that an export has from the platform are not stored."""
    if present is None:
        return member
    sku = None if member.sku == present.sku else member.sku
    title = None if member.title == present.title else member.title
    return MemberFields(member.variant_gid, member.units_per_sale, sku, title)


def _member_result(line: int, row: MemberRow, present: MemberFields | None) -> Row:
    name = f"{row.variant_gid} in {row.pool}"
    if present is None:
        return Row(line, "created", name)
    changes_of_fields = [
        (row.units_per_sale, present.units_per_sale),
        (row.sku, present.sku),
        (row.title, present.title),
    ]
    return Row(line, "updated" if any(new not in {None, old} for new, old in changes_of_fields) else "unchanged", name)


async def _apply(
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


def _nothing_imported(refused: Sequence[RowRefusal]) -> Problem:
    """Return the problem of a spreadsheet, with its bad rows in order."""
    messages = [message("line %(line)s: %(message)s", **row._asdict()) for row in sorted(refused)]
    left_out = len(messages) - MAX_REPORTED_ROWS
    more = [message("and %(count)s more rows", count=left_out)] if left_out > 0 else []
    return VALIDATION_FAILED(
        f"Nothing was imported: {len(refused)} {'row is' if len(refused) == 1 else 'rows are'} not acceptable.",
        hint="Correct the rows named in `errors` and import the text again.",
        errors={"text": [*messages[:MAX_REPORTED_ROWS], *more]},
    )


def _repeated_message(column: str, name: str) -> Message:
    return sheet.column_message(column, message("%(name)s is in an earlier row too", name=name))


def _repeated(rows: Sequence[tuple[int, T]], keys: Sequence[object]) -> list[tuple[int, T]]:
    """Return the rows whose key is in an earlier row too."""
    first = {key: place for place, key in reversed([*enumerate(keys)])}
    return [row for place, row in enumerate(rows) if first[keys[place]] < place]


def _exported(
    command: ExportCsv, columns: Sequence[str], rows: Sequence[Sequence[Any]], next_cursor: str | None
) -> Exported:
    return Exported(command.kind, len(rows), sheet.to_csv(columns, rows), next_cursor)


def _cells(entry: Entry) -> list[Any]:
    values = msgspec.to_builtins(entry).values()
    return [msgspec.json.encode(value).decode() if isinstance(value, dict) else value for value in values]


def _require_scope(caller: Caller, read_scope: str, other: str) -> None:
    if not caller.has(other):
        raise INSUFFICIENT_SCOPE(f"This needs the scope {other} too.", scope=f"{read_scope} {other}")
