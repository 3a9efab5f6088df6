"""Handles webhooks about orders. In whatever order they come, the ledger gets what the order is now.

`orders/create`, `orders/updated` and `orders/cancelled` have the whole order. After an edit or a refund the order is
read from the platform. A deletion changes no stock, so `orders/delete` is not handled.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

import structlog

from holdfast.inventory.catalog.operations import find_names
from holdfast.inventory.orders import model, sql
from holdfast.inventory.orders.model import AmbiguousOrder, Order, OrderEffect, StoredOrder, order_effect
from holdfast.inventory.orders.reading import MAX_READS, read_order
from holdfast.inventory.partner_webhooks.model import Delivery
from holdfast.inventory.partner_webhooks.payloads import (
    OrderEditPayload,
    OrderPayload,
    RefundPayload,
    read_payload,
)
from holdfast.inventory.resources import Reader, Steps, Tx
from holdfast.inventory.shopify.platform_client import PlatformUnreachable
from holdfast.inventory.stock.ledger_rules import Posting, Stock
from holdfast.inventory.stock.model import Write
from holdfast.inventory.stock.remembered_stock import TouchedRows
from holdfast.inventory.stock.shop_versions import lock_shop
from holdfast.inventory.stock.stock_changes import Draft, apply_and_store
from holdfast.inventory.sync import levels
from holdfast.inventory.sync.model import OrderLevelChange
from holdfast.kit.contract.caller import platform
from holdfast.kit.contract.problems import Problem
from holdfast.kit.operations.operation import Batch, Call

SOURCE = "webhook"
"""The source that the ledger names for entries of orders."""

FRESH_SECONDS = 60
"""Seconds after a webhook in which the platform may not show the order yet, or an old version of it."""


log = structlog.get_logger()


class UncountableOrder(Exception):
    """An order would take a pool beyond its limit. The message names the order, and the reason."""


class OrderPosting(Write, kw_only=True):
    """Write the postings of an order into the ledger."""

    order_gid: str
    postings: Sequence[Posting]


async def apply_orders(tx: Tx, shop_id: int, orders: Sequence[Order]) -> list[Order]:
    """Write what orders do into the ledger, as far as it is not there yet. An order may be applied again at any time.

    Returns the orders that must be read from the platform, because their webhooks do not say how they are now. Raises
    `UncountableOrder`; then nothing is applied.
    """
    await lock_shop(tx, shop_id)
    stored_orders = await sql.find_orders(tx, shop_id, {order.id for order in orders})
    variants = {(order.id, line.variant_gid) for order in orders for line in order.lines if line.variant_gid}
    moments = {order.id: order.placed_at for order in orders}
    units_by_order = await sql.find_units_by_variant(tx, shop_id, moments, [*variants]) if variants else {}
    named_gids = {gid for units_of_order in units_by_order.values() for gid in units_of_order}
    named_gids |= {line.variant_gid for order in stored_orders.values() for line in order.lines.values()}
    names = await find_names(tx, shop_id, named_gids) if named_gids else {}
    effects: list[OrderEffect] = []
    unclear: list[Order] = []
    for order in orders:
        try:
            effect_of_order = order_effect(order, stored_orders.get(order.id), units_by_order.get(order.id, {}), names)
        except AmbiguousOrder:
            unclear.append(order)
            continue
        if effect_of_order:
            effects.append(effect_of_order)
            stored_orders[order.id] = _stored_after(effect_of_order, stored_orders.get(order.id))
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


def _stored_after(effect: OrderEffect, before: StoredOrder | None) -> StoredOrder:
    lines = {**(before.lines if before else {}), **effect.lines}
    return StoredOrder(effect.order.updated_at, before.revision + 1 if before else 1, lines)


async def _write(tx: Tx, shop_id: int, effects: Sequence[OrderEffect]) -> None:
    caller = platform(shop_id)
    calls = [
        Call(caller, OrderPosting(reason=effect.reason, order_gid=effect.order.gid, postings=effect.postings))
        for effect in effects
        if effect.postings
    ]

    def rows_of(command: OrderPosting) -> TouchedRows:
        return TouchedRows([posting.pool_id for posting in command.postings])

    def draft(_: Stock, command: OrderPosting) -> Draft:
        return Draft([*command.postings], command.order_gid)

    if calls:
        answers = await apply_and_store(tx, Batch(shop_id, calls), SOURCE, rows_of, draft)
        for call, answer in zip(calls, answers, strict=True):
            if isinstance(answer, Problem):
                why = "; ".join(text for texts in answer.errors.values() for text in texts) or answer.message
                raise UncountableOrder(f"{call.command.order_gid} cannot be counted: {why}.")


async def handle_changed_orders(steps: Steps, deliveries: Sequence[Delivery]) -> None:
    """Apply new, changed and cancelled orders of one shop in one transaction.

    Orders whose webhooks do not say how they are now are read from the platform, and applied one by one.
    """
    orders = [model.from_payload(read_payload(delivery, OrderPayload)) for delivery in deliveries]
    newest = {order.id: delivery for order, delivery in zip(orders, deliveries, strict=True)}
    unclear: dict[int, datetime] = {}
    for order in await _apply(steps, deliveries[0].shop_id, orders):
        unclear[order.id] = max(order.updated_at, unclear.get(order.id, order.updated_at))
    for id, updated_at in unclear.items():
        await _read(steps, newest[id], id, updated_at)


async def handle_edit(steps: Steps, delivery: Delivery) -> None:
    """Read and apply an order whose lines were edited. The webhook has only the differences."""
    edit = read_payload(delivery, OrderEditPayload).order_edit
    await _read(steps, delivery, edit.order_id, edit.created_at)


async def handle_refund(steps: Steps, delivery: Delivery) -> None:
    """Read and apply an order that was refunded. A refund may put units back into stock."""
    refund = read_payload(delivery, RefundPayload)
    await _read(steps, delivery, refund.order_id, refund.created_at, refund.id)


async def _read(steps: Steps, delivery: Delivery, order_id: int, since: datetime, refund_id: int | None = None) -> None:
    """Read and apply an order as it is at the platform now.

    since        the order must have changed then or later, if the webhook came just now
    refund_id    a refund that it must have
    """
    is_fresh = await steps.read(partial(_seconds_since, moment=delivery.received_at)) < FRESH_SECONDS
    # Later, times are not compared: those of a change and of its order differ, so the order may seem older for ever.
    not_before = since.replace(microsecond=0) if is_fresh else None
    if await read_and_apply_order(steps, delivery.shop_id, order_id, not_before, refund_id):
        return
    if is_fresh:
        raise PlatformUnreachable(f"The platform does not show order {order_id}.", FRESH_SECONDS / 2)
    log.warning("an order cannot be read any more", shop=delivery.shop_id, order=order_id, topic=delivery.topic)


async def read_and_apply_order(
    steps: Steps, shop_id: int, order_id: int, since: datetime | None = None, refund_id: int | None = None
) -> bool:
    """Read an order from the platform, and apply it. Returns False if the platform does not show it.

    Raises `PlatformUnreachable` if the order is older than `since`, or lacks the refund.
    """
    for _ in range(MAX_READS):
        order = await read_order(steps, shop_id, order_id)
        if order is None:
            return False
        if (since and order.updated_at < since) or refund_id not in {None, *order.refund_ids}:
            raise PlatformUnreachable(f"The platform shows an old state of order {order_id}.")
        if not await _apply(steps, shop_id, [order]):
            return True
    raise PlatformUnreachable(f"Order {order_id} changes all the time.")


async def _apply(steps: Steps, shop_id: int, orders: Sequence[Order]) -> Sequence[Order]:
    """Apply orders. Returns those that must be read from the platform instead."""
    return await steps.transact(partial(apply_orders, shop_id=shop_id, orders=orders))


async def _seconds_since(reader: Reader, *, moment: datetime) -> float:
    return await reader.value("select extract(epoch from clock_timestamp() - %(moment)s)::float8", {"moment": moment})
