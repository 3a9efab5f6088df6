"""What push messages register: how a browser asks for them, their sending, and their sealed subscriptions."""

from collections.abc import Sequence
from typing import Any

from holdfast.events.context import Context
from holdfast.events.push import routes
from holdfast.events.push.sending import PushWork
from holdfast.events.push.subscriptions import forget_old
from holdfast.events.resources import Database
from holdfast.kit.background.row_work import RowWork
from holdfast.kit.background.tasks import Schedule, TimedTask, in_batches
from holdfast.kit.process.part import Endpoints, Part
from holdfast.kit.security.service_secret import SealedTable


def rows(database: Database) -> Sequence[RowWork[Any]]:
    """The messages that are due."""
    return [PushWork(database)]


def endpoints(context: Context) -> Endpoints:
    """The routes by which a browser asks for push messages."""
    return Endpoints(routes.routes(context.database, context.runner, context.limits))


PART: Part[Context] = Part(
    operations=routes.OPERATIONS,
    endpoints=endpoints,
    row_work=rows,
    timed_tasks=(TimedTask("forget_push_subscriptions", Schedule.daily("03:47"), in_batches(forget_old)),),
    sealed=(SealedTable("push_subscriptions", "id", "bigint"),),
)
