"""What can be changed at a shop."""

from collections.abc import Callable
from typing import Any

from holdfast.inventory.shopify.double import inventory, metafields, subscriptions
from holdfast.inventory.shopify.double.bulk import Bulks
from holdfast.inventory.shopify.double.connections import Info, Paging, View
from holdfast.inventory.shopify.double.errors import UserErrors
from holdfast.inventory.shopify.double.inventory import Keys
from holdfast.inventory.shopify.double.model import Shop
from holdfast.inventory.shopify.double.queries import shown_bulk, shown_subscription
from holdfast.inventory.shopify.double.views import Views, stamped
from holdfast.inventory.shopify.double.world import World


def root(world: World, shop: Shop, keys: Keys, bulks: Bulks) -> View:
    """The fields of a mutation, each as a function of its arguments."""
    views = Views(world, shop, Paging())
    domain = shop.domain

    def set_quantities(info: Info, input: View) -> View:
        views.require(info, "write_inventory")
        inventory.check(info, input)
        done = keys.once(domain, info, input, lambda: inventory.set_quantities(world, views, input))
        return {"inventoryAdjustmentGroup": inventory.shown_group(world, views, done["group"])}

    def activate(info: Info, **given: Any) -> View:
        views.require(info, "write_inventory")
        done = keys.once(domain, info, given, lambda: inventory.activate(world, views, given))
        level = world.levels.with_id(domain, done["level"])
        return {"inventoryLevel": level and views.level(level)}

    def subscribe(_: Info, topic: str, webhookSubscription: View) -> View:  # noqa: N803
        made = subscriptions.subscribe(world, views, topic, webhookSubscription)
        return {"webhookSubscription": shown_subscription(made)}

    def change(_: Info, id: str, webhookSubscription: View) -> View:  # noqa: N803
        changed = subscriptions.change(world, views, id, webhookSubscription)
        return {"webhookSubscription": shown_subscription(changed)}

    def unsubscribe(_: Info, id: str) -> View:
        subscriptions.unsubscribe(world, views, id)
        return {"deletedWebhookSubscriptionId": id}

    def set_metafields(info: Info, **given: Any) -> View:
        wanted: list[View] = given["metafields"]
        if any(kind in each["ownerId"] for each in wanted for kind in ("/Product/", "/ProductVariant/")):
            views.require(info, "write_products")
        with world.store.change():
            written = metafields.write(world, shop, wanted)
        return {"metafields": [{**stamped(each), **metafields.shown(each)} for each in written]}

    def run_bulk(_: Info, query: str, groupObjects: bool = False) -> View:  # noqa: N803
        return {"bulkOperation": shown_bulk(bulks.begin(shop, query, grouped=groupObjects))}

    def cancel_bulk(_: Info, id: str) -> View:
        return {"bulkOperation": shown_bulk(bulks.cancel(domain, id))}

    fields = {
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


def _with_user_errors(field: Callable[..., View]) -> Callable[..., View]:
    def answered(info: Info, **given: Any) -> View:
        try:
            return {**field(info, **given), "userErrors": []}
        except UserErrors as refused:
            return {"userErrors": list(refused.errors)}

    return answered
