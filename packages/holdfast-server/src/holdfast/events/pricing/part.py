"""What pricing registers: prices that change by the clock, and the thinning of their histories."""

from holdfast.events.context import Context
from holdfast.events.pricing import operations
from holdfast.kit.background.tasks import Schedule, TimedTask, in_batches, in_transaction
from holdfast.kit.process.part import Part

PART: Part[Context] = Part(
    timed_tasks=(
        TimedTask("tick", Schedule.minutes(1), in_transaction(operations.update_prices)),
        TimedTask("thin_histories", Schedule.daily("03:57"), in_batches(operations.thin_histories)),
    )
)
