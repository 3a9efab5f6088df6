"""What shops register: their API keys, and the answers that repeated calls of theirs get."""

from typing import Any

from holdfast.inventory.resources import IDEMPOTENCY
from holdfast.kit.background.tasks import Schedule, TimedTask, in_batches
from holdfast.kit.process.part import Part
from holdfast.kit.security.service_secret import SealedTable

PART: Part[Any] = Part(
    timed_tasks=(TimedTask("forget_answers", Schedule.daily("03:23"), in_batches(IDEMPOTENCY.forget_answers)),),
    sealed=(SealedTable("api_keys", "id", "bigint"), SealedTable("idempotency_answers", "id", "bytea")),
)
