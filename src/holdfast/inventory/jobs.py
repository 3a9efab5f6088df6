"""Everything the inventory service does by itself."""

from holdfast.inventory.stock import expiry, idempotency
from holdfast.kit import tokens
from holdfast.kit.jobs import Periodic

LOOPS = (expiry.run,)

PERIODIC = (
    Periodic("23 3 * * *", idempotency.forget),
    Periodic("41 4 * * 1", tokens.rotate),
)
