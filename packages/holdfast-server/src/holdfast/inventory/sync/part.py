"""What the sync of levels registers: its loop, and the forgetting of lags and changes."""

from typing import Any

from holdfast.inventory.sync import shop_sync
from holdfast.kit.background.tasks import PeriodicJob, in_batches
from holdfast.kit.process.part import Part

PART: Part[Any] = Part(
    loops=(shop_sync.run,),
    timed=(
        PeriodicJob("17 * * * *", in_batches(shop_sync.forget_lags)),
        PeriodicJob("37 * * * *", in_batches(shop_sync.forget_changes)),
    ),
)
