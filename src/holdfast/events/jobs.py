"""Everything the events service does by itself."""

from holdfast.events.events import recurrence
from holdfast.events.photos import retention as photos
from holdfast.events.pricing import changes
from holdfast.events.queues import passes, release
from holdfast.events.queues import retention as queue_retention
from holdfast.events.registrations import retention, settlement
from holdfast.kit import idempotency
from holdfast.kit.jobs import Periodic

LOOPS = (settlement.run, recurrence.run, release.run)

PERIODIC = (
    Periodic("* * * * *", changes.tick),
    Periodic("23 * * * *", photos.clear_photos),
    Periodic("29 * * * *", idempotency.forget_answers),
    Periodic("17 3 * * *", retention.forget_rejections),
    Periodic("*/10 * * * *", queue_retention.forget_visitors),
    Periodic("31 4 1 * *", passes.rotate_queue_keys),
)
