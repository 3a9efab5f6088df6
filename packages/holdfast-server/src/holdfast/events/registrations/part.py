"""What registrations register: the index for searches, cancellations, and the forgetting of people."""

from holdfast.events.context import Context
from holdfast.events.registrations import own_cancellations, retention, substring_search
from holdfast.events.registrations.people_in_answers import IDEMPOTENCY
from holdfast.kit.background.tasks import Schedule, TaskHandler, TimedTask, in_batches
from holdfast.kit.process.part import Part
from holdfast.kit.security.service_secret import SealedTable

PART: Part[Context] = Part(
    loops=(own_cancellations.LOOP,),
    tasks=(TaskHandler(substring_search.INDEX, substring_search.index),),
    timed_tasks=(
        TimedTask("forget_answers", Schedule.hourly(29), in_batches(IDEMPOTENCY.forget_answers)),
        TimedTask("forget_rejections", Schedule.daily("03:17"), in_batches(retention.forget_rejections)),
        TimedTask(
            "forget_own_cancellations", Schedule.daily("03:27"), in_batches(own_cancellations.forget_own_cancellations)
        ),
        TimedTask("forget_registrants", Schedule.daily("03:37"), retention.forget_registrants),
    ),
    sealed=(SealedTable("idempotency_answers", "id", "bytea"),),
)
