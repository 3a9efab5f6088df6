"""What push messages register: the sending of messages, their sealed subscriptions, and the forgetting of old ones."""

from collections.abc import Sequence
from typing import Any

from holdfast.events.context import Context
from holdfast.events.push.sending import PushWork
from holdfast.events.push.subscriptions import forget_old
from holdfast.events.resources import Database
from holdfast.kit.background.row_work import RowWork
from holdfast.kit.background.tasks import Schedule, TimedTask, in_batches
from holdfast.kit.process.part import Part
from holdfast.kit.security.service_secret import SealedTable


def rows(database: Database) -> Sequence[RowWork[Any]]:
    """The messages that are due."""
    return [PushWork(database)]


PART: Part[Context] = Part(
    row_work=rows,
    timed_tasks=(TimedTask("forget_push_subscriptions", Schedule.daily("03:47"), in_batches(forget_old)),),
    sealed=(SealedTable("push_subscriptions", "id", "bigint"),),
)
