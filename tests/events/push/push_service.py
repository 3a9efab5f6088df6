"""A push service with browsers, for tests. It refuses what the real ones refuse, and reads messages as browsers do.

It shares no code with the service: keys are derived here with the HKDF of the library, tokens are read by joserfc.
"""

import itertools
import os
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tests.helpers.serving import bind_port, serve_app

LOCAL = "127.0.0.1"

MAX_BODY_BYTES = 4096
"""RFC 8030, section 7.2."""

MAX_TOKEN_SECONDS = 24 * 3600
"""RFC 8292, section 2."""


def b64(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


def unb64(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Refusal(Exception):
    """The status with which a request is refused."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass
class BrowserDouble:
    """A browser that has subscribed, and the messages that it has shown."""

    endpoint: str
    sender_key: str
    messages: list[Any] = field(default_factory=list[Any])
    status: int = 201

    def __post_init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._auth = os.urandom(16)

    @property
    def public_key(self) -> bytes:
        return self._key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    @property
    def fields(self) -> dict[str, str]:
        """What the script of the page sends."""
        keys = {"p256dh": b64(self.public_key), "auth": b64(self._auth)}
        return {"endpoint": self.endpoint, "sender_key": self.sender_key, **keys}

    def show(self, body: bytes) -> None:
        """Decrypt a message. Raises an error if it is not for this browser."""
        salt, size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        sender, sealed = body[21 : 21 + length], body[21 + length :]
        assert length == 65
        assert 18 <= len(sealed) <= size
        shared = self._key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender))
        material = _hkdf(self._auth, shared, b"WebPush: info\0" + self.public_key + sender, 32)
        key = _hkdf(salt, material, b"Content-Encoding: aes128gcm\0", 16)
        padded = AESGCM(key).decrypt(_hkdf(salt, material, b"Content-Encoding: nonce\0", 12), sealed, None)
        assert padded.rstrip(b"\0").endswith(b"\x02")
        self.messages.append(msgspec.json.decode(padded.rstrip(b"\0")[:-1]))


def _hkdf(salt: bytes, material: bytes, info: bytes, length: int) -> bytes:
    return HKDF(hashes.SHA256(), length, salt, info).derive(material)


class PushServiceDouble:
    """Answers requests as a push service does. Each browser has an address."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.origin = f"http://{LOCAL}:{port}"
        self.statuses: list[int] = []
        self._browsers: dict[str, BrowserDouble] = {}
        self._numbers = itertools.count(1)

    def subscribe(self, sender_key: str) -> BrowserDouble:
        """A browser that subscribes to the messages of one sender."""
        path = f"/push/{next(self._numbers)}"
        self._browsers[path] = BrowserDouble(self.origin + path, sender_key)
        return self._browsers[path]

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> int:
        """The status of the answer to a request."""
        try:
            self._check(method, path, headers, body)
            browser = self._browsers[path]
            if browser.status < 300:
                browser.show(body)
            status = browser.status
        except Refusal as refusal:
            status = refusal.status
        self.statuses.append(status)
        return status

    def _check(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> None:
        if path not in self._browsers:
            raise Refusal(404)
        if method != "POST":
            raise Refusal(405)
        if not headers.get("ttl", "").isdecimal():
            raise Refusal(400)
        if headers.get("content-encoding") != "aes128gcm":
            raise Refusal(415)
        if headers.get("urgency", "normal") not in {"very-low", "low", "normal", "high"}:
            raise Refusal(400)
        if len(body) > MAX_BODY_BYTES:
            raise Refusal(413)
        self._check_sender(headers.get("authorization", ""), self._browsers[path].sender_key)

    def _check_sender(self, authorization: str, sender_key: str) -> None:
        scheme, _, text = authorization.partition(" ")
        parameters = dict(part.strip().split("=", 1) for part in text.split(",") if "=" in part)
        if scheme.lower() != "vapid" or parameters.keys() < {"t", "k"}:
            raise Refusal(401)
        if parameters["k"] != sender_key:
            raise Refusal(403)
        point = unb64(sender_key)
        key = ECKey.import_key({"kty": "EC", "crv": "P-256", "x": b64(point[1:33]), "y": b64(point[33:])})
        try:
            claims = jwt.decode(parameters["t"], key, algorithms=["ES256"]).claims
        except (JoseError, ValueError) as error:
            raise Refusal(403) from error
        now = time.time()
        is_valid = claims["aud"] == self.origin and now < claims["exp"] <= now + MAX_TOKEN_SECONDS
        if not is_valid or not str(claims.get("sub", "")).startswith(("mailto:", "https:")):
            raise Refusal(403)


@asynccontextmanager
async def push_service() -> AsyncGenerator[PushServiceDouble]:
    """A push service on a port of this machine."""
    port = bind_port()
    double = PushServiceDouble(port.getsockname()[1])

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        status = double.answer(request.method, request.url.path, request.headers, await request.body())
        await Response(status_code=status)(scope, receive, send)

    async with serve_app(answer, port, lifespan="off"):
        yield double
