"""Pools and their variants as spreadsheets."""

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.inventory.cursor import cursor_page
from holdfast.inventory.pools import membership
from holdfast.inventory.pools import operations as pools
from holdfast.inventory.pools.model import ListPools
from holdfast.inventory.problems import NOT_ENOUGH_STOCK
from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.spreadsheets import sheet
from holdfast.inventory.spreadsheets.importing import load_members, load_pools
from holdfast.inventory.spreadsheets.model import ExportCsv, Exported, ImportCsv, Imported, require_scope
from holdfast.inventory.stock import operations as stock
from holdfast.inventory.stock.model import Entry, GetStockHistory
from holdfast.inventory.stock.remembered_stock import lock_shop
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import DAILY_LIMIT_REACHED, INSUFFICIENT_SCOPE, VALIDATION_FAILED, refuses

POOLS = ("name", "unit", "quantity", "buffer", "low_stock_at", "version", "pool_id")
MEMBERS = ("pool", "variant_gid", "units_per_sale", "sku", "title", "pool_id")
HISTORY = (*Entry.__struct_fields__, "pool", "skus", "titles")


@refuses(INSUFFICIENT_SCOPE, VALIDATION_FAILED)
async def export(reader: Reader, caller: Caller, command: ExportCsv) -> Exported:
    """Read pools, their variants or the history as CSV."""
    if command.kind == "history":
        require_scope(caller, "read_pools", "read_inventory")
        page = await stock.history(reader, caller, GetStockHistory(limit=command.limit, cursor=command.cursor))
        return _exported(command, HISTORY, await _history_rows(reader, caller, page.entries), page.next_cursor)
    if command.kind == "members":
        after = command.after(tuple[int, str]) or (0, "")
        member_rows = await pools.list_members(reader, caller.tenant, after, command.limit + 1)
        members, cursor = cursor_page(member_rows, command, lambda row: (row.pool_id, row.variant_gid))
        return _exported(command, MEMBERS, [(*row[1:], row.pool_id) for row in members], cursor)
    pool_page = await pools.list(reader, caller, ListPools(limit=command.limit, cursor=command.cursor))
    rows = [
        (pool.name, pool.unit, pool.on_hand, pool.buffer, pool.low_stock_at, pool.version, pool.id)
        for pool in pool_page.pools
    ]
    return _exported(command, POOLS, rows, pool_page.next_cursor)


@refuses(INSUFFICIENT_SCOPE, VALIDATION_FAILED, NOT_ENOUGH_STOCK, DAILY_LIMIT_REACHED)
async def load(tx: Tx, caller: Caller, command: ImportCsv) -> Imported:
    """Import pools or variants from CSV: all rows, or none. A dry run unless you say `dry_run: false`.

    `errors` names every bad row. Pools are recognized by their ids, else their names;
    unknown ones are created. Quantities need write_inventory too.
    """
    await lock_shop(tx, caller.tenant)
    return await (load_pools if command.kind == "pools" else load_members)(tx, caller, command)


def _exported(
    command: ExportCsv, columns: Sequence[str], rows: Sequence[Sequence[Any]], next_cursor: str | None
) -> Exported:
    return Exported(command.kind, len(rows), sheet.to_csv(columns, rows), next_cursor)


async def _history_rows(reader: Reader, caller: Caller, entries: Sequence[Entry]) -> Sequence[Sequence[Any]]:
    """The rows of entries: their fields, the name of the pool, and the SKUs and titles of the variants."""
    named_pools = await pools.find_by_id(reader, caller.tenant, {entry.pool_id for entry in entries})
    gids = {gid for entry in entries for gid in entry.by_variant or ()}
    labels = await membership.find_labels(reader, caller.tenant, gids) if gids else {}

    def row(entry: Entry) -> Sequence[Any]:
        named = [labels[gid] for gid in entry.by_variant or () if gid in labels]
        skus = ", ".join(sku for sku, _ in named if sku)
        titles = ", ".join(title for _, title in named if title)
        return [*_cells(entry), pool.name if (pool := named_pools.get(entry.pool_id)) else "", skus, titles]

    return [row(entry) for entry in entries]


def _cells(entry: Entry) -> list[Any]:
    values = msgspec.to_builtins(entry).values()
    return [msgspec.json.encode(value).decode() if isinstance(value, dict) else value for value in values]
