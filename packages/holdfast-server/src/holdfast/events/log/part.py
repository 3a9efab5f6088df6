"""What logs register: their routes, the page that verifies them, and the work that seals and publishes them."""

from functools import partial

from holdfast.events.context import Context
from holdfast.events.log import head_log, keys, routes, sealing
from holdfast.kit.process.part import Endpoints, Part
from holdfast.kit.security.service_secret import SealedTable


def endpoints(context: Context) -> Endpoints:
    """The routes of logs and of the page `/verify`, and the cache of keys."""
    database, limits = context.database, context.limits
    return Endpoints(
        [*routes.routes(context.runner, limits), *routes.verify_page_routes(database, limits)],
        caches=[partial(keys.forgetting, database)],
    )


PART = Part(endpoints=endpoints, loops=(sealing.LOOP, head_log.LOOP), sealed=(SealedTable("log_keys", "id", "bigint"),))
