"""What photos register: their routes, the making of sizes, and the removal of photos that no event has."""

from holdfast.events.photos import routes, sizes
from holdfast.events.resources import Context
from holdfast.kit.background.tasks import PeriodicJob
from holdfast.kit.process.part import Doors, Part


def doors(context: Context) -> Doors:
    """The routes of photos, and of uploads if the store is the local disk."""
    return Doors(routes.routes(context.database.resources.photos, context.limits))


PART = Part(doors=doors, loops=(sizes.run,), timed=(PeriodicJob("23 * * * *", sizes.clear_photos),))
