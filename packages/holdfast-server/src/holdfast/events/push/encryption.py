"""Web Push: how a message is encrypted for one browser (RFC 8291), and how the service says who it is (RFC 8292).

Only the browser can read a message; the push service that passes it on cannot. The key with which the service signs is
derived from its secret, like its other keys, and browsers subscribe to that key.
"""

import os
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from holdfast.kit.security.service_secret import Secret

CURVE = ec.SECP256R1()

CURVE_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order of the curve P-256 (FIPS 186-4, D.1.2.3): private keys are less."""

PUBLIC_KEY_BYTES = 65
"""The length of a public key as an uncompressed point (RFC 8291, section 2.1)."""

AUTH_SECRET_BYTES = 16
"""The length of the secret that a browser shares with the service (RFC 8291, section 2.2)."""

MAX_BODY_BYTES = 4096
"""The most bytes that every push service takes (RFC 8030, section 7.2)."""

TOKEN_SECONDS = 12 * 3600
"""Seconds for which a signed token is valid; the most are 24 hours (RFC 8292, section 2)."""


class BrowserKeys(NamedTuple):
    """The keys of a browser: its public key as an uncompressed point, and the secret that it shares."""

    public_key: bytes
    auth_secret: bytes


def base64url_encode(content: bytes) -> str:
    """Base64 for URLs, without padding."""
    return urlsafe_b64encode(content).decode().rstrip("=")


def base64url_decode(text: str) -> bytes:
    """The bytes of base64 for URLs, with or without padding. Raises ValueError."""
    return urlsafe_b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4))


def read_browser_keys(p256dh: str, auth: str) -> BrowserKeys:
    """The keys of a subscription, as browsers write them. Raises ValueError if they are none."""
    public_key, auth_secret = base64url_decode(p256dh), base64url_decode(auth)
    if len(public_key) != PUBLIC_KEY_BYTES or len(auth_secret) != AUTH_SECRET_BYTES:
        raise ValueError("the keys have the wrong length")
    ec.EllipticCurvePublicKey.from_encoded_point(CURVE, public_key)
    return BrowserKeys(public_key, auth_secret)


def encrypt(
    message: bytes,
    keys: BrowserKeys,
    *,
    salt: bytes | None = None,
    own_key: ec.EllipticCurvePrivateKey | None = None,
) -> bytes:
    """The body of a request to a push service: a message in one record of `aes128gcm` (RFC 8188).

    salt, own_key    of this message alone; None: random ones, as they must be but in tests
    """
    salt = salt or os.urandom(16)
    own_key = own_key or ec.generate_private_key(CURVE)
    own_public_key = _point(own_key.public_key())
    browser_key = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, keys.public_key)
    content_key, nonce = content_keys(own_key.exchange(ec.ECDH(), browser_key), keys, own_public_key, salt)
    sealed = AESGCM(content_key).encrypt(nonce, message + b"\x02", None)
    record_size = MAX_BODY_BYTES.to_bytes(4, "big")
    return salt + record_size + bytes([len(own_public_key)]) + own_public_key + sealed


def decrypt(body: bytes, own_key: ec.EllipticCurvePrivateKey, auth_secret: bytes) -> bytes:
    """The message in a body, as a browser reads it. Raises ValueError."""
    salt, key_length = body[:16], body[20]
    public_key, sealed = body[21 : 21 + key_length], body[21 + key_length :]
    sender_key = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, public_key)
    keys = BrowserKeys(_point(own_key.public_key()), auth_secret)
    content_key, nonce = content_keys(own_key.exchange(ec.ECDH(), sender_key), keys, public_key, salt)
    try:
        padded = AESGCM(content_key).decrypt(nonce, sealed, None)
    except InvalidTag as error:
        raise ValueError("the body is not encrypted for this browser") from error
    message, separator, _ = padded.rstrip(b"\x00").rpartition(b"\x02")
    if not separator:
        raise ValueError("the record does not end as the last one")
    return message


def content_keys(shared: bytes, keys: BrowserKeys, sender_key: bytes, salt: bytes) -> tuple[bytes, bytes]:
    """The key and the nonce of the record (RFC 8291, section 3.4), from the shared secret of both keys."""
    info = b"WebPush: info\x00" + keys.public_key + sender_key
    pseudorandom_key = _hmac(salt, _hmac(_hmac(keys.auth_secret, shared), info + b"\x01"))
    content_key = _hmac(pseudorandom_key, b"Content-Encoding: aes128gcm\x00\x01")[:16]
    return content_key, _hmac(pseudorandom_key, b"Content-Encoding: nonce\x00\x01")[:12]


class SenderKey:
    """A key with which the service says who it is."""

    def __init__(self, seed: bytes) -> None:
        self._key = ec.derive_private_key(int.from_bytes(seed, "big") % (CURVE_ORDER - 1) + 1, CURVE)
        self.public_key = base64url_encode(_point(self._key.public_key()))
        """The key as browsers subscribe to it."""

    def authorization(self, origin: str, contact: str) -> str:
        """The header Authorization of a request to a push service.

        origin     the origin of the push service
        contact    an address at which the operator can be reached: a URL of the service
        """
        claims = {"aud": origin, "exp": int(time.time()) + TOKEN_SECONDS, "sub": contact}
        parts = [msgspec.json.encode(part) for part in ({"typ": "JWT", "alg": "ES256"}, claims)]
        signed = ".".join(base64url_encode(part) for part in parts)
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        signature = base64url_encode(r.to_bytes(32, "big") + s.to_bytes(32, "big"))
        return f"vapid t={signed}.{signature}, k={self.public_key}"


def sender_keys(secret: Secret) -> Sequence[SenderKey]:
    """The key from the present secret, and while the secret is being replaced also the one from the old secret."""
    return [SenderKey(seed) for seed in secret.derive_each("web push")]


def _point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _hmac(key: bytes, content: bytes) -> bytes:
    digest = hmac.HMAC(key, hashes.SHA256())
    digest.update(content)
    return digest.finalize()
