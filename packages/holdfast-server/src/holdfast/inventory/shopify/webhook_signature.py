"""The signature of a webhook: Base64 of the HMAC-SHA256 of the unchanged bytes of the body.

Source: shopify.dev, "Verify webhook deliveries". The headers are not signed: where it matters, the subject of a
delivery must be read from its body.

The app proxy signs, with the same secret, what a visitor of a storefront chooses. Its message has the platform's own
parameters too, sorted, whose names begin with letters. So it never begins with a brace, as a webhook does.
"""

import base64
import hmac
from collections.abc import Sequence


def is_signed(body: bytes, claimed: bytes, secrets: Sequence[bytes]) -> bool:
    """Return whether the platform signed a body. `claimed` may be any bytes.

    secrets    the app's client secrets; for an hour after a rotation the platform may sign with the old one
    """
    return body.startswith(b"{") and any(hmac.compare_digest(claimed, sign(body, secret)) for secret in secrets)


def sign(body: bytes, secret: bytes) -> bytes:
    """Return the signature of a body, as in the header `X-Shopify-Hmac-Sha256`."""
    return base64.b64encode(hmac.digest(secret, body, "sha256"))
