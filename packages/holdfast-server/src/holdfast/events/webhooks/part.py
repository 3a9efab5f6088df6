"""What webhooks register: the fan-out, the sending, the sealed secrets, and the forgetting of old messages."""

from collections.abc import Sequence
from typing import Any

from holdfast.events.resources import Context, Database, Tx
from holdfast.events.users.quotas import require_room
from holdfast.events.webhooks.messages import MESSAGES
from holdfast.kit.background.row_work import RowWork
from holdfast.kit.background.tasks import Schedule, TimedTask, in_batches
from holdfast.kit.contract.messages import message
from holdfast.kit.process.part import Part
from holdfast.kit.security.secrets import SealedTable
from holdfast.kit.webhooks.endpoints import COUNT_ENDPOINTS, EndpointOperations, forget_messages
from holdfast.kit.webhooks.fan_out import FAN_OUT_LOOP
from holdfast.kit.webhooks.sending import DeliveryWork

MAX_ENDPOINTS = 20
"""The most endpoints of an organizer."""


async def require_room_for_endpoint(tx: Tx, organizer_id: int) -> None:
    """Raises `quota_exceeded` if the organizer has as many endpoints as it may have."""
    await require_room(tx, organizer_id, message("endpoints of webhooks"), MAX_ENDPOINTS, COUNT_ENDPOINTS)


ENDPOINTS = EndpointOperations(MESSAGES, require_room_for_endpoint)


def rows(database: Database) -> Sequence[RowWork[Any]]:
    """The endpoints that messages are due for."""
    return [DeliveryWork(database)]


PART: Part[Context] = Part(
    row_work=rows,
    loops=(FAN_OUT_LOOP,),
    timed_tasks=(TimedTask("forget_webhooks", Schedule.daily("03:57"), in_batches(forget_messages)),),
    sealed=(SealedTable("webhook_endpoints", "id", "bigint"),),
)
