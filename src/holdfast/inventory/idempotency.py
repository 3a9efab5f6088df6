"""How the inventory service treats idempotency keys."""

from holdfast.inventory.problems import IDEMPOTENCY_KEY_REUSED
from holdfast.kit.idempotency import Idempotency

IDEMPOTENCY = Idempotency(
    hours=30 * 24,
    reused=IDEMPOTENCY_KEY_REUSED,
    owner=lambda caller: f"shop {caller.tenant}",  # the migration 0002_idempotency.sql has this text too
)
"""An idempotency key belongs to the shop, whichever API key or token it was sent with."""
