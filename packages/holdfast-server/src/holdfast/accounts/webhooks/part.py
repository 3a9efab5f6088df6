"""What webhooks to programs register in each service: fan-out, sending, sealed secrets, and forgetting old messages."""

from collections.abc import Sequence
from typing import Any

from holdfast.kit.background.row_work import RowWork
from holdfast.kit.background.tasks import Schedule, TimedTask, in_batches
from holdfast.kit.postgres.database import Database
from holdfast.kit.process.part import Part
from holdfast.kit.security.service_secret import SealedTable
from holdfast.kit.webhooks.endpoints import forget_messages
from holdfast.kit.webhooks.fan_out import FAN_OUT_LOOP
from holdfast.kit.webhooks.sending import DeliveryWork


def rows(database: Database[Any]) -> Sequence[RowWork[Any]]:
    """The endpoints that messages are due for."""
    return [DeliveryWork(database)]


PART: Part[Any] = Part(
    row_work=rows,
    loops=(FAN_OUT_LOOP,),
    timed_tasks=(TimedTask("forget_webhooks", Schedule.daily("03:57"), in_batches(forget_messages)),),
    sealed=(SealedTable("webhook_endpoints", "id", "bigint"),),
)
