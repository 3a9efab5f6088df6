"""The mutations of the Admin API."""

from collections.abc import Callable
from typing import Any

from holdfast_demo.shopify import inventory, metafields, quantities, subscriptions
from holdfast_demo.shopify.bulk import Bulks
from holdfast_demo.shopify.connections import Fields, Info, Paging
from holdfast_demo.shopify.errors import UserErrors
from holdfast_demo.shopify.inventory import MutationKeys
from holdfast_demo.shopify.model import Shop
from holdfast_demo.shopify.platform_state import PlatformState
from holdfast_demo.shopify.queries import bulk_view, subscription_view
from holdfast_demo.shopify.views import Views, identity_view


def root(world: PlatformState, shop: Shop, keys: MutationKeys, bulks: Bulks) -> Fields:
    """The fields of a mutation, each as a function of its arguments."""
    views = Views(world, shop, Paging())
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
        done = keys.once(domain, info, input, lambda: change(world, views, input))
        return {"inventoryAdjustmentGroup": inventory.group_view(world, views, done["group"])}

    def activate(info: Info, **arguments: Any) -> Fields:
        views.require(info, "write_inventory")
        done = keys.once(domain, info, arguments, lambda: inventory.activate(world, views, arguments))
        level = world.levels.with_id(domain, done["level"])
        return {"inventoryLevel": level and views.level(level)}

    def subscribe(_: Info, topic: str, webhookSubscription: Fields) -> Fields:  # noqa: N803
        subscription = subscriptions.subscribe(world, views, topic, webhookSubscription)
        return {"webhookSubscription": subscription_view(subscription)}

    def change(_: Info, id: str, webhookSubscription: Fields) -> Fields:  # noqa: N803
        changed = subscriptions.change(world, views, id, webhookSubscription)
        return {"webhookSubscription": subscription_view(changed)}

    def unsubscribe(_: Info, id: str) -> Fields:
        subscriptions.unsubscribe(world, views, id)
        return {"deletedWebhookSubscriptionId": id}

    def set_metafields(info: Info, **arguments: Any) -> Fields:
        entries: list[Fields] = arguments["metafields"]
        if any(kind in entry["ownerId"] for entry in entries for kind in ("/Product/", "/ProductVariant/")):
            views.require(info, "write_products")
        with world.store.change():
            written = metafields.write(world, shop, entries)
        return {
            "metafields": [
                {**identity_view(metafield), **metafields.metafield_view(metafield)} for metafield in written
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
        except UserErrors as refused:
            return {"userErrors": list(refused.errors)}

    return respond
