"""Everything the inventory service does by itself."""

from holdfast.inventory.agents.tokens import KEYS
from holdfast.inventory.stock import expiry, idempotency
from holdfast.kit.jobs import Periodic

LOOPS = (expiry.run,)

PERIODIC = (
    Periodic("23 3 * * *", idempotency.forget),
    Periodic("41 4 * * 1", KEYS.rotate),
)
