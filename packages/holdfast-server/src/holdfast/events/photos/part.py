"""What photos register: their routes, the making of sizes, and the removal of photos that no event has."""

from collections.abc import Sequence
from typing import Any

from holdfast.events.photos import routes, sizes
from holdfast.events.resources import Context, Database
from holdfast.kit.background.row_work import RowWork
from holdfast.kit.background.tasks import Timed, Times
from holdfast.kit.process.part import Doors, Part


def doors(context: Context) -> Doors:
    """The routes of photos, and of uploads if the store is the local disk."""
    return Doors(routes.routes(context.database.resources.photos, context.limits))


def rows(database: Database) -> Sequence[RowWork[Any]]:
    """The sizes of photos that are not made."""
    return [sizes.SizesWork(database)]


PART = Part(
    doors=doors,
    rows=rows,
    timed=(Timed("clear_photos", Times.hourly(23), sizes.clear_photos),),
)
