"""Signatures of webhooks, as Standard Webhooks 1.0.0 has them: `v1` with a shared secret, `v1a` with a key pair.

The signed text is `id.timestamp.body`. A receiver of `v1` has the secret itself; a receiver of `v1a` has the public
key, which cannot sign.
"""

import binascii
import hmac
import secrets
import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

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


TOLERANCE_SECONDS = 300
"""How old a message may be, and how far in the future, as the libraries of the specification have it."""

SignatureFault = Literal["key", "headers", "time", "signature"]

FAULTS: Mapping[SignatureFault, str] = {
    "key": "the secret or public key is not one of Standard Webhooks",
    "headers": "webhook-id, webhook-timestamp or webhook-signature is missing or is not readable",
    "time": f"its time differs from that of this machine by more than {TOLERANCE_SECONDS // 60} minutes",
    "signature": "no signature is right: the secret is another one, or the message was altered",
}
"""Why a message is refused, in words."""


def signature_fault(
    key: str, headers: Mapping[str, str], body: bytes, now: float | None = None
) -> SignatureFault | None:
    """Why a receiver must refuse a message; None: its signature is right.

    key        the secret (`whsec_`), or the public key (`whpk_`)
    headers    the headers of the message, their names in small letters
    now        the time, in seconds since 1970; None: that of this machine
    """
    scheme: SignatureScheme = "v1a" if key.startswith(PUBLIC_PREFIX) else "v1"
    prefix = PUBLIC_PREFIX if scheme == "v1a" else PREFIXES["v1"]
    try:
        raw = b64decode(key.removeprefix(prefix), validate=True)
        public = Ed25519PublicKey.from_public_bytes(raw) if scheme == "v1a" else None
    except (ValueError, binascii.Error):
        return "key"
    if not key.startswith(prefix) or not raw:
        return "key"
    id, sent_at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not id or not (sent_at.isascii() and sent_at.isdigit() and len(sent_at) < 16):
        return "headers"
    if abs((time.time() if now is None else now) - int(sent_at)) > TOLERANCE_SECONDS:
        return "time"
    content = f"{id}.{sent_at}.".encode() + body
    for part in headers.get("webhook-signature", "").split(" "):
        name, _, text = part.partition(",")
        try:
            signature = b64decode(text, validate=True)
        except (ValueError, binascii.Error):
            continue
        if name == scheme and _is_signature(signature, content, raw, public):
            return None
    return "signature"


def _is_signature(signature: bytes, content: bytes, secret: bytes, public: Ed25519PublicKey | None) -> bool:
    if public is None:
        return hmac.compare_digest(signature, hmac.digest(secret, content, sha256))
    try:
        public.verify(signature, content)
    except InvalidSignature:
        return False
    return True


def _signature(secret: str, content: bytes) -> str:
    if scheme_of(secret) == "v1a":
        return f"v1a,{b64encode(_key_pair(secret).sign(content)).decode()}"
    key = b64decode(secret.removeprefix(PREFIXES["v1"]))
    return f"v1,{b64encode(hmac.digest(key, content, sha256)).decode()}"


def _key_pair(secret: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(b64decode(secret.removeprefix(PREFIXES["v1a"])))
