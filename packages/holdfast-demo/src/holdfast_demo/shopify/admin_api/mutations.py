"""The mutations of the Admin API, and its subscriptions to webhooks."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from holdfast_demo.shopify.admin_api import inventory, metafields, quantities
from holdfast_demo.shopify.admin_api.bulk import Bulks
from holdfast_demo.shopify.admin_api.connections import Fields, Info, Paging
from holdfast_demo.shopify.admin_api.inventory import MutationKeys
from holdfast_demo.shopify.admin_api.queries import bulk_view, subscription_view
from holdfast_demo.shopify.admin_api.views import Views, identity_view
from holdfast_demo.shopify.errors import UserErrors, user_error
from holdfast_demo.shopify.model import Shop, Subscription, parse_gid
from holdfast_demo.shopify.platform_state import PlatformState, matching

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


def create_subscription(platform: PlatformState, views: Views, topic: str, arguments: Fields) -> Subscription:
    """A new subscription. Raises `UserErrors`."""
    scopes = next((needed for begin, needed in SCOPES.items() if topic.startswith(f"{begin}_")), ())
    if topic not in UNSCOPED_TOPICS and not views.scopes.intersection(scopes):
        topic_name = topic.lower().replace("_", "/")
        message = f"You do not have permission to create or update webhooks with {topic_name} topic."
        raise UserErrors(user_error(message, None, "topic"))
    uri = _uri(arguments)
    same = matching(("json_extract(body, '$.topic') = ?", topic), ("json_extract(body, '$.uri') = ?", uri))
    existing = platform.store.select(Subscription, views.domain, same)
    if existing:
        raise UserErrors(user_error("Address for this topic has already been taken", None, *_AT))
    now = platform.now()
    subscription = Subscription(topic=topic, uri=uri, created=now, updated=now)
    return platform.store.put(views.domain, _apply(subscription, arguments))


def change_subscription(platform: PlatformState, views: Views, id: str, arguments: Fields) -> Subscription:
    """Change a subscription. Raises `UserErrors`."""
    subscription = _subscription(platform, views, id)
    if arguments.get("uri") or arguments.get("callbackUrl"):
        subscription.uri = _uri(arguments)
    subscription.updated = platform.now()
    return platform.store.put(views.domain, _apply(subscription, arguments))


def delete_subscription(platform: PlatformState, views: Views, id: str) -> None:
    """End a subscription. Raises `UserErrors`."""
    platform.store.remove(views.domain, _subscription(platform, views, id))


def _subscription(platform: PlatformState, views: Views, id: str) -> Subscription:
    subscription = platform.store.find(Subscription, views.domain, parse_gid(id, "WebhookSubscription"))
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


def root(platform: PlatformState, shop: Shop, keys: MutationKeys, bulks: Bulks) -> Fields:
    """The fields of a mutation, each as a function of its arguments."""
    views = Views(platform, shop, Paging())
    domain = shop.domain

    def set_quantities(info: Info, input: Fields) -> Fields:
        quantities.check(info, "quantities", input)
        return change_quantities(info, input, quantities.set_quantities)

    def adjust_quantities(info: Info, input: Fields) -> Fields:
        quantities.check(info, "changes", input)
        return change_quantities(info, input, quantities.adjust_quantities)

    def change_quantities(
        info: Info, input: Fields, change: Callable[[PlatformState, Views, Fields], Fields]
    ) -> Fields:
        views.require(info, "write_inventory")
        result = keys.once(domain, info, input, lambda: change(platform, views, input))
        return {"inventoryAdjustmentGroup": inventory.group_view(platform, views, result["group"])}

    def activate(info: Info, **arguments: Any) -> Fields:
        views.require(info, "write_inventory")
        result = keys.once(domain, info, arguments, lambda: inventory.activate(platform, views, arguments))
        level = platform.levels.with_id(domain, result["level"])
        return {"inventoryLevel": level and views.level(level)}

    def subscribe(_: Info, topic: str, webhookSubscription: Fields) -> Fields:  # noqa: N803
        subscription = create_subscription(platform, views, topic, webhookSubscription)
        return {"webhookSubscription": subscription_view(subscription)}

    def change(_: Info, id: str, webhookSubscription: Fields) -> Fields:  # noqa: N803
        subscription = change_subscription(platform, views, id, webhookSubscription)
        return {"webhookSubscription": subscription_view(subscription)}

    def unsubscribe(_: Info, id: str) -> Fields:
        delete_subscription(platform, views, id)
        return {"deletedWebhookSubscriptionId": id}

    def set_metafields(info: Info, **arguments: Any) -> Fields:
        entries: list[Fields] = arguments["metafields"]
        if any(kind in entry["ownerId"] for entry in entries for kind in ("/Product/", "/ProductVariant/")):
            views.require(info, "write_products")
        with platform.store.change():
            stored_metafields = metafields.write(platform, shop, entries)
        return {
            "metafields": [
                {**identity_view(metafield), **metafields.metafield_view(metafield)} for metafield in stored_metafields
            ]
        }

    def run_bulk(_: Info, query: str, groupObjects: bool = False) -> Fields:  # noqa: N803
        return {"bulkOperation": bulk_view(bulks.begin(shop, query, grouped=groupObjects))}

    def cancel_bulk(_: Info, id: str) -> Fields:
        return {"bulkOperation": bulk_view(bulks.cancel(domain, id))}

    fields = {
        "inventoryAdjustQuantities": adjust_quantities,
        "inventorySetQuantities": set_quantities,
        "inventoryActivate": activate,
        "webhookSubscriptionCreate": subscribe,
        "webhookSubscriptionUpdate": change,
        "webhookSubscriptionDelete": unsubscribe,
        "metafieldsSet": set_metafields,
        "bulkOperationRunQuery": run_bulk,
        "bulkOperationCancel": cancel_bulk,
    }
    return {name: _with_user_errors(field) for name, field in fields.items()}


def _with_user_errors(field: Callable[..., Fields]) -> Callable[..., Fields]:
    def respond(info: Info, **arguments: Any) -> Fields:
        try:
            return {**field(info, **arguments), "userErrors": []}
        except UserErrors as refusal:
            return {"userErrors": list(refusal.errors)}

    return respond
