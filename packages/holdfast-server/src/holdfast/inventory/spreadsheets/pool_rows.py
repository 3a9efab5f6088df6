"""Imports rows of pools. A pool is recognized by its id, or else by its name; unknown pools are created."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from holdfast.inventory.pools import operations as pools
from holdfast.inventory.pools.model import Pool
from holdfast.inventory.resources import Tx
from holdfast.inventory.spreadsheets import sheet
from holdfast.inventory.spreadsheets.import_report import (
    apply,
    cell_changes,
    nothing_imported,
    repeated,
    repeated_message,
)
from holdfast.inventory.spreadsheets.known_pools import KnownPools, find_pools
from holdfast.inventory.spreadsheets.model import CellChange, ImportCsv, Imported, PoolRow, Row, RowRefusal
from holdfast.inventory.spreadsheets.scopes import require_scope
from holdfast.inventory.stock import operations as stock
from holdfast.inventory.stock.ledger_rules import Posting, Stock
from holdfast.inventory.stock.model import Write
from holdfast.inventory.stock.stock_changes import Draft, TouchedRows, write
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.messages import message
from holdfast.kit.running.run_modes import Batch, Call


async def load_pools(tx: Tx, caller: Caller, command: ImportCsv) -> Imported:
    rows, refused = sheet.read_rows(command.text, PoolRow)
    if any(row.quantity is not None for _, row in rows):
        require_scope(caller, "write_pools", "write_inventory")
    names = [row.name for _, row in rows]
    known = await find_pools(tx, caller.tenant, [(row.name, row.pool_id) for _, row in rows])
    report = [_pool_result(line, row, known, command) for line, row in rows]
    refused += [result for result in report if isinstance(result, RowRefusal)]
    refused += [RowRefusal(line, repeated_message("name", row.name)) for line, row in _repeated(rows, known)]
    if refused:
        raise nothing_imported(refused)
    results = [result for result in report if isinstance(result, Row)]
    changed = [row for (_, row), done in zip(rows, results, strict=True) if done.outcome != "unchanged"]

    async def save(version: int) -> None:
        fields = [
            {
                "id": pool.id if (pool := known.pool(row.name, row.pool_id)) else None,
                "name": row.name if pool is None or _is_renamed(row, pool) else None,
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

    return await apply(tx, caller, command, results, save)


def _repeated(rows: Sequence[tuple[int, PoolRow]], known: KnownPools) -> list[tuple[int, PoolRow]]:
    """Return the rows whose pool or name is in an earlier row too."""
    names = [known.key(row.name) for _, row in rows]
    ids = [pool.id if (pool := known.pool(row.name, row.pool_id)) else f"line {line}" for line, row in rows]
    return [*dict([*repeated(rows, names), *repeated(rows, ids)]).items()]


def _is_renamed(row: PoolRow, pool: Pool) -> bool:
    """Return whether a row gives its pool another name. Only a row that names its pool by its id can."""
    return row.pool_id == pool.id and row.name != pool.name


def _pool_result(line: int, row: PoolRow, known: KnownPools, command: ImportCsv) -> Row | RowRefusal:
    """Return the result of a row, or its refusal."""
    if conflict := known.conflict(row.name, row.pool_id):
        return RowRefusal(line, conflict)
    pool = known.pool(row.name, row.pool_id)
    if pool and row.version not in {None, pool.version}:
        wrong = message(
            "%(pool)s has changed since; its version is %(version)s", pool=row.name, version=f"{pool.version}"
        )
        return RowRefusal(line, sheet.column_message("version", wrong))
    if row.quantity is not None and row.quantity < 0 and command.mode == "set" and _counts(row, pool, command):
        wrong = message("must be at least %(least)s, not %(given)s", least=0, given=row.quantity)
        return RowRefusal(line, sheet.column_message("quantity", wrong))
    changes = _changes(row, pool, command)
    if pool is None:
        return Row(line, "created", row.name, changes)
    is_renamed = _is_renamed(row, pool)
    name = f"{pool.name} → {row.name}" if is_renamed else row.name
    return Row(line, "updated" if changes or is_renamed else "unchanged", name, changes)


def _changes(row: PoolRow, pool: Pool | None, command: ImportCsv) -> list[CellChange]:
    """The values that a row sets. The quantity is the one that the pool has then."""
    on_hand = pool and pool.on_hand
    added = on_hand if on_hand and command.mode == "adjust" else 0
    result = row if row.quantity is None else replace(row, quantity=added + row.quantity)
    present = {column: getattr(pool, column, None) for column in ("unit", "buffer", "low_stock_at")}
    return cell_changes(result, {"unit": present.pop("unit"), "quantity": on_hand, **present})


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
