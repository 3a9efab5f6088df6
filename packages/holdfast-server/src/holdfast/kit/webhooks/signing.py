"""Signatures of webhooks, as Standard Webhooks 1.0.0 has them: `v1` with a shared secret, `v1a` with a key pair.

The signed text is `id.timestamp.body`. A receiver of `v1` has the secret itself; a receiver of `v1a` has the public
key, with which nobody can sign.
"""

import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SignatureScheme = Literal["v1", "v1a"]

PREFIXES: Mapping[SignatureScheme, str] = {"v1": "whsec_", "v1a": "whsk_"}
"""How a secret of each scheme begins. After it comes base64."""

PUBLIC_PREFIX = "whpk_"

SECRET_BYTES = 32
"""The length of a secret, and of the seed of a key pair. The specification has 24 to 64 for `v1`."""


def new_secret(scheme: SignatureScheme) -> str:
    """A new secret, as the specification writes it."""
    return PREFIXES[scheme] + b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def scheme_of(secret: str) -> SignatureScheme:
    """The scheme for which a secret is."""
    return "v1a" if secret.startswith(PREFIXES["v1a"]) else "v1"


def public_key(secret: str) -> str | None:
    """The public key for a secret of `v1a`, as the specification writes it; None for one of `v1`."""
    if scheme_of(secret) == "v1":
        return None
    return PUBLIC_PREFIX + b64encode(_key_pair(secret).public_key().public_bytes_raw()).decode()


def signed_headers(secrets: Iterable[str], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers of a message that is sent at a time in seconds since 1970. Each secret signs it."""
    content = f"{message_id}.{timestamp}.".encode() + body
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(_signature(secret, content) for secret in secrets),
    }


def _signature(secret: str, content: bytes) -> str:
    if scheme_of(secret) == "v1a":
        return f"v1a,{b64encode(_key_pair(secret).sign(content)).decode()}"
    key = b64decode(secret.removeprefix(PREFIXES["v1"]))
    return f"v1,{b64encode(hmac.digest(key, content, sha256)).decode()}"


def _key_pair(secret: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(b64decode(secret.removeprefix(PREFIXES["v1a"])))
