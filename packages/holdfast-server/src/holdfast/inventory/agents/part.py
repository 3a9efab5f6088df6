"""What agents register: the keys that sign their tokens, their rotation, and the forgetting of what agents did."""

from typing import Any

from holdfast.inventory.agents import actions
from holdfast.inventory.agents.tokens import TOKEN_SIGNING_KEYS
from holdfast.kit.background.tasks import Schedule, TimedTask, in_batches, in_transaction
from holdfast.kit.process.part import Part
from holdfast.kit.security.service_secret import SealedTable

PART: Part[Any] = Part(
    timed_tasks=(
        TimedTask("rotate", Schedule.weekly("monday", "04:41"), in_transaction(TOKEN_SIGNING_KEYS.rotate)),
        TimedTask("forget_agent_actions", Schedule.daily("03:53"), in_batches(actions.forget_actions)),
    ),
    keys=(TOKEN_SIGNING_KEYS,),
    sealed=(SealedTable("signing_keys", "kid", "text"),),
)
