"""The rules for idempotency keys of the inventory service."""

from holdfast.inventory.problems import IDEMPOTENCY_KEY_REUSED
from holdfast.kit.running.idempotency import Idempotency

IDEMPOTENCY = Idempotency(
    hours=30 * 24,
    reused=IDEMPOTENCY_KEY_REUSED,
    owner=lambda caller: f"shop {caller.tenant}",
)
"""An idempotency key belongs to the shop, whichever API key or token it was sent with."""
