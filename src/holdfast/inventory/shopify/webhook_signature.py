"""The signature of a webhook: Base64 of the HMAC-SHA256 of the body, byte by byte as it came.

Source: shopify.dev, "Verify webhook deliveries". The headers beside it are not signed: what a delivery is about must be
looked up in its body where it matters.
"""

import base64
import hmac
from collections.abc import Sequence


def is_signed(body: bytes, claimed: bytes, secrets: Sequence[bytes]) -> bool:
    """Whether the platform signed a body. Any bytes may be claimed to be the signature.

    secrets    the app's client secrets; for an hour after a rotation the platform may sign with the old one
    """
    return any(hmac.compare_digest(claimed, sign(body, secret)) for secret in secrets)


def sign(body: bytes, secret: bytes) -> bytes:
    """The signature of a body, as the header `X-Shopify-Hmac-Sha256` has it."""
    return base64.b64encode(hmac.digest(secret, body, "sha256"))
