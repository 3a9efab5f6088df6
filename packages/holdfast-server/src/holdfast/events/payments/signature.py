"""The signature of a message of the payment processor: `Stripe-Signature: t=<seconds>,v1=<hexadecimal>[,v1=…]`.

It signs the time and the exact bytes of the message, so that neither can be changed, and no old message can be resent.
"""

import hmac
from collections.abc import Sequence
from hashlib import sha256
from typing import Literal

TOLERANCE_SECONDS = 300
"""The largest difference between the time of a message and ours."""

MAX_HEADER_CHARACTERS = 1_000
"""The most characters that the header may have."""

SignatureStatus = Literal["good", "missing", "malformed", "stale", "forged"]


def check(header: str, body: bytes, secrets: Sequence[str], now: float) -> SignatureStatus:
    """Whether one of the secrets signed a message, and at an acceptable time.

    secrets    the secret of the endpoint; two while it is being replaced
    now        seconds since 1970
    """
    if not header:
        return "missing"
    parts = [tuple(part.strip().partition("=")[::2]) for part in header[:MAX_HEADER_CHARACTERS].split(",")]
    times = [value for name, value in parts if name == "t"]
    signatures = [value for name, value in parts if name == "v1"]
    if len(times) != 1 or not times[0].isascii() or not times[0].isdigit() or len(times[0]) > 12 or not signatures:
        return "malformed"
    expected = [sign(secret, int(times[0]), body) for secret in secrets]
    if not any(
        hmac.compare_digest(own_signature.encode(), signature.encode())
        for own_signature in expected
        for signature in signatures
    ):
        return "forged"
    return "good" if abs(now - int(times[0])) <= TOLERANCE_SECONDS else "stale"


def sign(secret: str, time: int, body: bytes) -> str:
    """The signature of a message, in hexadecimal."""
    return hmac.digest(secret.encode(), b"%d." % time + body, sha256).hex()
