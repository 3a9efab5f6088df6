"""What installs register: what handles their webhooks, the deletion of uninstalled shops, and renewed subscriptions."""

from typing import Any

from holdfast.inventory.installs import subscriptions, uninstalling
from holdfast.inventory.installs.model import REDACT
from holdfast.inventory.partner_webhooks.model import Handlers
from holdfast.kit.background.tasks import Schedule, TaskHandler, TimedTask
from holdfast.kit.process.part import Part
from holdfast.kit.security.service_secret import SealedTable

TOPICS: Handlers = {
    "app/scopes_update": uninstalling.store_granted_scopes,
    "app/uninstalled": uninstalling.uninstall,
    "shop/redact": uninstalling.redact,
}

PART: Part[Any] = Part(
    tasks=(TaskHandler(REDACT, uninstalling.delete),),
    timed_tasks=(
        TimedTask("redact_forgotten", Schedule.daily("04:33"), uninstalling.redact_forgotten),
        TimedTask("subscribe_all", Schedule.hourly(7), subscriptions.subscribe_all),
    ),
    sealed=(SealedTable("platform_tokens", "shop_id", "bigint"),),
)
