"""The ways in which an authorization server fails, and what is logged of each."""

import asyncio
import gzip
import socket
from collections.abc import AsyncGenerator
from typing import Any

from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from holdfast.events.oauth import issuer
from tests.events.oauth.authorization_server import AuthorizationServer


async def close_port(server: AuthorizationServer) -> None:
    """Nobody listens where the server was."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server.issuer = f"http://127.0.0.1:{free.getsockname()[1]}"


async def fall_silent(server: AuthorizationServer) -> None:
    server.fall_silent()


async def fail_requests(server: AuthorizationServer) -> None:
    server.fail()


def answer_with(response: Any, *, at: str = "/") -> Any:
    async def fail(server: AuthorizationServer) -> None:
        async def answer(path: str) -> Response | None:
            return response() if path.startswith(at) else None

        server.answer = answer

    return fail


def dripping_response() -> Response:
    async def drip() -> AsyncGenerator[bytes]:
        for _ in range(3000):  # half a minute: longer than anybody waits
            yield b" "
            await asyncio.sleep(0.01)

    return StreamingResponse(drip(), media_type="application/json")


def flooding_response() -> Response:
    async def flood() -> AsyncGenerator[bytes]:
        for _ in range(4 * issuer.MAX_DOCUMENT_BYTES // 65_536):
            yield b" " * 65_536

    return StreamingResponse(flood(), media_type="application/json")


FAILURES = {
    "nobody listens": (close_port, "ConnectError"),
    "it never answers": (fall_silent, "TimeoutError"),
    "it answers 500": (fail_requests, "the answer is 500"),
    "it answers a byte at a time": (answer_with(dripping_response), "TimeoutError"),
    "it answers without end": (answer_with(flooding_response), "longer than 262144 bytes"),
    "its keys never end": (answer_with(flooding_response, at="/keys"), "longer than 262144 bytes"),
    "it answers no JSON": (answer_with(lambda: Response("<html>")), "malformed"),
    "it answers other JSON": (answer_with(lambda: JSONResponse(["keys"])), "Expected `object`, got `array`"),
    "its keys are no keys": (answer_with(lambda: JSONResponse({"keys": {"a": 1}}), at="/keys"), "Expected `array`"),
    "it nests without end": (answer_with(lambda: Response(b'{"a":' + b"[" * 100_000)), "RecursionError"),
    "it sends people elsewhere": (answer_with(lambda: RedirectResponse("/keys"), at="/.well-known/"), "is 307"),
    "its keys are elsewhere": (answer_with(lambda: RedirectResponse("/more"), at="/keys"), "is 307"),
    "it answers no text": (answer_with(lambda: Response(b"\xff\xfe\x00")), "malformed"),
    "it answers compressed": (
        answer_with(lambda: Response(gzip.compress(b"{}"), headers={"content-encoding": "gzip"})),
        "malformed",
    ),
}
