"""Applies orders to the stock, many of a shop in one transaction."""

from collections.abc import Sequence

from holdfast.inventory.catalog.model import find_names
from holdfast.inventory.orders import sql
from holdfast.inventory.orders.effects import AmbiguousOrder, OrderEffect, order_effect
from holdfast.inventory.orders.model import Order, StoredOrder
from holdfast.inventory.resources import Tx
from holdfast.inventory.stock.ledger_rules import Posting, Stock
from holdfast.inventory.stock.model import Write
from holdfast.inventory.stock.remembered_stock import TouchedRows, lock_shop
from holdfast.inventory.stock.stock_changes import Draft, write
from holdfast.inventory.sync import levels
from holdfast.inventory.sync.model import OrderLevelChange
from holdfast.kit.contract.caller import platform
from holdfast.kit.contract.problems import Problem
from holdfast.kit.running.run_modes import Batch, Call

SOURCE = "webhook"
"""The source that the ledger names for entries of orders."""


class Uncountable(Exception):
    """An order would take a pool beyond its limit. The message names the order, and the reason."""


class OrderPosting(Write, kw_only=True):
    """Write the postings of an order into the ledger."""

    order_gid: str
    postings: Sequence[Posting]


async def apply(tx: Tx, shop_id: int, orders: Sequence[Order]) -> list[Order]:
    """Write what orders do into the ledger, as far as it is not there yet. An order may be applied again at any time.

    Returns the orders that must be read from the platform, because their webhooks do not say how they are now. Raises
    `Uncountable`; then nothing is applied.
    """
    await lock_shop(tx, shop_id)
    stored = await sql.find_orders(tx, shop_id, {order.id for order in orders})
    variants = {(order.id, line.variant_gid) for order in orders for line in order.lines if line.variant_gid}
    moments = {order.id: order.placed_at for order in orders}
    draws = await sql.find_draws(tx, shop_id, moments, [*variants]) if variants else {}
    drawing = {gid for draws_of_order in draws.values() for gid in draws_of_order}
    drawing |= {line.variant_gid for order in stored.values() for line in order.lines.values()}
    names = await find_names(tx, shop_id, drawing) if drawing else {}
    effects: list[OrderEffect] = []
    unclear: list[Order] = []
    for order in orders:
        try:
            effect_of_order = order_effect(order, stored.get(order.id), draws.get(order.id, {}), names)
        except AmbiguousOrder:
            unclear.append(order)
            continue
        if effect_of_order:
            effects.append(effect_of_order)
            stored[order.id] = _after(effect_of_order, stored.get(order.id))
    if effects:
        await _write(tx, shop_id, effects)
        await sql.save_orders(tx, shop_id, effects)
        await levels.explain(tx, shop_id, _level_changes(effects))
    return unclear


def _level_changes(effects: Sequence[OrderEffect]) -> list[OrderLevelChange]:
    """The changes that the platform has made to its levels itself."""
    return [
        OrderLevelChange(gid, change, effect.not_before) for effect in effects for gid, change in effect.level_changes
    ]


def _after(effect: OrderEffect, before: StoredOrder | None) -> StoredOrder:
    lines = {**(before.lines if before else {}), **effect.lines}
    return StoredOrder(effect.order.updated_at, before.revision + 1 if before else 1, lines)


async def _write(tx: Tx, shop_id: int, effects: Sequence[OrderEffect]) -> None:
    caller = platform(shop_id)
    calls = [
        Call(caller, OrderPosting(reason=effect.reason, order_gid=effect.order.gid, postings=effect.postings))
        for effect in effects
        if effect.postings
    ]

    def touched(command: OrderPosting) -> TouchedRows:
        return TouchedRows([posting.pool_id for posting in command.postings])

    def draft(_: Stock, command: OrderPosting) -> Draft:
        return Draft([*command.postings], command.order_gid)

    if calls:
        answers = await write(tx, Batch(shop_id, calls), SOURCE, touched, draft)
        for call, answer in zip(calls, answers, strict=True):
            if isinstance(answer, Problem):
                why = "; ".join(text for texts in answer.errors.values() for text in texts) or answer.message
                raise Uncountable(f"{call.command.order_gid} cannot be counted: {why}.")
