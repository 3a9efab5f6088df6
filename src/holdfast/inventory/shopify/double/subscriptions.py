"""Who is told of what: subscriptions, as the Admin API changes them."""

from urllib.parse import urlsplit

from holdfast.inventory.shopify.double.connections import View
from holdfast.inventory.shopify.double.errors import UserErrors, user_error
from holdfast.inventory.shopify.double.model import Subscription, number
from holdfast.inventory.shopify.double.views import Views
from holdfast.inventory.shopify.double.world import World, matching

SCOPES = {
    "ORDERS": ("read_orders",),
    "REFUNDS": ("read_orders",),
    "INVENTORY_LEVELS": ("read_inventory",),
    "INVENTORY_ITEMS": ("read_inventory", "read_products"),
    "PRODUCTS": ("read_products",),
    "VARIANTS": ("read_products",),
    "LOCATIONS": ("read_locations",),
}
"""What topics that begin so are told to."""

ALWAYS = ("APP_UNINSTALLED", "APP_SCOPES_UPDATE", "SHOP_UPDATE", "BULK_OPERATIONS_FINISH")

_AT = ("webhookSubscription", "uri")


def subscribe(world: World, views: Views, topic: str, given: View) -> Subscription:
    """A new subscription. Raises `UserErrors`."""
    scopes = next((needed for begin, needed in SCOPES.items() if topic.startswith(f"{begin}_")), ())
    if topic not in ALWAYS and not views.scopes.intersection(scopes):
        named = topic.lower().replace("_", "/")
        message = f"You do not have permission to create or update webhooks with {named} topic."
        raise UserErrors(user_error(message, None, "topic"))
    uri = _uri(given)
    same = matching(("json_extract(body, '$.topic') = ?", topic), ("json_extract(body, '$.uri') = ?", uri))
    taken = world.store.some(Subscription, views.domain, same)
    if taken:
        raise UserErrors(user_error("Address for this topic has already been taken", None, *_AT))
    now = world.now()
    made = Subscription(topic=topic, uri=uri, created=now, updated=now)
    return world.store.put(views.domain, _filled(made, given))


def change(world: World, views: Views, id: str, given: View) -> Subscription:
    """Change a subscription. Raises `UserErrors`."""
    found = _subscription(world, views, id)
    if given.get("uri") or given.get("callbackUrl"):
        found.uri = _uri(given)
    found.updated = world.now()
    return world.store.put(views.domain, _filled(found, given))


def unsubscribe(world: World, views: Views, id: str) -> None:
    """End a subscription. Raises `UserErrors`."""
    world.store.remove(views.domain, _subscription(world, views, id))


def _subscription(world: World, views: Views, id: str) -> Subscription:
    found = world.store.find(Subscription, views.domain, number(id, "WebhookSubscription"))
    if found is None:
        raise UserErrors(user_error("Webhook subscription does not exist", None, "id"))
    return found


def _filled(subscription: Subscription, given: View) -> Subscription:
    if given.get("format") == "XML":
        raise UserErrors(user_error("The double sends JSON alone.", None, "webhookSubscription", "format"))
    if given.get("filter"):
        raise UserErrors(user_error("The double filters nothing.", None, "webhookSubscription", "filter"))
    fields = given.get("includeFields")
    if fields is not None:
        if any("." in each for each in fields):
            message = "The double knows no fields inside others."
            raise UserErrors(user_error(message, None, "webhookSubscription", "includeFields"))
        subscription.include_fields = list(fields)
    subscription.name = given.get("name", subscription.name)
    return subscription


def _uri(given: View) -> str:
    uri = given.get("uri") or given.get("callbackUrl") or ""
    parts = urlsplit(uri)
    here = parts.hostname in {"127.0.0.1", "localhost"}
    if not parts.hostname or (parts.scheme != "https" and not here):
        raise UserErrors(user_error(f"Address protocol {parts.scheme}:// is not supported", None, *_AT))
    return uri
