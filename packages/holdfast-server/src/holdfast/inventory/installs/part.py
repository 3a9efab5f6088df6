"""What installs register: the deletion of what an uninstalled shop left, and the renewal of subscriptions."""

from typing import Any

from holdfast.inventory.installs import subscriptions, uninstalling
from holdfast.inventory.installs.model import REDACT
from holdfast.kit.background.tasks import TaskHandler, Timed, Times
from holdfast.kit.process.part import Part
from holdfast.kit.security.secrets import SealedTable

PART: Part[Any] = Part(
    tasks=(TaskHandler(REDACT, uninstalling.delete),),
    timed=(
        Timed("redact_forgotten", Times.daily("04:33"), uninstalling.redact_forgotten),
        Timed("subscribe_all", Times.hourly(7), subscriptions.subscribe_all),
    ),
    sealed=(SealedTable("platform_tokens", "shop_id", "bigint"),),
)
