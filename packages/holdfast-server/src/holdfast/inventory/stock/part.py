"""What stock registers: the end of holds, and the forgetting of ended ones and of old sums."""

from typing import Any

from holdfast.inventory.stock import expiry, retention
from holdfast.kit.background.tasks import Schedule, TimedTask, in_batches
from holdfast.kit.process.part import Part

PART: Part[Any] = Part(
    loops=(expiry.LOOP,),
    timed_tasks=(
        TimedTask("forget_holds", Schedule.daily("03:53"), in_batches(retention.forget_holds)),
        # The table is named `drawn`, and so is the released name of its task.
        TimedTask("forget_drawn", Schedule.daily("04:03"), in_batches(retention.forget_daily_sums)),
    ),
)
