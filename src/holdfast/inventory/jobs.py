"""The background work of the inventory service."""

from holdfast.inventory.agents.tokens import KEYS
from holdfast.inventory.idempotency import IDEMPOTENCY
from holdfast.inventory.stock import expiry, retention
from holdfast.kit.jobs import Periodic, in_portions, in_transaction

LOOPS = (expiry.run,)

PERIODIC = (
    Periodic("23 3 * * *", in_portions(IDEMPOTENCY.forget_answers)),
    Periodic("53 3 * * *", in_portions(retention.forget_holds)),
    Periodic("41 4 * * 1", in_transaction(KEYS.rotate)),
)
