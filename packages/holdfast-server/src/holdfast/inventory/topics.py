"""The handler of each topic of the storefront platform's webhooks, one line each, and the hooks after an install."""

from holdfast.inventory.catalog import importing, webhooks
from holdfast.inventory.installs import scopes_changed, subscriptions, uninstalling
from holdfast.inventory.installs.model import ShopTask
from holdfast.inventory.installs.operations import InstallHooks
from holdfast.inventory.orders import catching_up
from holdfast.inventory.orders import handling as orders
from holdfast.inventory.resources import Steps
from holdfast.inventory.sync import cart_check_numbers
from holdfast.inventory.webhooks.model import BatchHandler, Handlers

ORDERS = BatchHandler(orders.handle_changed_orders)
LEVELS = BatchHandler(webhooks.store_levels)

HANDLERS: Handlers = {
    "app/scopes_update": scopes_changed.store_granted_scopes,
    "app/uninstalled": uninstalling.uninstall,
    "shop/redact": uninstalling.redact,
    "orders/create": ORDERS,
    "orders/updated": ORDERS,
    "orders/cancelled": ORDERS,
    "orders/edited": orders.handle_edit,
    "refunds/create": orders.handle_refund,
    "inventory_levels/connect": LEVELS,
    "inventory_levels/update": LEVELS,
    "inventory_levels/disconnect": webhooks.forget_level,
    "inventory_items/update": webhooks.store_item,
    "inventory_items/delete": webhooks.forget_item,
    "products/create": webhooks.store_product,
    "products/update": webhooks.store_product,
    "products/delete": webhooks.forget_product,
    "locations/create": webhooks.store_location,
    "locations/update": webhooks.store_location,
    "locations/activate": webhooks.store_location,
    "locations/deactivate": webhooks.store_location,
    "locations/delete": webhooks.forget_location,
}

AFTER_INSTALL: InstallHooks = (subscriptions.enqueue, importing.begin, cart_check_numbers.forget)


async def subscribe(steps: Steps, of: ShopTask) -> None:
    """Subscribe to all these topics, and apply the orders whose webhooks did not come."""
    await subscriptions.subscribe(steps, of, HANDLERS.keys())
    await catching_up.catch_up(steps, of)
