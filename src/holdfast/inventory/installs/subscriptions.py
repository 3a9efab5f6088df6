"""Subscriptions: the platform is to tell of every topic that is handled. It ends subscriptions that fail for hours, so
they are looked at every hour, and made again.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial

import structlog
from msgspec import Struct

from holdfast.inventory.installs import sql
from holdfast.inventory.installs.access import ask
from holdfast.inventory.installs.model import SUBSCRIBE, OfShop
from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.resources import Steps, Tx
from holdfast.inventory.shopify.admin import Query
from holdfast.inventory.webhooks.door import PATH
from holdfast.inventory.webhooks.fields import KEPT
from holdfast.kit.problems import Problem

WITHOUT = frozenset({"customers/data_request", "customers/redact", "shop/redact"})
"""Topics that the platform tells every app of: they are set up where the app is, not with each shop."""

log = structlog.get_logger()


class _Subscription(Struct):
    id: str
    topic: str
    uri: str


class _Page(Struct):
    nodes: list[_Subscription]


class _Listed(Struct, rename="camel"):
    webhook_subscriptions: _Page


class _UserError(Struct):
    message: str


class _Made(Struct, rename="camel"):
    user_errors: list[_UserError]


class _Created(Struct, rename="camel"):
    webhook_subscription_create: _Made


class _Deleted(Struct, rename="camel"):
    webhook_subscription_delete: _Made


LIST = Query(
    "list_subscriptions",
    "query Subscriptions { webhookSubscriptions(first: 100) { nodes { id topic uri } } }",
    _Listed,
    cost=20,
)
CREATE = Query(
    "create_subscription",
    """
    mutation Subscribe($topic: WebhookSubscriptionTopic!, $subscription: WebhookSubscriptionInput!) {
      webhookSubscriptionCreate(topic: $topic, webhookSubscription: $subscription) { userErrors { message } }
    }
    """,
    _Created,
)
DELETE = Query(
    "delete_subscription",
    "mutation Unsubscribe($id: ID!) { webhookSubscriptionDelete(id: $id) { userErrors { message } } }",
    _Deleted,
)


async def begin(tx: Tx, shop_id: int) -> None:
    """See to the subscriptions of a shop, soon after this transaction."""
    await tx.enqueue(SUBSCRIBE, OfShop(shop_id), tenant=shop_id)


async def subscribe_all(steps: Steps) -> int:
    """See to the subscriptions of every shop that has the app. Returns how many shops that are."""
    total, after = 0, 0
    while ids := await steps.transact(partial(_begin_some, after=after)):
        total, after = total + len(ids), ids[-1]
    return total


async def _begin_some(tx: Tx, *, after: int) -> Sequence[int]:
    ids = await sql.list_connected(tx, after, 100)
    for shop_id in ids:
        await begin(tx, shop_id)
    return ids


async def subscribe(steps: Steps, of: OfShop, topics: Collection[str]) -> None:
    """Make the subscriptions of a shop that are missing, and end those that lead to another address."""
    base_url = steps.resources.settings.base_url
    if not base_url:
        log.error("webhooks cannot be subscribed to: set INVENTORY_BASE_URL", shop=of.shop_id)
        return
    try:
        await _subscribe(steps, of.shop_id, f"{base_url}{PATH}", topics)
    except Problem as problem:
        if problem.type is not SHOP_NOT_CONNECTED:
            raise
        log.warning("a shop cannot be subscribed to", shop=of.shop_id, why=problem.message)


async def _subscribe(steps: Steps, shop_id: int, address: str, topics: Collection[str]) -> None:
    listed = (await ask(steps, shop_id, LIST)).webhook_subscriptions.nodes
    wanted: Mapping[str, str] = {_constant(each): each for each in topics if each not in WITHOUT}
    there = {each.topic for each in listed if each.uri == address}
    for constant, topic in wanted.items():
        if constant not in there:
            # Only these fields are sent: nothing of customers leaves the platform.
            subscription = {"uri": address, "includeFields": list(KEPT[topic].__struct_fields__)}
            made = await ask(steps, shop_id, CREATE, {"topic": constant, "subscription": subscription})
            _require_none(made.webhook_subscription_create.user_errors, constant)
    for each in listed:
        if each.uri != address or each.topic not in wanted:
            await ask(steps, shop_id, DELETE, {"id": each.id})


def _constant(topic: str) -> str:
    """A topic as the Admin API calls it: `orders/updated` is ORDERS_UPDATED."""
    return re.sub(r"[^a-z]", "_", topic).upper()


def _require_none(errors: Sequence[_UserError], topic: str) -> None:
    if errors:
        raise RuntimeError(f"No subscription to {topic}: {'; '.join(error.message for error in errors)}")
