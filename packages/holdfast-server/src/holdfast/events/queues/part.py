"""What queues register: their pages, their release, and the forgetting of visitors."""

from holdfast.events.context import Context
from holdfast.events.queues import release, release_keys, release_tokens, room, visitor_retention
from holdfast.events.queues.pages import progress_page, room_pages
from holdfast.kit.background.tasks import Schedule, TimedTask, in_transaction
from holdfast.kit.process.part import Endpoints, Part
from holdfast.kit.security.service_secret import SealedTable


def endpoints(context: Context) -> Endpoints:
    """The pages of waiting rooms, the cache of what they show, and the keys of release tokens."""
    database, runner, limits = context.database, context.runner, context.limits
    progress = room.progress_cache(database, runner)
    return Endpoints(
        [
            release_keys.route(database, limits),
            *room_pages.routes(database, runner, limits),
            progress_page.route(database, limits, progress),
        ],
        caches=[progress.forgetting],
    )


PART = Part(
    operations=room_pages.OPERATIONS,
    endpoints=endpoints,
    loops=(release.LOOP,),
    timed_tasks=(
        TimedTask("forget_visitors", Schedule.minutes(10), in_transaction(visitor_retention.forget_visitors)),
        TimedTask("rotate_queue_keys", Schedule.monthly(1, "04:31"), in_transaction(release_tokens.rotate_queue_keys)),
    ),
    keys=(release_tokens.RELEASE_SIGNING_KEYS,),
    sealed=(SealedTable("queue_signing_keys", "kid", "text"),),
)
