"""What agents register: the keys that sign their tokens, and their rotation."""

from typing import Any

from holdfast.inventory.agents.tokens import TOKEN_SIGNING_KEYS
from holdfast.kit.background.tasks import Schedule, TimedTask, in_transaction
from holdfast.kit.process.part import Part
from holdfast.kit.security.service_secret import SealedTable

PART: Part[Any] = Part(
    timed_tasks=(TimedTask("rotate", Schedule.weekly("monday", "04:41"), in_transaction(TOKEN_SIGNING_KEYS.rotate)),),
    keys=(TOKEN_SIGNING_KEYS,),
    sealed=(SealedTable("signing_keys", "kid", "text"),),
)
