"""What keys register: the forgetting of revoked keys."""

from holdfast.events.keys import operations
from holdfast.events.resources import Context
from holdfast.kit.background.tasks import PeriodicJob, in_batches
from holdfast.kit.process.part import Part

PART: Part[Context] = Part(timed=(PeriodicJob("47 3 * * *", in_batches(operations.forget_keys)),))
