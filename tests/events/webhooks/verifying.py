"""Verifies the signature `v1a` as the specification says it, with nothing of the service."""

from base64 import b64decode
from collections.abc import Mapping

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def verify_v1a(public_key: str, headers: Mapping[str, str], body: bytes) -> None:
    """Raises `InvalidSignature`."""
    key = Ed25519PublicKey.from_public_bytes(b64decode(public_key.removeprefix("whpk_")))
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    [signature] = [text for text in headers["webhook-signature"].split(" ") if text.startswith("v1a,")]
    key.verify(b64decode(signature.removeprefix("v1a,")), content)
