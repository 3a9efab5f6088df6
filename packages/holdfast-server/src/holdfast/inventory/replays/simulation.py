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

**Sold more** is what buyers would have bought while a variant was sold out in the shop and the pool had units: at the
pace at which the variant was sold until then, day by day, and only of what the pool has left after all orders. So
nothing that was really sold is taken away for it.

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
from holdfast.inventory.stock.ledger_rules import ChangeCause, Posting, Stock, StockPool
from holdfast.kit.contract.problems import Problem

MIN_PACE_DAYS = 3
"""The fewest days by which a pace is computed: a variant that was sold out at once says little about a month."""

MAX_ORDER_NAMES = 100
"""The most orders that are named for a pace."""

POOL = 1
"""The id of the suggested pool in its stocks."""

FACT = ChangeCause("platform", None, "replay")
DECISION = ChangeCause("staff", None, "replay")


class Replayed(NamedTuple):
    """What the orders did.

    sold           how many of each variant
    sold_by        of these, until it was sold out in the shop
    sold_in        the orders of `sold_by`
    sold_out_at    when it was
    """

    orders: int
    oversells: Sequence[Oversell]
    sold: Mapping[str, int]
    sold_by: Mapping[str, int]
    sold_in: Mapping[str, Sequence[str]]
    sold_out_at: Mapping[str, dt.datetime]


def replay(pool: ReplayedPool, orders: Sequence[PastOrder], since: dt.datetime, until: dt.datetime) -> PoolResult:
    """What orders, placed from `since` until `until`, would have done with a pool."""
    members = {member.variant.gid: member for member in pool.members}
    orders = [order for order in orders if any(line.variant_gid in members for line in order.lines)]
    orders.sort(key=lambda order: (order.placed_at, order.id))
    sold = _sold(orders, members)
    began_with = {
        gid: member.variant.available + sold[gid] for gid, member in members.items() if member.variant.tracked
    }
    began = _began_with(pool.members, began_with, sold)
    pooled = _pool_stock(began, pool.members)
    replayed = _replay_orders(orders, members, began_with, _pool_stock(began, pool.members), pooled, since)
    more = _sell_more(pooled, members, replayed, since, until)
    return PoolResult(
        name=pool.name,
        began_with=began,
        orders=replayed.orders,
        ends_with=pooled.pools[POOL].on_hand,
        suggested=first_stock(pool.members).quantity,
        oversells=replayed.oversells,
        packs=[
            PackResult(
                gid,
                _title(member),
                member.units_per_sale,
                began_with.get(gid),
                sold[gid],
                replayed.sold_out_at.get(gid),
                more.get(gid, 0),
                replayed.sold_in[gid][:MAX_ORDER_NAMES] if more.get(gid) else [],
            )
            for gid, member in members.items()
        ],
    )


def _title(member: SuggestedMember) -> str:
    variant = member.variant
    return variant.product_title if variant.title == ONLY_VARIANT else variant.title


def _sold(orders: Sequence[PastOrder], members: Mapping[str, SuggestedMember]) -> dict[str, int]:
    """How many of each variant orders have taken."""
    sold = dict.fromkeys(members, 0)
    for order in orders:
        for line in order.lines:
            if line.variant_gid in sold:
                sold[line.variant_gid] += line.quantity
    return sold


def _began_with(members: Sequence[SuggestedMember], levels: Mapping[str, int], sold: Mapping[str, int]) -> int:
    """The single units at the beginning. Of a variant that the platform does not count, what was sold was there."""
    at_the_beginning = [
        SuggestedMember(replace(member.variant, available=levels.get(member.variant.gid, 0)), member.units_per_sale)
        for member in members
    ]
    uncounted = sum(
        sold[member.variant.gid] * member.units_per_sale for member in members if not member.variant.tracked
    )
    return first_stock(at_the_beginning).quantity + uncounted


def _pool_stock(on_hand: int, members: Sequence[SuggestedMember]) -> Stock:
    """The stock of the suggested pool."""
    return _stock({POOL: (on_hand, {member.variant.gid: member.units_per_sale for member in members})})


def _stock(pools: Mapping[int, tuple[int, dict[str, int]]]) -> Stock:
    return Stock(
        0,
        0,
        dt.datetime.min,
        [
            StockPool(id, "", "", on_hand, 0, 0, None, False, "active", 0, 0, members)
            for id, (on_hand, members) in pools.items()
        ],
    )


