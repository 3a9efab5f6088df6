"""What the catalog registers: handlers of partner webhooks, the import of a shop's products, and a nightly import."""

from typing import Any

from holdfast.inventory.catalog import importing, partner_webhooks
from holdfast.inventory.catalog.model import IMPORT
from holdfast.inventory.partner_webhooks.model import BatchHandler, Handlers
from holdfast.kit.background.tasks import Schedule, TaskHandler, TimedTask
from holdfast.kit.process.part import Part

_LEVELS = BatchHandler(partner_webhooks.store_levels)

TOPICS: Handlers = {
    "inventory_levels/connect": _LEVELS,
    "inventory_levels/update": _LEVELS,
    "inventory_levels/disconnect": partner_webhooks.forget_level,
    "inventory_items/update": partner_webhooks.store_item,
    "inventory_items/delete": partner_webhooks.forget_item,
    "products/create": partner_webhooks.store_product,
    "products/update": partner_webhooks.store_product,
    "products/delete": partner_webhooks.forget_product,
    "locations/create": partner_webhooks.store_location,
    "locations/update": partner_webhooks.store_location,
    "locations/activate": partner_webhooks.store_location,
    "locations/deactivate": partner_webhooks.store_location,
    "locations/delete": partner_webhooks.forget_location,
}

PART: Part[Any] = Part(
    tasks=(TaskHandler(IMPORT, importing.advance_import),),
    timed_tasks=(TimedTask("import_all", Schedule.daily("02:23"), importing.import_all),),
)
