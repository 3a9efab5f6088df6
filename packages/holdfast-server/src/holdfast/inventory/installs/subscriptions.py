"""Subscribes to every topic that has a handler. The platform ends subscriptions that fail for hours, so missing ones
are made again every hour. A refused topic does not stop the others.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial

import structlog
from msgspec import Struct

from holdfast.inventory.installs import sql
from holdfast.inventory.installs.access import call_admin_api
from holdfast.inventory.installs.model import SUBSCRIBE, ShopTask
from holdfast.inventory.partner_webhooks.payloads import fields_of
from holdfast.inventory.partner_webhooks.routes import SHOPIFY_WEBHOOKS_PATH
from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.resources import Steps, Tx
from holdfast.inventory.shopify.admin import Query
from holdfast.inventory.shopify.platform_client import PlatformRefusal
from holdfast.kit.contract.problems import Problem

APP_WIDE_TOPICS = frozenset({"customers/data_request", "customers/redact", "shop/redact"})
"""Topics that the platform sends to every app: they are configured with the app, not with each shop."""

log = structlog.get_logger()


class NotSubscribed(Exception):
    """The platform refuses subscriptions to some topics, and has accepted the others. It is retried later."""


class _Subscription(Struct):
    id: str
    topic: str
    uri: str


class _SubscriptionsPage(Struct):
    nodes: list[_Subscription]


class _SubscriptionsAnswer(Struct, rename="camel"):
    webhook_subscriptions: _SubscriptionsPage


class _SubscriptionError(Struct):
    message: str


class _MutationPayload(Struct, rename="camel"):
    user_errors: list[_SubscriptionError]


class _CreateAnswer(Struct, rename="camel"):
    webhook_subscription_create: _MutationPayload


class _DeleteAnswer(Struct, rename="camel"):
    webhook_subscription_delete: _MutationPayload


LIST_SUBSCRIPTIONS = Query(
    "list_subscriptions",
    "query Subscriptions { webhookSubscriptions(first: 100) { nodes { id topic uri } } }",
    _SubscriptionsAnswer,
    cost=20,
)
CREATE_SUBSCRIPTION = Query(
    "create_subscription",
    """
    mutation Subscribe($topic: WebhookSubscriptionTopic!, $subscription: WebhookSubscriptionInput!) {
      webhookSubscriptionCreate(topic: $topic, webhookSubscription: $subscription) { userErrors { message } }
    }
    """,
    _CreateAnswer,
)
DELETE_SUBSCRIPTION = Query(
    "delete_subscription",
    "mutation Unsubscribe($id: ID!) { webhookSubscriptionDelete(id: $id) { userErrors { message } } }",
    _DeleteAnswer,
)


async def enqueue(tx: Tx, shop_id: int) -> None:
    """Make the missing subscriptions of a shop, soon after this transaction."""
    await tx.enqueue(SUBSCRIBE, ShopTask(shop_id), tenant=shop_id)


async def subscribe_all(steps: Steps) -> int:
    """Make the missing subscriptions of every shop that has the app. Returns how many shops."""
    total, after = 0, 0
    while ids := await steps.transact(partial(_enqueue_some, after=after)):
        total, after = total + len(ids), ids[-1]
    return total


async def _enqueue_some(tx: Tx, *, after: int) -> Sequence[int]:
    ids = await sql.list_connected(tx, after, 100)
    for shop_id in ids:
        await enqueue(tx, shop_id)
    return ids


async def subscribe(steps: Steps, task: ShopTask, topics: Collection[str]) -> None:
    """Make the missing subscriptions of a shop, and end those with another address."""
    base_url = steps.resources.settings.base_url
    if not base_url:
        log.error("webhooks cannot be subscribed to: set INVENTORY_BASE_URL", shop=task.shop_id)
        return
    try:
        await _update_subscriptions(steps, task.shop_id, f"{base_url}{SHOPIFY_WEBHOOKS_PATH}", topics)
    except Problem as problem:
        if problem.type is not SHOP_NOT_CONNECTED:
            raise
        log.warning("a shop cannot be subscribed to", shop=task.shop_id, why=problem.message)


async def _update_subscriptions(steps: Steps, shop_id: int, address: str, topics: Collection[str]) -> None:
    subscriptions = (await call_admin_api(steps, shop_id, LIST_SUBSCRIPTIONS)).webhook_subscriptions.nodes
    topics_by_constant: Mapping[str, str] = {
        _constant(topic): topic for topic in topics if topic not in APP_WIDE_TOPICS
    }
    subscribed = {subscription.topic for subscription in subscriptions if subscription.uri == address}
    refusals: list[str] = []
    for constant, topic in topics_by_constant.items():
        if constant not in subscribed and (why := await _refusal(steps, shop_id, constant, address, topic)):
            refusals.append(f"{topic}: {why}")
    for subscription in subscriptions:
        if subscription.uri != address or subscription.topic not in topics_by_constant:
            await call_admin_api(steps, shop_id, DELETE_SUBSCRIPTION, {"id": subscription.id})
    await steps.transact(partial(sql.store_subscription_errors, shop_id=shop_id, errors=refusals))
    if refusals:
        raise NotSubscribed(f"No subscription to {'; '.join(refusals)}")


async def _refusal(steps: Steps, shop_id: int, constant: str, address: str, topic: str) -> str | None:
    """Subscribe to a topic. Returns the reason of a refusal; None: the topic is subscribed."""
    # Only these fields are sent: no data of customers leaves the platform.
    variables = {"topic": constant, "subscription": {"uri": address, "includeFields": fields_of(topic)}}
    try:
        answer = await call_admin_api(steps, shop_id, CREATE_SUBSCRIPTION, variables)
    except PlatformRefusal as refusal:
        return str(refusal)
    return "; ".join(error.message for error in answer.webhook_subscription_create.user_errors) or None


def _constant(topic: str) -> str:
    """The Admin API's name of a topic: `orders/updated` is ORDERS_UPDATED."""
    return re.sub(r"[^a-z]", "_", topic).upper()
