"""What replays register: the task that reads past orders and replays them."""

from typing import Any

from holdfast.inventory.replays import operations
from holdfast.inventory.replays.model import REPLAY
from holdfast.kit.background.tasks import TaskHandler
from holdfast.kit.process.part import Part

PART: Part[Any] = Part(tasks=(TaskHandler(REPLAY, operations.advance),))
