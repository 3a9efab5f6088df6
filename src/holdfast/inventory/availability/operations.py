"""What can be asked about availability. All of it is reckoned by the rules of the ledger."""

from holdfast.inventory.availability import sql
from holdfast.inventory.availability.model import (
    Availability,
    ExplainAvailability,
    Explanation,
    GetAvailability,
    Limit,
    ListLowStock,
    LowStockList,
    Shortfall,
    SimulateSale,
    Simulation,
)
from holdfast.inventory.settings import Tx
from holdfast.inventory.stock.book import Touched, look
from holdfast.inventory.stock.ledger import LIMIT, Cause, Line, Pool, Stock
from holdfast.kit.cursor import paged
from holdfast.kit.operation import Caller
from holdfast.kit.problems import NOT_FOUND


async def get(tx: Tx, caller: Caller, command: GetAvailability) -> Availability:
    """How many of some variants can be sold, and which pool allows no more."""
    pool_ids = [command.pool_id] if command.pool_id else []
    stock = await look(tx, caller.tenant, Touched(pool_ids, command.variant_gids or ()))
    gids = stock.pool(pool_ids[0]).members if command.pool_id else command.variant_gids or ()
    effective = {gid: quantity for gid in gids if (quantity := stock.available(gid)) is not None}
    return Availability(
        await sql.shared_inventory_of(tx, caller.tenant),
        stock.version,
        effective,
        {gid: _limiting(stock, gid).id for gid in effective},
    )


async def explain(tx: Tx, caller: Caller, command: ExplainAvailability) -> Explanation:
    """Why just so many of a variant can be sold: the reckoning for every pool it draws on."""
    gid = command.variant_gid
    stock = await look(tx, caller.tenant, Touched((), [gid]))
    if not stock.draws(gid):
        raise _not_linked(gid)
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
        for pool, units in stock.draws(gid)
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


async def simulate(tx: Tx, caller: Caller, command: SimulateSale) -> Simulation:
    """What would be left if these lines were sold together. Changes nothing."""
    stock = await look(tx, caller.tenant, Touched((), [line.variant_gid for line in command.lines]))
    needed: dict[int, int] = {}
    for line in command.lines:
        draws = stock.draws(line.variant_gid)
        if not draws:
            raise _not_linked(line.variant_gid)
        for pool, units in draws:
            needed[pool.id] = needed.get(pool.id, 0) + units * line.quantity
    shortfalls = [
        Shortfall(pool.id, pool.name, pool.unit, quantity, pool.available, quantity - pool.available)
        for id, quantity in needed.items()
        if (pool := stock.pools[id]).available < quantity
    ]
    # A sale is a fact: the ledger would take it even where it leaves a deficit, as far as it can count.
    sold = [Line(id, "sale", -min(quantity, stock.pools[id].on_hand + LIMIT)) for id, quantity in needed.items()]
    after = stock.write(sold, Cause("system", None, "simulate_sale"), dry_run=True)
    inactive = [id for id in sorted(needed) if stock.pools[id].status != "active"]
    return Simulation(not shortfalls and not inactive, shortfalls, inactive, after.pools, after.affected)


async def list_low_stock(tx: Tx, caller: Caller, command: ListLowStock) -> LowStockList:
    """Which pools run low: below their threshold, or at the present pace not for much longer."""
    pools, cursor = paged(await sql.list_low_stock(tx, caller.tenant, command), command, lambda pool: pool.pool_id)
    return LowStockList(pools, cursor)


def _limiting(stock: Stock, variant_gid: str) -> Pool:
    return min(stock.draws(variant_gid), key=lambda draw: (draw[0].available // draw[1], draw[0].id))[0]


def _formula(pool: Pool, units: int) -> str:
    return f"floor(max(0, {pool.on_hand} - {pool.held} - {pool.buffer}) / {units}) = {pool.available // units}"


def _not_linked(variant_gid: str) -> Exception:
    return NOT_FOUND(f"{variant_gid} is not linked to a pool.", hint="link_variants links a variant to a pool.")
