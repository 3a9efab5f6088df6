"""The background work of the inventory service."""

from holdfast.inventory.agents.tokens import KEYS
from holdfast.inventory.idempotency import IDEMPOTENCY
from holdfast.inventory.stock import expiry
from holdfast.kit.jobs import Periodic, in_transaction

LOOPS = (expiry.run,)

PERIODIC = (
    Periodic("23 3 * * *", in_transaction(IDEMPOTENCY.forget_answers)),
    Periodic("41 4 * * 1", in_transaction(KEYS.rotate)),
)
