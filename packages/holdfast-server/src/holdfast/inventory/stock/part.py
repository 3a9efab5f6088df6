"""What stock registers: the end of holds, and the forgetting of ended ones and of old sums."""

from typing import Any

from holdfast.inventory.stock import expiry, operations
from holdfast.kit.background.tasks import PeriodicJob, in_batches
from holdfast.kit.process.part import Part

PART: Part[Any] = Part(
    led=(expiry.run,),
    timed=(
        PeriodicJob("53 3 * * *", in_batches(operations.forget_holds)),
        PeriodicJob("3 4 * * *", in_batches(operations.forget_drawn)),
    ),
)
