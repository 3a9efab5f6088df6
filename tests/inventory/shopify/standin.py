"""A stand-in for the platform: a server that answers each request with a function of the test."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.inventory.shopify.platform_client import Platform
from tests.helpers.serving import bind_port, serve_app

SHOP = "shop-name.myshopify.com"


class ReceivedRequest(NamedTuple):
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class ScriptedAnswer(NamedTuple):
    """An answer. With `hang`, none is given, and the connection stays open."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = {}
    hang: bool = False


Script = Callable[[ReceivedRequest], ScriptedAnswer | Awaitable[ScriptedAnswer]]


@asynccontextmanager
async def platform(script: Script, *, seconds: float = 10) -> AsyncGenerator[tuple[Platform, list[ReceivedRequest]]]:
    """The client of a stand-in, and what that is asked."""
    requests: list[ReceivedRequest] = []

    async def stand_in(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        requests.append(ReceivedRequest(request.url.path, request.headers, await request.body()))
        answer = script(requests[-1])
        answer = await answer if isinstance(answer, Awaitable) else answer
        if answer.hang:
            await receive()  # returns when the client has gone
            return
        body = answer.body if isinstance(answer.body, bytes) else msgspec.json.encode(answer.body)
        await Response(body, answer.status, answer.headers, "application/json")(scope, receive, send)

    port = bind_port()
    client = Platform(f"{port.url}/{{shop}}", "2026-10", seconds=seconds)
    async with serve_app(stand_in, port, lifespan="off"):
        try:
            yield client, requests
        finally:
            await client.close()
