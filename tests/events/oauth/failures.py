"""The ways in which an authorization server fails, and what is logged of each."""

import asyncio
import gzip
import socket
from collections.abc import AsyncGenerator
from typing import Any

from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from holdfast.events.oauth import issuer
from tests.events.oauth.authorization_server import AuthorizationServer


async def closed(server: AuthorizationServer) -> None:
    """Nobody listens where the server was."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server.issuer = f"http://127.0.0.1:{free.getsockname()[1]}"


async def silent(server: AuthorizationServer) -> None:
    server.fall_silent()


async def broken(server: AuthorizationServer) -> None:
    server.fail()


def answering(response: Any, *, at: str = "/") -> Any:
    async def fail(server: AuthorizationServer) -> None:
        async def answer(path: str) -> Response | None:
            return response() if path.startswith(at) else None

        server.answer = answer

    return fail


def dripping() -> Response:
    async def drip() -> AsyncGenerator[bytes]:
        for _ in range(3000):  # half a minute: longer than anybody waits
            yield b" "
            await asyncio.sleep(0.01)

    return StreamingResponse(drip(), media_type="application/json")


def flooding() -> Response:
    async def flood() -> AsyncGenerator[bytes]:
        for _ in range(4 * issuer.MAX_DOCUMENT_BYTES // 65_536):
            yield b" " * 65_536

    return StreamingResponse(flood(), media_type="application/json")


FAILURES = {
    "nobody listens": (closed, "ConnectError"),
    "it never answers": (silent, "TimeoutError"),
    "it answers 500": (broken, "the answer is 500"),
    "it answers a byte at a time": (answering(dripping), "TimeoutError"),
    "it answers without end": (answering(flooding), "longer than 262144 bytes"),
    "its keys never end": (answering(flooding, at="/keys"), "longer than 262144 bytes"),
    "it answers no JSON": (answering(lambda: Response("<html>")), "malformed"),
    "it answers other JSON": (answering(lambda: JSONResponse(["keys"])), "Expected `object`, got `array`"),
    "its keys are no keys": (answering(lambda: JSONResponse({"keys": {"a": 1}}), at="/keys"), "Expected `array`"),
    "it nests without end": (answering(lambda: Response(b'{"a":' + b"[" * 100_000)), "RecursionError"),
    "it sends people elsewhere": (answering(lambda: RedirectResponse("/keys"), at="/.well-known/"), "is 307"),
    "its keys are elsewhere": (answering(lambda: RedirectResponse("/more"), at="/keys"), "is 307"),
    "it answers no text": (answering(lambda: Response(b"\xff\xfe\x00")), "malformed"),
    "it answers compressed": (
        answering(lambda: Response(gzip.compress(b"{}"), headers={"content-encoding": "gzip"})),
        "malformed",
    ),
}
