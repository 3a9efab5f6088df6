"""What registrations register: the index for searches, and the forgetting of people."""

from holdfast.events.registrations import retention, substring_search
from holdfast.events.registrations.stored_answers import PEOPLE_IN_ANSWERS
from holdfast.events.resources import Context
from holdfast.kit.background.tasks import Job, PeriodicJob, in_batches
from holdfast.kit.process.part import Part
from holdfast.kit.running.idempotency import Idempotency
from holdfast.kit.security.secrets import SealedTable

IDEMPOTENCY = Idempotency(people=PEOPLE_IN_ANSWERS)

PART: Part[Context] = Part(
    tasks=(Job(substring_search.INDEX, substring_search.index),),
    timed=(
        PeriodicJob("29 * * * *", in_batches(IDEMPOTENCY.forget_answers)),
        PeriodicJob("17 3 * * *", in_batches(retention.forget_rejections)),
        PeriodicJob("37 3 * * *", retention.forget_registrants),
    ),
    sealed=(SealedTable("idempotency_answers", "id", "bytea"),),
)
