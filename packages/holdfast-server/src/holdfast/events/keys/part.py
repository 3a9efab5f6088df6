"""What keys register: the forgetting of revoked keys."""

from holdfast.events.context import Context
from holdfast.events.keys import key_retention
from holdfast.kit.background.tasks import Schedule, TimedTask, in_batches
from holdfast.kit.process.part import Part

PART: Part[Context] = Part(
    timed_tasks=(TimedTask("forget_keys", Schedule.daily("03:47"), in_batches(key_retention.forget_keys)),)
)
