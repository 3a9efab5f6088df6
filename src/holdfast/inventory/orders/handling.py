"""Handles what the platform tells of orders. Whatever comes, in whatever order: the ledger gets what the order is now.

`orders/create`, `orders/updated` and `orders/cancelled` bring the whole order. An edit and a refund do not: then the
order is read from the platform. That an order was deleted changes no stock, so nobody needs `orders/delete`.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

import msgspec
import structlog
from msgspec import Struct

from holdfast.inventory.orders import applying, model, reading
from holdfast.inventory.orders.model import Moment, Number, Order
from holdfast.inventory.resources import Reader, Steps
from holdfast.inventory.shopify.platform import Unreachable
from holdfast.inventory.webhooks.model import Delivery

TIMES = 3
"""How often an order is read that changes while it is applied."""

FRESH_SECONDS = 60
"""How long after a webhook the platform may not show the order yet, or an old state of it."""

log = structlog.get_logger()


class _Refunded(Struct):
    id: Number
    order_id: Number
    created_at: Moment


class _Edit(Struct):
    order_id: Number
    created_at: Moment


class _Edited(Struct):
    order_edit: _Edit


async def changed(steps: Steps, deliveries: Sequence[Delivery]) -> None:
    """Orders of one shop that are new, or different, or cancelled. All of them are applied in one transaction."""
    orders = [model.from_webhook(delivery.payload) for delivery in deliveries]
    newest = {order.id: delivery for order, delivery in zip(orders, deliveries, strict=True)}
    unclear: dict[int, datetime] = {}
    for order in await _apply(steps, deliveries[0].shop_id, orders):
        unclear[order.id] = max(order.updated_at, unclear.get(order.id, order.updated_at))
    for id, updated_at in unclear.items():
        await _read(steps, newest[id], id, updated_at)


async def edited(steps: Steps, delivery: Delivery) -> None:
    """An order whose lines were edited; only the differences came."""
    edit = msgspec.json.decode(delivery.payload, type=_Edited, strict=False).order_edit
    await _read(steps, delivery, edit.order_id, edit.created_at)


async def refunded(steps: Steps, delivery: Delivery) -> None:
    """A refund of an order, which may put units back into stock."""
    refund = msgspec.json.decode(delivery.payload, type=_Refunded, strict=False)
    await _read(steps, delivery, refund.order_id, refund.created_at, refund.id)


async def _read(steps: Steps, delivery: Delivery, order_id: int, since: datetime, refund_id: int | None = None) -> None:
    """Count an order as it is at the platform now.

    since        it must have been changed then, or later; unless the webhook came a while ago
    refund_id    a refund that it must have
    """
    is_fresh = await steps.read(partial(_seconds_since, moment=delivery.received_at)) < FRESH_SECONDS
    # The moments of a change and of its order are not the same: the order may seem older for ever.
    if await count(steps, delivery.shop_id, order_id, since.replace(microsecond=0) if is_fresh else None, refund_id):
        return
    if is_fresh:
        raise Unreachable(f"The platform does not show order {order_id}.", FRESH_SECONDS / 2)
    log.warning("an order cannot be read any more", shop=delivery.shop_id, order=order_id, topic=delivery.topic)


async def count(
    steps: Steps, shop_id: int, order_id: int, since: datetime | None = None, refund_id: int | None = None
) -> bool:
    """Read an order from the platform, and count it. False: the platform does not show it.

    Raises `Unreachable` if what it shows is older than `since`, or lacks the refund.
    """
    for _ in range(TIMES):
        order = await reading.read(steps, shop_id, order_id)
        if order is None:
            return False
        if (since and order.updated_at < since) or refund_id not in {None, *order.refund_ids}:
            raise Unreachable(f"The platform shows an old state of order {order_id}.")
        if not await _apply(steps, shop_id, [order]):
            return True
    raise Unreachable(f"Order {order_id} changes all the time.")


async def _apply(steps: Steps, shop_id: int, orders: Sequence[Order]) -> Sequence[Order]:
    """Apply orders. Returns those that must be read from the platform instead."""
    return await steps.transact(partial(applying.apply, shop_id=shop_id, orders=orders))


async def _seconds_since(reader: Reader, *, moment: datetime) -> float:
    return await reader.value("select extract(epoch from clock_timestamp() - %(moment)s)::float8", {"moment": moment})