def _replay_orders(
    orders: Sequence[PastOrder],
    members: Mapping[str, SuggestedMember],
    began_with: Mapping[str, int],
    goods: Stock,
    pooled: Stock,
    since: dt.datetime,
) -> Replayed:
    """Run orders through the shop, the goods and the pool."""
    ids = {gid: id for id, gid in enumerate(began_with, start=1)}
    shop = _stock({id: (began_with[gid], {gid: 1}) for gid, id in ids.items()})
    shop_draws = {gid: {id: 1} for gid, id in ids.items()}
    pool_draws = {gid: {POOL: member.units_per_sale} for gid, member in members.items()}
    oversells: list[Oversell] = []
    sold_by = dict.fromkeys(members, 0)
    sold_in: dict[str, list[str]] = {gid: [] for gid in members}
    sold_out_at = {gid: since for gid in ids if not shop.available(gid)}
    count = 0
    for past in orders:
        order = _order(past)
        of_pool = _postings(order, pool_draws)
        if not of_pool:
            continue
        count += 1
        of_shop = _postings(order, shop_draws)
        if of_shop:
            shop.apply(of_shop, FACT)
        goods.apply(of_pool, FACT)
        is_served = _is_sold(pooled, of_pool)
        units = -sum(posting.delta for posting in of_pool)
        lacking = {
            gid: min(-posting.delta, -shop.pools[posting.pool_id].on_hand)
            for posting in of_shop
            for gid in shop.pools[posting.pool_id].members
            if shop.pools[posting.pool_id].on_hand < 0
        }
        missing = max(
            sum(packs * members[gid].units_per_sale for gid, packs in lacking.items()),
            min(units, -goods.pools[POOL].on_hand),
        )
        if missing > 0:
            oversells.append(Oversell(past.id, past.name, past.placed_at, units, missing, is_served))
        for line in past.lines:
            if line.variant_gid in ids and line.variant_gid not in sold_out_at:
                sold_by[line.variant_gid] += line.quantity
                sold_in[line.variant_gid].append(past.name)
        # In the order of the lines: packs that one order sells out have their turns in it afterwards.
        for line in past.lines:
            if line.variant_gid in ids and not shop.available(line.variant_gid):
                sold_out_at.setdefault(line.variant_gid, past.placed_at)
    return Replayed(count, oversells, _sold(orders, members), sold_by, sold_in, sold_out_at)


def _order(past: PastOrder) -> Order:
    lines = [OrderedLine(line.id, line.variant_gid, line.quantity) for line in past.lines]
    return Order(past.id, past.name, past.placed_at, past.placed_at, lines)


def _postings(order: Order, units_by_variant: Mapping[str, Mapping[int, int]]) -> Sequence[Posting]:
    """What an order takes of pools on which its variants draw."""
    effect = order_effect(order, None, units_by_variant, {})
    return effect.postings if effect else ()


def _is_sold(stock: Stock, postings: Sequence[Posting]) -> bool:
    """Whether a stock has what a sale takes. Then it is taken."""
    try:
        stock.apply(postings, DECISION)
    except Problem as problem:
        if problem.type is NOT_ENOUGH_STOCK:
            return False
        raise
    return True


def _sell_more(
    pooled: Stock, members: Mapping[str, SuggestedMember], replayed: Replayed, since: dt.datetime, until: dt.datetime
) -> dict[str, int]:
    """Sell what would have been bought while variants were sold out, day by day. Returns how many of each."""
    more = dict.fromkeys(replayed.sold_out_at, 0)
    day = dt.timedelta(days=1)
    moment = since
    while moment < until:
        moment = min(moment + day, until)
        for gid in more:
            demand = _demand(replayed, gid, since, moment) - more[gid]
            packs = min(demand, pooled.available(gid) or 0)
            units = members[gid].units_per_sale
            if packs > 0 and _is_sold(pooled, [Posting(POOL, "sale", -packs * units, by_variant={gid: packs * units})]):
                more[gid] += packs
    return more


def _demand(replayed: Replayed, gid: str, since: dt.datetime, moment: dt.datetime) -> int:
    """How many more of a variant buyers would have bought until a moment, since it was sold out.

    Orders that came although it was sold out have had their share.
    """
    sold_out_at = replayed.sold_out_at[gid]
    paced = max(sold_out_at - since, dt.timedelta(days=MIN_PACE_DAYS))
    packs = max(moment - sold_out_at, dt.timedelta()) * replayed.sold_by[gid] // paced
    return max(0, packs - (replayed.sold[gid] - replayed.sold_by[gid]))
