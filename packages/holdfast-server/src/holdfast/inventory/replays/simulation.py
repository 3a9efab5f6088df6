"""Replays orders through a suggested pool, by the rules of the ledger. No database, no clock.

The same orders run through three stocks, by the rules that live orders and sales follow:

* the *shop*: each variant has a stock of its own, as the shop showed it. Orders are facts, which may take more than
  there is.
* the *goods*: what really lay on the shelf, which is the suggested pool. Here, too, orders are facts.
* the *pool*: the suggested pool, of which the shop would have shown what is left. Orders are decisions: one that wants
  more than there is, is not sold.

An **oversell** is an order after which less than nothing is left: of one of its variants in the shop, or of the goods.
The pool has none, so each is avoided: either the pool has the units, in packs of another size, or it sells no more than
there is.

**Extra sales** are what buyers would have bought while a variant was sold out in the shop and the pool had units: at
the pace at which the variant was sold until then, day by day, and only of what the pool has left after all orders. So
they take nothing away from what was really sold.

No level of the past is known. Each variant begins with what it has at the end, and what the orders took: as if nothing
had been delivered, counted or corrected in between. What came back of an order counts as never sold. The goods begin
with the sum that suggestions say (`first_stock`), of what the variants began with.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from holdfast.inventory.catalog.model import ONLY_VARIANT
from holdfast.inventory.catalog.pool_suggestions import SuggestedMember, first_stock
from holdfast.inventory.orders.model import Order, OrderedLine, order_effect
from holdfast.inventory.problems import NOT_ENOUGH_STOCK
from holdfast.inventory.replays.model import Oversell, PackResult, PastOrder, PoolResult, ReplayedPool
from holdfast.inventory.stock.ledger_rules import ChangeCause, Posting, Stock, simulated_stock
from holdfast.kit.contract.problems import Problem

MIN_PACE_DAYS = 3
"""The fewest days by which a pace is computed: a variant that was sold out at once says little about a month."""

MAX_ORDER_NAMES = 100
"""The most orders that are named for a pace."""

POOL = 1
"""The id of the suggested pool in its stocks."""

ORDER_CAUSE = ChangeCause("platform", None, "replay")
"""The cause of orders, which are facts: they are applied even if they take more than there is."""

SALE_CAUSE = ChangeCause("staff", None, "replay")
"""The cause of sales, which are decisions: they are refused if they take more than there is."""


class ReplayedOrders(NamedTuple):
    """What the orders did.

    orders            how many orders took something
    sold              how many of each variant were sold
    sold_in_stock     how many of these until the variant was sold out in the shop
    order_names       the names of the orders of `sold_in_stock`
    sold_out_at       when the variant was sold out in the shop
    """

    orders: int
    oversells: Sequence[Oversell]
    sold: Mapping[str, int]
    sold_in_stock: Mapping[str, int]
    order_names: Mapping[str, Sequence[str]]
    sold_out_at: Mapping[str, dt.datetime]


def replay(pool: ReplayedPool, orders: Sequence[PastOrder], since: dt.datetime, until: dt.datetime) -> PoolResult:
    """What orders, placed from `since` until `until`, would have done with a pool."""
    members = {member.variant.gid: member for member in pool.members}
    orders = [order for order in orders if any(line.variant_gid in members for line in order.lines)]
    orders.sort(key=lambda order: (order.placed_at, order.id))
    sold = _sold_by_variant(orders, members)
    levels_at_start = {
        gid: member.variant.available + sold[gid] for gid, member in members.items() if member.variant.tracked
    }
    units_at_start = _units_at_start(pool.members, levels_at_start, sold)
    pool_stock = _stock_of_pool(units_at_start, pool.members)
    replayed = _replay_orders(
        orders, members, levels_at_start, _stock_of_pool(units_at_start, pool.members), pool_stock, since
    )
    extra_sales = _sell_extra(pool_stock, members, replayed, since, until)
    return PoolResult(
        name=pool.name,
        began_with=units_at_start,
        orders=replayed.orders,
        ends_with=pool_stock.pools[POOL].on_hand,
        suggested=first_stock(pool.members).quantity,
        oversells=replayed.oversells,
        packs=[
            PackResult(
                gid,
                _title(member),
                member.units_per_sale,
                levels_at_start.get(gid),
                sold[gid],
                replayed.sold_out_at.get(gid),
                extra_sales.get(gid, 0),
                replayed.order_names[gid][:MAX_ORDER_NAMES] if extra_sales.get(gid) else [],
            )
            for gid, member in members.items()
        ],
    )


def _title(member: SuggestedMember) -> str:
    variant = member.variant
    return variant.product_title if variant.title == ONLY_VARIANT else variant.title


def _sold_by_variant(orders: Sequence[PastOrder], members: Mapping[str, SuggestedMember]) -> dict[str, int]:
    """How many of each variant orders have taken."""
    sold = dict.fromkeys(members, 0)
    for order in orders:
        for line in order.lines:
            if line.variant_gid in sold:
                sold[line.variant_gid] += line.quantity
    return sold


def _units_at_start(
    members: Sequence[SuggestedMember], levels_at_start: Mapping[str, int], sold: Mapping[str, int]
) -> int:
    """The single units at the beginning. If the platform does not count a variant, what was sold was there."""
    members_at_start = [
        SuggestedMember(
            replace(member.variant, available=levels_at_start.get(member.variant.gid, 0)), member.units_per_sale
        )
        for member in members
    ]
    uncounted = sum(
        sold[member.variant.gid] * member.units_per_sale for member in members if not member.variant.tracked
    )
    return first_stock(members_at_start).quantity + uncounted


def _stock_of_pool(on_hand: int, members: Sequence[SuggestedMember]) -> Stock:
    """The stock of the suggested pool."""
    return simulated_stock({POOL: (on_hand, {member.variant.gid: member.units_per_sale for member in members})})


def _replay_orders(
    orders: Sequence[PastOrder],
    members: Mapping[str, SuggestedMember],
    levels_at_start: Mapping[str, int],
    goods_stock: Stock,
    pool_stock: Stock,
    since: dt.datetime,
) -> ReplayedOrders:
    """Run orders through the shop, the goods and the pool."""
    ids = {gid: id for id, gid in enumerate(levels_at_start, start=1)}
    shop_stock = simulated_stock({id: (levels_at_start[gid], {gid: 1}) for gid, id in ids.items()})
    units_in_shop = {gid: {id: 1} for gid, id in ids.items()}
    units_in_pool = {gid: {POOL: member.units_per_sale} for gid, member in members.items()}
    oversells: list[Oversell] = []
    sold_in_stock = dict.fromkeys(members, 0)
    order_names: dict[str, list[str]] = {gid: [] for gid in members}
    sold_out_at = {gid: since for gid in ids if not shop_stock.available(gid)}
    count = 0
    for past_order in orders:
        order = _order(past_order)
        pool_postings = _postings(order, units_in_pool)
        if not pool_postings:
            continue
        count += 1
        shop_postings = _postings(order, units_in_shop)
        if shop_postings:
            shop_stock.apply(shop_postings, ORDER_CAUSE)
        goods_stock.apply(pool_postings, ORDER_CAUSE)
        is_served = _take_if_enough(pool_stock, pool_postings)
        units = -sum(posting.delta for posting in pool_postings)
        missing_packs = {
            gid: min(-posting.delta, -shop_stock.pools[posting.pool_id].on_hand)
            for posting in shop_postings
            for gid in shop_stock.pools[posting.pool_id].members
            if shop_stock.pools[posting.pool_id].on_hand < 0
        }
        missing_units = max(
            sum(packs * members[gid].units_per_sale for gid, packs in missing_packs.items()),
            min(units, -goods_stock.pools[POOL].on_hand),
        )
        if missing_units > 0:
            oversells.append(
                Oversell(past_order.id, past_order.name, past_order.placed_at, units, missing_units, is_served)
            )
        for line in past_order.lines:
            if line.variant_gid in ids and line.variant_gid not in sold_out_at:
                sold_in_stock[line.variant_gid] += line.quantity
                order_names[line.variant_gid].append(past_order.name)
        # In the order of the lines: packs that one order sells out have their turns in it afterwards.
        for line in past_order.lines:
            if line.variant_gid in ids and not shop_stock.available(line.variant_gid):
                sold_out_at.setdefault(line.variant_gid, past_order.placed_at)
    return ReplayedOrders(count, oversells, _sold_by_variant(orders, members), sold_in_stock, order_names, sold_out_at)


def _order(past_order: PastOrder) -> Order:
    lines = [OrderedLine(line.id, line.variant_gid, line.quantity) for line in past_order.lines]
    return Order(past_order.id, past_order.name, past_order.placed_at, past_order.placed_at, lines)


def _postings(order: Order, units_by_variant: Mapping[str, Mapping[int, int]]) -> Sequence[Posting]:
    """What an order takes of pools on which its variants draw."""
    effect = order_effect(order, None, units_by_variant, {})
    return effect.postings if effect else ()


def _take_if_enough(stock: Stock, postings: Sequence[Posting]) -> bool:
    """Take what a sale takes, if a stock has all of it. Returns whether it has."""
    try:
        stock.apply(postings, SALE_CAUSE)
    except Problem as problem:
        if problem.type is NOT_ENOUGH_STOCK:
            return False
        raise
    return True


def _sell_extra(
    pool_stock: Stock,
    members: Mapping[str, SuggestedMember],
    replayed: ReplayedOrders,
    since: dt.datetime,
    until: dt.datetime,
) -> dict[str, int]:
    """Sell what would have been bought while variants were sold out, day by day. Returns how many of each."""
    extra_sales = dict.fromkeys(replayed.sold_out_at, 0)
    day = dt.timedelta(days=1)
    moment = since
    while moment < until:
        moment = min(moment + day, until)
        for gid in extra_sales:
            demand = _demand(replayed, gid, since, moment) - extra_sales[gid]
            packs = min(demand, pool_stock.available(gid) or 0)
            units = members[gid].units_per_sale
            if packs > 0 and _take_if_enough(
                pool_stock, [Posting(POOL, "sale", -packs * units, by_variant={gid: packs * units})]
            ):
                extra_sales[gid] += packs
    return extra_sales


def _demand(replayed: ReplayedOrders, gid: str, since: dt.datetime, moment: dt.datetime) -> int:
    """How many more of a variant buyers would have bought until a moment, since it was sold out.

    Orders that came although it was sold out have had their share.
    """
    sold_out_at = replayed.sold_out_at[gid]
    pace_time = max(sold_out_at - since, dt.timedelta(days=MIN_PACE_DAYS))
    packs = max(moment - sold_out_at, dt.timedelta()) * replayed.sold_in_stock[gid] // pace_time
    return max(0, packs - (replayed.sold[gid] - replayed.sold_in_stock[gid]))
