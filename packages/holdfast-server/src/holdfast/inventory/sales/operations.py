"""Sales: recorded as they happen, and simulated before. All of them compute with the rules of the ledger."""

from collections.abc import Sequence

from msgspec.structs import replace

from holdfast.inventory.problems import HOLD_ENDED, NOT_ENOUGH_STOCK, POOL_NOT_ACTIVE, STALE, not_linked
from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.sales.model import RecordSale, Shortfall, SimulateSale, Simulation
from holdfast.inventory.stock.ledger_rules import MAX_POOL_QUANTITY, ChangeCause, Posting, Stock
from holdfast.inventory.stock.model import RECORDED_SALE, StockChange, StoredHold
from holdfast.inventory.stock.remembered_stock import TouchedRows, touched_rows
from holdfast.inventory.stock.stock_changes import Draft, apply_and_store, read_stock
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import DAILY_LIMIT_REACHED, NOT_FOUND, VALIDATION_FAILED, Problem, invalid, refuses
from holdfast.kit.operations.operation import Batch


@refuses(NOT_FOUND, POOL_NOT_ACTIVE, STALE, HOLD_ENDED, NOT_ENOUGH_STOCK, VALIDATION_FAILED, DAILY_LIMIT_REACHED)
async def record(tx: Tx, batch: Batch[RecordSale]) -> Sequence[StockChange | Problem]:
    """Record a sale of a variant, or of a quantity of a pool. A variant in several pools is taken from each.

    With `hold_id` the hold becomes the sale: it ends as a whole, and what is sold beyond it must be available. A sale
    takes no more than is available, unless the pool allows it.
    """

    def draft(stock: Stock, command: RecordSale) -> Draft:
        pools_and_units = stock.require_pools(command.pool_id, command.variant_gid)
        newest = max((pool for pool, _ in pools_and_units), key=lambda pool: pool.version)
        stock.require_pool(newest.id, expected_version=command.expected_version)  # only checks the version
        hold = _hold_of_sale(stock, command, [pool.id for pool, _ in pools_and_units])
        held_lines = hold.lines if hold else {}
        postings = [
            Posting(
                pool.id,
                "sale",
                -command.quantity * units,
                -held_lines.get(pool.id, 0),
                by_variant={command.variant_gid: command.quantity * units} if command.variant_gid else None,
            )
            for pool, units in pools_and_units
        ]
        return Draft(postings, command.order_reference or (hold.reference if hold else None), ended_hold=hold)

    return await apply_and_store(
        tx,
        batch,
        RECORDED_SALE,
        lambda command: touched_rows(command.pool_id, command.variant_gid, command.hold_id),
        draft,
    )


def _hold_of_sale(stock: Stock, command: RecordSale, pool_ids: Sequence[int]) -> StoredHold | None:
    """The hold that becomes the sale; None without one. Raises `validation_failed` if it keeps other pools."""
    if command.hold_id is None:
        return None
    hold = stock.require_hold(command.hold_id)
    if hold.expires_at <= stock.now:
        raise HOLD_ENDED(f"Hold {hold.id} has expired.")
    if others := sorted(hold.lines.keys() - {*pool_ids}):
        raise invalid({"hold_id": [f"keeps stock of pool {others[0]}, which this sale does not take from"]})
    return hold


@refuses(NOT_FOUND)
async def simulate(reader: Reader, caller: Caller, command: SimulateSale) -> Simulation:
    """What would be left if these lines were sold together. Changes nothing."""
    stock = await read_stock(reader, caller.tenant, TouchedRows((), [line.variant_gid for line in command.lines]))
    needed: dict[int, int] = {}
    for line in command.lines:
        pools_and_units = stock.pools_of_variant(line.variant_gid)
        if not pools_and_units:
            raise not_linked(line.variant_gid)
        for pool, units in pools_and_units:
            needed[pool.id] = needed.get(pool.id, 0) + units * line.quantity
    shortfalls = [
        Shortfall(pool.id, pool.name, pool.unit, quantity, pool.available, quantity - pool.available)
        for id, quantity in needed.items()
        if (pool := stock.pools[id]).available < quantity
    ]
    # A sale by `system` is a fact, which the ledger never refuses for lack of stock. So the answer shows what would be
    # missing, up to the limit of what a pool can lack.
    sold = [
        Posting(id, "sale", -min(quantity, stock.pools[id].on_hand + MAX_POOL_QUANTITY))
        for id, quantity in needed.items()
    ]
    after = stock.apply(sold, ChangeCause("system", None, "simulate_sale"))
    # Paused or archived: storefronts sell nothing of them.
    inactive_ids = [id for id in sorted(needed) if stock.pools[id].status != "active"]
    pools = [replace(pool, version=None) for pool in after.pools]
    return Simulation(not shortfalls and not inactive_ids, shortfalls, inactive_ids, pools, after.affected)
