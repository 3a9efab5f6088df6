"""What orders register: what handles their webhooks, and the catch-up with orders whose webhooks did not come."""

from collections.abc import Collection
from functools import partial
from typing import Any

from holdfast.inventory.installs import subscriptions
from holdfast.inventory.installs.model import SUBSCRIBE, ShopTask
from holdfast.inventory.orders import catching_up, handling
from holdfast.inventory.partner_webhooks.model import BatchHandler, Handlers
from holdfast.inventory.resources import Steps
from holdfast.kit.background.tasks import TaskHandler
from holdfast.kit.process.part import Part

_CHANGES = BatchHandler(handling.handle_changed_orders)

TOPICS: Handlers = {
    "orders/create": _CHANGES,
    "orders/updated": _CHANGES,
    "orders/cancelled": _CHANGES,
    "orders/edited": handling.handle_edit,
    "refunds/create": handling.handle_refund,
}


async def subscribe(steps: Steps, task: ShopTask, topics: Collection[str]) -> None:
    """Subscribe a shop to the topics, and apply the orders whose webhooks did not come."""
    await subscriptions.subscribe(steps, task, topics)
    await catching_up.catch_up(steps, task)


def subscription_part(topics: Collection[str]) -> Part[Any]:
    """The task that subscribes a shop to the topics, and then applies the orders that it has missed."""
    return Part(tasks=(TaskHandler(SUBSCRIBE, partial(subscribe, topics=topics)),))
