"""What the catalog registers: what handles its webhooks, the import of a shop's products, and a nightly one of all."""

from typing import Any

from holdfast.inventory.catalog import importing, webhooks
from holdfast.inventory.catalog.model import IMPORT
from holdfast.inventory.partner_webhooks.model import BatchHandler, Handlers
from holdfast.kit.background.tasks import Schedule, TaskHandler, TimedTask
from holdfast.kit.process.part import Part

_LEVELS = BatchHandler(webhooks.store_levels)

TOPICS: Handlers = {
    "inventory_levels/connect": _LEVELS,
    "inventory_levels/update": _LEVELS,
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

PART: Part[Any] = Part(
    tasks=(TaskHandler(IMPORT, importing.advance_import),),
    timed_tasks=(TimedTask("import_all", Schedule.daily("02:23"), importing.import_all),),
)
