"""Subscriptions to webhooks, as the Admin API changes them."""

from urllib.parse import urlsplit

from holdfast_demo.shopify.connections import Fields
from holdfast_demo.shopify.errors import UserErrors, user_error
from holdfast_demo.shopify.model import Subscription, parse_gid
from holdfast_demo.shopify.platform_state import PlatformState, matching
from holdfast_demo.shopify.views import Views

SCOPES = {
    "ORDERS": ("read_orders",),
    "REFUNDS": ("read_orders",),
    "INVENTORY_LEVELS": ("read_inventory",),
    "INVENTORY_ITEMS": ("read_inventory", "read_products"),
    "PRODUCTS": ("read_products",),
    "VARIANTS": ("read_products",),
    "LOCATIONS": ("read_locations",),
}
"""The scopes that the topics with a prefix need: one of them."""

UNSCOPED_TOPICS = ("APP_UNINSTALLED", "APP_SCOPES_UPDATE", "SHOP_UPDATE", "BULK_OPERATIONS_FINISH")

_AT = ("webhookSubscription", "uri")


def subscribe(world: PlatformState, views: Views, topic: str, arguments: Fields) -> Subscription:
    """A new subscription. Raises `UserErrors`."""
    scopes = next((needed for begin, needed in SCOPES.items() if topic.startswith(f"{begin}_")), ())
    if topic not in UNSCOPED_TOPICS and not views.scopes.intersection(scopes):
        topic_name = topic.lower().replace("_", "/")
        message = f"You do not have permission to create or update webhooks with {topic_name} topic."
        raise UserErrors(user_error(message, None, "topic"))
    uri = _uri(arguments)
    same = matching(("json_extract(body, '$.topic') = ?", topic), ("json_extract(body, '$.uri') = ?", uri))
    existing = world.store.select(Subscription, views.domain, same)
    if existing:
        raise UserErrors(user_error("Address for this topic has already been taken", None, *_AT))
    now = world.now()
    subscription = Subscription(topic=topic, uri=uri, created=now, updated=now)
    return world.store.put(views.domain, _apply(subscription, arguments))


def change(world: PlatformState, views: Views, id: str, arguments: Fields) -> Subscription:
    """Change a subscription. Raises `UserErrors`."""
    subscription = _subscription(world, views, id)
    if arguments.get("uri") or arguments.get("callbackUrl"):
        subscription.uri = _uri(arguments)
    subscription.updated = world.now()
    return world.store.put(views.domain, _apply(subscription, arguments))


def unsubscribe(world: PlatformState, views: Views, id: str) -> None:
    """End a subscription. Raises `UserErrors`."""
    world.store.remove(views.domain, _subscription(world, views, id))


def _subscription(world: PlatformState, views: Views, id: str) -> Subscription:
    subscription = world.store.find(Subscription, views.domain, parse_gid(id, "WebhookSubscription"))
    if subscription is None:
        raise UserErrors(user_error("Webhook subscription does not exist", None, "id"))
    return subscription


def _apply(subscription: Subscription, arguments: Fields) -> Subscription:
    if arguments.get("format") == "XML":
        raise UserErrors(user_error("The double sends JSON alone.", None, "webhookSubscription", "format"))
    if arguments.get("filter"):
        raise UserErrors(user_error("The double filters nothing.", None, "webhookSubscription", "filter"))
    fields = arguments.get("includeFields")
    if fields is not None:
        if any("." in field for field in fields):
            message = "The double knows no fields inside others."
            raise UserErrors(user_error(message, None, "webhookSubscription", "includeFields"))
        subscription.include_fields = list(fields)
    subscription.name = arguments.get("name", subscription.name)
    return subscription


def _uri(arguments: Fields) -> str:
    uri = arguments.get("uri") or arguments.get("callbackUrl") or ""
    parts = urlsplit(uri)
    here = parts.hostname in {"127.0.0.1", "localhost"}
    if not parts.hostname or (parts.scheme != "https" and not here):
        raise UserErrors(user_error(f"Address protocol {parts.scheme}:// is not supported", None, *_AT))
    return uri
