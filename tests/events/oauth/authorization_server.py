"""An authorization server on a port of its own: its metadata, its keys, and tokens as good or as bad as one likes."""

import asyncio
import contextlib
import itertools
import json
import time
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from joserfc.jwa import JWS_ALGORITHMS
from joserfc.jwk import ECKey, Key, RSAKey
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from tests.helpers.serving import bind_port, serve_app

AUDIENCE = "http://events.test/mcp"

Answer = Callable[[str], Awaitable[Response | None]]

_SIGNING = {algorithm.name: algorithm for algorithm in JWS_ALGORITHMS}
_numbers = itertools.count(1)


def new_key(**parameters: Any) -> ECKey:
    """A private key with an id of its own; a parameter that is None is left out."""
    described: Any = _without_nones({"use": "sig", "alg": "ES256", "kid": f"key-{next(_numbers)}", **parameters})
    return ECKey.generate_key("P-256", described)


@cache
def rsa_key(size: int = 2048) -> RSAKey:
    return RSAKey.generate_key(size, {"kid": f"rsa-{size}"})


def encode_part(part: Any) -> str:
    """A part of a token: bytes as they are, anything else as JSON."""
    content = part if isinstance(part, bytes) else json.dumps(part).encode()
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def sign_token(header: dict[str, Any], claims: Any, key: Any) -> str:
    """A token with this header and these claims, by the algorithm that the header names."""
    content = f"{encode_part(header)}.{encode_part(claims)}"
    return f"{content}.{encode_part(_SIGNING[header['alg']].sign(content.encode(), key))}"


class AuthorizationServer:
    """One that answers GET at its metadata and its keys, and nothing else.

    issuer      as tokens and metadata have it
    keys        the private keys whose public halves it publishes; the first one signs
    metadata    its metadata by path
    requests    how often each path was asked for
    answer      what answers in its stead, if anything; None from it is the usual answer
    """

    def __init__(self, origin: str, path: str) -> None:
        self.origin = origin
        self.path = path
        self.begin_anew()

    def begin_anew(self) -> None:
        """Have one new key, and be as if nobody had ever asked."""
        self.issuer = self.origin + self.path
        self.keys: list[Key] = [new_key()]
        self.jwks: list[Any] | None = None
        self.metadata: dict[str, dict[str, Any]] = {
            f"/.well-known/oauth-authorization-server{self.path.removesuffix('/')}": {
                "issuer": self.issuer,
                "jwks_uri": f"{self.origin}/keys",
                "authorization_endpoint": f"{self.origin}/authorize",
                "token_endpoint": f"{self.origin}/token",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            }
        }
        self.requests = Counter[str]()
        self.answer: Answer | None = None
        self.back = asyncio.Event()

    def token(self, *, key: Any = None, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """A good token of `ann`, except for what is given; a claim or a member of the header that is None is left
        out.
        """
        key = key or self.keys[0]
        now = int(time.time())
        all_claims = {
            "iss": self.issuer,
            "aud": AUDIENCE,
            "sub": "ann",
            "iat": now,
            "exp": now + 300,
            "scope": "read_events write_events manage_keys",
            **claims,
        }
        all_header = {"alg": "ES256", "typ": "at+jwt", "kid": key.kid, **(header or {})}
        return sign_token(_without_nones(all_header), _without_nones(all_claims), key)

    def rotate(self) -> Key:
        """Sign with a new key, and withdraw the ones before."""
        self.keys = [new_key()]
        return self.keys[0]

    @property
    def readings(self) -> int:
        """How often the keys were asked for."""
        return self.requests["/keys"]

    async def silence(self, path: str) -> None:
        """Answers nothing until the server is back."""
        await self.back.wait()

    def fall_silent(self) -> None:
        """Take requests and leave them unanswered."""
        self.back.clear()
        self.answer = self.silence

    def fail(self) -> None:
        """Answer everything with a 500."""

        async def broken(path: str) -> Response:
            return Response("oh no", 500)

        self.answer = broken

    def recover(self) -> None:
        self.answer = None
        self.back.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope)
        path = request.url.path
        self.requests[path] += 1
        assert (request.method, request.url.query) == ("GET", "")
        assert request.headers["accept"] == "application/json"
        response = (self.answer and await self.answer(path)) or self._usual(path)
        await response(scope, receive, send)

    def _usual(self, path: str) -> Response:
        if path in self.metadata:
            return JSONResponse(self.metadata[path])
        if path == "/keys":
            published: Sequence[Any] = [key.as_dict(private=False) for key in self.keys]
            return JSONResponse({"keys": published if self.jwks is None else self.jwks})
        return JSONResponse({"error": "not_found"}, 404)


def _without_nones(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


@contextlib.asynccontextmanager
async def authorization_server(path: str = "", certificate: Path | None = None) -> AsyncGenerator[AuthorizationServer]:
    """An authorization server, for as long as the block lasts; its issuer has this path.

    certificate    what it shows, with its private key, to be spoken to by https
    """
    port = bind_port()
    scheme = "https" if certificate else "http"
    server = AuthorizationServer(f"{scheme}://127.0.0.1:{port.getsockname()[1]}", path)
    encryption: dict[str, Any] = {"ssl_certfile": certificate, "log_level": "critical"} if certificate else {}
    async with serve_app(server, port, **encryption):
        try:
            yield server
        finally:
            server.recover()
