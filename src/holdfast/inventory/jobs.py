"""Everything the inventory service does by itself."""

from holdfast.inventory.stock import expiry, idempotency
from holdfast.kit.jobs import Periodic
from holdfast.kit.tokens import KEYS

LOOPS = (expiry.run,)

PERIODIC = (
    Periodic("23 3 * * *", idempotency.forget),
    Periodic("41 4 * * 1", KEYS.rotate),
)
