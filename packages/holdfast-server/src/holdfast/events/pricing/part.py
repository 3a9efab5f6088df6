"""What pricing registers: prices that change by the clock, and the thinning of their histories."""

from holdfast.events.pricing import operations
from holdfast.events.resources import Context
from holdfast.kit.background.tasks import PeriodicJob, in_batches, in_transaction
from holdfast.kit.process.part import Part

PART: Part[Context] = Part(
    timed=(
        PeriodicJob("* * * * *", in_transaction(operations.tick)),
        PeriodicJob("57 3 * * *", in_batches(operations.thin_histories)),
    )
)
