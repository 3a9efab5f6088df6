"""What handles each topic of the storefront platform's webhooks, one line each; and what follows an install."""

from holdfast.inventory.catalog import importing, told
from holdfast.inventory.installs import scopes_changed, subscriptions, uninstalling
from holdfast.inventory.installs.model import OfShop
from holdfast.inventory.installs.operations import Follows
from holdfast.inventory.orders import catching_up
from holdfast.inventory.orders import handling as orders
from holdfast.inventory.resources import Steps
from holdfast.inventory.sync import numbers
from holdfast.inventory.webhooks.model import Handlers, Together

ORDERS = Together(orders.changed)
LEVELS = Together(told.changed_levels)

HANDLERS: Handlers = {
    "app/scopes_update": scopes_changed.look,
    "app/uninstalled": uninstalling.uninstall,
    "shop/redact": uninstalling.redact,
    "orders/create": ORDERS,
    "orders/updated": ORDERS,
    "orders/cancelled": ORDERS,
    "orders/edited": orders.edited,
    "refunds/create": orders.refunded,
    "inventory_levels/connect": LEVELS,
    "inventory_levels/update": LEVELS,
    "inventory_levels/disconnect": told.level_gone,
    "inventory_items/update": told.item,
    "inventory_items/delete": told.item_gone,
    "products/create": told.product,
    "products/update": told.product,
    "products/delete": told.product_gone,
    "locations/create": told.location,
    "locations/update": told.location,
    "locations/activate": told.location,
    "locations/deactivate": told.location,
    "locations/delete": told.location_gone,
}

AFTER_INSTALL: Follows = (subscriptions.begin, importing.begin, numbers.forget)


async def subscribe(steps: Steps, of: OfShop) -> None:
    """See that the platform tells of all these topics, and count the orders that it did not tell of."""
    await subscriptions.subscribe(steps, of, HANDLERS.keys())
    await catching_up.catch_up(steps, of)
