"""What the credentials of agents register: the keys that sign their tokens, and the rotation of these."""

from typing import Any

from holdfast.inventory.agents.tokens import KEYS
from holdfast.kit.background.tasks import Schedule, TimedTask, in_transaction
from holdfast.kit.process.part import Part
from holdfast.kit.security.secrets import SealedTable

PART: Part[Any] = Part(
    timed_tasks=(TimedTask("rotate", Schedule.weekly("monday", "04:41"), in_transaction(KEYS.rotate)),),
    keys=(KEYS,),
    sealed=(SealedTable("signing_keys", "kid", "text"),),
)
