"""Operations on availability. They compute what can be sold with the rules of the ledger (`Stock.available`).

The view `availability` has the same rule in SQL, for storefronts; `test_availability_in_sql.py` compares the two.
"""

from collections.abc import Sequence

from holdfast.inventory.availability import sql
from holdfast.inventory.availability.model import (
    Availability,
    ExplainAvailability,
    Explanation,
    GetAvailability,
    Limit,
    ListLowStock,
    LowStockList,
)
from holdfast.inventory.cursor import cursor_page
from holdfast.inventory.problems import POOL_NOT_ACTIVE, not_linked
from holdfast.inventory.resources import Reader
from holdfast.inventory.stock.ledger_rules import LedgerPool, Stock
from holdfast.inventory.stock.remembered_stock import TouchedRows
from holdfast.inventory.stock.stock_changes import read_stock
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, VALIDATION_FAILED, Problem, refuses
from holdfast.kit.operations.operation import Batch


@refuses(NOT_FOUND, POOL_NOT_ACTIVE)
async def get(reader: Reader, batch: Batch[GetAvailability]) -> Sequence[Availability | Problem]:
    """How many of some variants can be sold, and which pool allows no more."""
    commands = [call.command for call in batch.calls]
    pool_ids = {command.pool_id for command in commands if command.pool_id}
    gids = {gid for command in commands for gid in command.variant_gids or ()}
    stock = await read_stock(reader, batch.tenant_id, TouchedRows([*pool_ids], [*gids]))
    shared_inventory_id = await sql.shared_inventory_of(reader, batch.tenant_id)
    return [_availability(shared_inventory_id, stock, command) for command in commands]


def _availability(shared_inventory_id: int, stock: Stock, command: GetAvailability) -> Availability | Problem:
    """The answer to one call, from stock that may have more pools than it asks for."""
    try:
        gids = stock.require_pool(command.pool_id).members if command.pool_id else command.variant_gids or ()
    except Problem as problem:
        return problem
    effective = {gid: quantity for gid in gids if (quantity := stock.available(gid)) is not None}
    limiting_pool = {gid: _limiting(stock, gid).id for gid in effective}
    return Availability(shared_inventory_id, stock.version, effective, limiting_pool)


@refuses(NOT_FOUND)
async def explain(reader: Reader, caller: Caller, command: ExplainAvailability) -> Explanation:
    """How many of a variant can be sold, and why: the computation for each pool that it draws on."""
    gid = command.variant_gid
    stock = await read_stock(reader, caller.tenant, TouchedRows((), [gid]))
    if not stock.pools_of_variant(gid):
        raise not_linked(gid)
    effective, limiting = stock.available(gid), _limiting(stock, gid)
    limits = [
        Limit(
            pool_id=pool.id,
            name=pool.name,
            unit=pool.unit,
            status=pool.status,
            on_hand=pool.on_hand,
            held=pool.held,
            buffer=pool.buffer,
            units_per_sale=units,
            allows=pool.available // units,
            formula=_formula(pool, units),
            is_limiting=pool is limiting,
        )
        for pool, units in stock.pools_of_variant(gid)
    ]
    inactive = [limit for limit in limits if limit.status != "active"]
    if inactive:
        sentence = f"Storefronts are not told of it: {inactive[0].name} is {inactive[0].status}."
    else:
        least = next(limit for limit in limits if limit.is_limiting)
        sentence = (
            f"{effective} can be sold: {least.name} has {limiting.available} {limiting.unit} available "
            f"and one sale takes {least.units_per_sale}."
        )
    return Explanation(gid, effective, sentence, limits)


@refuses(VALIDATION_FAILED)
async def list_low_stock(reader: Reader, caller: Caller, command: ListLowStock) -> LowStockList:
    """Which pools run low: at or below their `low_stock_at`, and with `days_of_cover` those that last no longer."""
    rows = await sql.list_low_stock(reader, caller.tenant, command)
    pools, cursor = cursor_page(rows, command, lambda pool: pool.pool_id)
    return LowStockList(pools, cursor)


def _limiting(stock: Stock, variant_gid: str) -> LedgerPool:
    return min(stock.pools_of_variant(variant_gid), key=lambda draw: (draw[0].available // draw[1], draw[0].id))[0]


def _formula(pool: LedgerPool, units: int) -> str:
    return f"floor(max(0, {pool.on_hand} - {pool.held} - {pool.buffer}) / {units}) = {pool.available // units}"
