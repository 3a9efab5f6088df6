"""What installs register: the deletion of what an uninstalled shop left, and the renewal of subscriptions."""

from typing import Any

from holdfast.inventory.installs import subscriptions, uninstalling
from holdfast.inventory.installs.model import REDACT
from holdfast.kit.background.tasks import Job, PeriodicJob
from holdfast.kit.process.part import Part
from holdfast.kit.security.secrets import SealedTable

PART: Part[Any] = Part(
    tasks=(Job(REDACT, uninstalling.delete),),
    timed=(
        PeriodicJob("33 4 * * *", uninstalling.redact_forgotten),
        PeriodicJob("7 * * * *", subscriptions.subscribe_all),
    ),
    sealed=(SealedTable("platform_tokens", "shop_id", "bigint"),),
)
