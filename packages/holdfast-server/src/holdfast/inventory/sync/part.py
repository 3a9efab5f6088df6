"""What the sync of levels registers: its loop, and the forgetting of lags and changes."""

from collections.abc import Sequence
from typing import Any

from holdfast.inventory.resources import Database
from holdfast.inventory.sync import shop_sync, sql
from holdfast.kit.background.row_work import RowWork
from holdfast.kit.background.tasks import Schedule, TimedTask, in_batches
from holdfast.kit.process.part import Part


def rows(database: Database) -> Sequence[RowWork[Any]]:
    """The shops whose levels at the platform differ from their stock."""
    return [shop_sync.SyncWork(database)]


PART: Part[Any] = Part(
    row_work=rows,
    timed_tasks=(
        TimedTask("forget_lags", Schedule.hourly(17), in_batches(sql.forget_lags)),
        TimedTask("forget_changes", Schedule.hourly(37), in_batches(sql.forget_changes)),
    ),
)
