"""Handles webhooks about orders. In whatever order they come, the ledger gets what the order is now.

`orders/create`, `orders/updated` and `orders/cancelled` have the whole order. After an edit or a refund the order is
read from the platform. A deletion changes no stock, so `orders/delete` is not handled.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

import structlog

from holdfast.inventory.orders import applying, model
from holdfast.inventory.orders.model import Order
from holdfast.inventory.orders.reading import MAX_READS, read_order
from holdfast.inventory.resources import Reader, Steps
from holdfast.inventory.shopify.platform import PlatformUnreachable
from holdfast.inventory.webhooks.model import Delivery
from holdfast.inventory.webhooks.payloads import (
    OrderEditPayload,
    OrderPayload,
    RefundPayload,
    read_payload,
)

FRESH_SECONDS = 60
"""Seconds after a webhook in which the platform may not show the order yet, or an old version of it."""

log = structlog.get_logger()


async def handle_changed_orders(steps: Steps, deliveries: Sequence[Delivery]) -> None:
    """Apply new, changed and cancelled orders of one shop in one transaction."""
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

    since        it must have changed then, or later; unless the webhook came a while ago
    refund_id    a refund that it must have
    """
    is_fresh = await steps.read(partial(_seconds_since, moment=delivery.received_at)) < FRESH_SECONDS
    # The times of a change and of its order differ: the order may seem older for ever.
    if await count_order(
        steps, delivery.shop_id, order_id, since.replace(microsecond=0) if is_fresh else None, refund_id
    ):
        return
    if is_fresh:
        raise PlatformUnreachable(f"The platform does not show order {order_id}.", FRESH_SECONDS / 2)
    log.warning("an order cannot be read any more", shop=delivery.shop_id, order=order_id, topic=delivery.topic)


async def count_order(
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
    return await steps.transact(partial(applying.apply, shop_id=shop_id, orders=orders))


async def _seconds_since(reader: Reader, *, moment: datetime) -> float:
    return await reader.value("select extract(epoch from clock_timestamp() - %(moment)s)::float8", {"moment": moment})
