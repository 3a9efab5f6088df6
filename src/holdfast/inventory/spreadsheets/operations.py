"""Pools and their variants as spreadsheets."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from holdfast.inventory.pools import operations as pools
from holdfast.inventory.pools.model import GetPool, ListPools, MemberFields, PoolWithMembers
from holdfast.inventory.settings import Tx
from holdfast.inventory.spreadsheets import sheet
from holdfast.inventory.spreadsheets.model import ExportCsv, Exported, ImportCsv, Imported, MemberRow, PoolRow, Row
from holdfast.inventory.stock import operations as stock
from holdfast.inventory.stock.book import CHANGES, Draft, Touched, bump, lock, present_version, write
from holdfast.inventory.stock.idempotency import once
from holdfast.inventory.stock.ledger import Line, Stock
from holdfast.inventory.stock.model import Entry, GetStockHistory, Write
from holdfast.kit.operation import Call, Caller
from holdfast.kit.problems import INSUFFICIENT_SCOPE, Problem

POOLS = ("name", "unit", "quantity", "buffer", "low_stock_at")
MEMBERS = ("pool", "variant_gid", "units_per_sale", "sku", "title")
HISTORY = Entry.__struct_fields__

T = TypeVar("T")

REPORTED = 200
"""Rows of an import that are reported though nothing is wrong with them."""


async def export(tx: Tx, caller: Caller, command: ExportCsv) -> Exported:
    """Read pools, their variants or the history as CSV.

    What is exported as `pools` or `members` can be changed in a spreadsheet and imported again.
    """
    if command.kind == "history":
        _need(caller, "read_inventory")
        page = await stock.history(tx, caller, GetStockHistory(limit=command.limit, cursor=command.cursor))
        rows: list[Sequence[Any]] = [_cells(entry) for entry in page.entries]
        return _exported(command, HISTORY, rows, page.next_cursor)
    listed = await pools.list(tx, caller, ListPools(limit=command.limit, cursor=command.cursor))
    if command.kind == "pools":
        rows = [(pool.name, pool.unit, pool.on_hand, pool.buffer, pool.low_stock_at) for pool in listed.pools]
        return _exported(command, POOLS, rows, listed.next_cursor)
    calls = [Call(caller, GetPool(pool_id=pool.id)) for pool in listed.pools]
    rows = [
        (pool.name, member.variant_gid, member.units_per_sale, member.sku, member.title)
        for pool in (await pools.get(tx, calls) if calls else ())
        if isinstance(pool, PoolWithMembers)
        for member in pool.members
    ]
    return _exported(command, MEMBERS, rows, listed.next_cursor)


async def load(tx: Tx, caller: Caller, command: ImportCsv) -> Imported:
    """Import pools or variants from CSV: all rows, or none. A dry run unless you say `dry_run: false`.

    Pools are recognized by their names; unknown ones are created. Quantities need write_inventory too.
    """
    work = _load_pools if command.kind == "pools" else _load_members
    await lock(tx, caller.tenant)
    return await once(
        tx,
        caller.tenant,
        "import_csv",
        command,
        Imported,
        lambda: work(tx, caller, command),
        stored=lambda imported: imported.applied,
    )


async def _load_pools(tx: Tx, caller: Caller, command: ImportCsv) -> Imported:
    rows, refused = sheet.read(command.text, PoolRow)
    if any(row.quantity is not None for _, row in rows):
        _need(caller, "write_inventory")
    names = [row.name.lower() for _, row in rows]
    known = await pools.find_by_name(tx, caller.tenant, names)
    report = [_done(line, row.name.lower() not in known, row.name) for line, row in rows]
    refused += [Row(line, "refused", f"name: {row.name} stands here before") for line, row in _repeated(rows, names)]
    if command.mode == "set":
        refused += [
            Row(line, "refused", "quantity: expected an integer >= 0")
            for line, row in rows
            if row.quantity is not None and row.quantity < 0
        ]
    if refused:
        return _refused(command, refused)

    async def save(version: int) -> None:
        fields = [
            {
                "id": pool.id if (pool := known.get(row.name.lower())) else None,
                "name": row.name,
                "unit": row.unit,
                "buffer": row.buffer,
                "low_stock_at": row.low_stock_at,
            }
            for _, row in rows
        ]
        await pools.save(tx, caller.tenant, version, fields)
        saved = await pools.find_by_name(tx, caller.tenant, names)
        counts = {saved[row.name.lower()].id: row.quantity for _, row in rows if row.quantity is not None}
        if counts:
            await _count(tx, caller, command, counts)

    return await _apply(tx, caller, command, report, save)


async def _count(tx: Tx, caller: Caller, command: ImportCsv, counts: Mapping[int, int]) -> None:
    """Write the quantities of pools, all in one change."""

    def drafted(stock: Stock, _: Write) -> Draft:
        there = {id: 0 if command.mode == "adjust" else stock.pool(id).on_hand for id in counts}
        return Draft([Line(id, "import", quantity - there[id]) for id, quantity in counts.items()])

    call = Call(caller, Write(reason=command.reason))
    [answer] = await write(tx, [call], "import_csv", lambda _: Touched(counts), drafted)
    if isinstance(answer, Problem):
        raise answer


async def _load_members(tx: Tx, caller: Caller, command: ImportCsv) -> Imported:
    rows, refused = sheet.read(command.text, MemberRow)
    known = await pools.find_by_name(tx, caller.tenant, [row.pool for _, row in rows])
    refused += [
        Row(line, "refused", f"pool: no pool is named {row.pool}")
        for line, row in rows
        if row.pool.lower() not in known
    ]
    keys = [(row.pool.lower(), row.variant_gid) for _, row in rows]
    refused += [
        Row(line, "refused", f"variant_gid: {row.variant_gid} stands here before")
        for line, row in _repeated(rows, keys)
    ]
    if refused:
        return _refused(command, refused)
    links = [
        (known[row.pool.lower()].id, MemberFields(row.variant_gid, row.units_per_sale, row.sku, row.title))
        for _, row in rows
    ]
    linked = await pools.linked(tx, caller.tenant, [pool.id for pool in known.values()])
    report = [
        _done(line, (pool_id, row.variant_gid) not in linked, f"{row.variant_gid} in {row.pool}")
        for (line, row), (pool_id, _) in zip(rows, links, strict=True)
    ]
    return await _apply(tx, caller, command, report, lambda version: pools.link_many(tx, caller.tenant, version, links))


async def _apply(
    tx: Tx, caller: Caller, command: ImportCsv, report: Sequence[Row], save: Callable[[int], Awaitable[None]]
) -> Imported:
    """Save everything under one version. A dry run saves it all the same, and takes it back."""
    await tx.run("savepoint import")
    version = await bump(tx, caller.tenant)
    await save(version)
    version = await present_version(tx, caller.tenant)
    if command.dry_run:
        await tx.run("rollback to savepoint import")
    else:
        await tx.notify(CHANGES, f"{caller.tenant} {version}")
    created = sum(row.outcome == "created" for row in report)
    return Imported(
        dry_run=command.dry_run,
        applied=not command.dry_run,
        created=created,
        updated=len(report) - created,
        refused=0,
        version=None if command.dry_run else version,
        rows=[*report[:REPORTED]],
    )


def _refused(command: ImportCsv, refused: Sequence[Row]) -> Imported:
    rows = sorted(refused, key=lambda row: row.line)
    return Imported(command.dry_run, False, 0, 0, len(rows), None, rows)


def _done(line: int, is_new: bool, name: str) -> Row:
    return Row(line, "created" if is_new else "updated", name)


def _repeated(rows: Sequence[tuple[int, T]], keys: Sequence[object]) -> list[tuple[int, T]]:
    """The rows whose key stands in a row before."""
    first = {key: place for place, key in reversed([*enumerate(keys)])}
    return [row for place, row in enumerate(rows) if first[keys[place]] < place]


def _exported(
    command: ExportCsv, columns: Sequence[str], rows: Sequence[Sequence[Any]], next_cursor: str | None
) -> Exported:
    return Exported(command.kind, len(rows), sheet.written(columns, rows), next_cursor)


def _cells(entry: Entry) -> list[Any]:
    return list(msgspec.to_builtins(entry).values())


def _need(caller: Caller, scope: str) -> None:
    if not caller.has(scope):
        raise INSUFFICIENT_SCOPE(f"This needs the scope {scope} too.", scope=scope)
