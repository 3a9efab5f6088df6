"""What photos register: their routes, the making of sizes, and the removal of photos that no event has."""

from collections.abc import Sequence
from typing import Any

from holdfast.events.context import Context
from holdfast.events.photos import retention, routes, sizes
from holdfast.events.resources import Database
from holdfast.kit.background.row_work import RowWork
from holdfast.kit.background.tasks import Schedule, TimedTask
from holdfast.kit.process.part import Endpoints, Part


def endpoints(context: Context) -> Endpoints:
    """The routes of photos, and of uploads if the store is the local disk."""
    return Endpoints(routes.routes(context.database.resources.photos, context.limits))


def rows(database: Database) -> Sequence[RowWork[Any]]:
    """The sizes of photos that are not made."""
    return [sizes.SizesWork(database)]


PART = Part(
    endpoints=endpoints,
    row_work=rows,
    timed_tasks=(TimedTask("clear_photos", Schedule.hourly(23), retention.clear_photos),),
)
