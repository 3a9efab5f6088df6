"""A stand-in for the platform: a server that answers each request as a function tells it to."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec

from holdfast.inventory.shopify.platform import Platform

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


class StandIn:
    """The stand-in, and what it was asked."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}/{{shop}}"
        self.requests: list[ReceivedRequest] = []


@asynccontextmanager
async def standing_in(script: Script) -> AsyncGenerator[StandIn]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await _request(reader)
                stand_in.requests.append(request)
                answer = script(request)
                answer = await answer if isinstance(answer, Awaitable) else answer
                if answer.hang:
                    await reader.read()
                    return
                writer.write(_response(answer))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # whoever asked has gone
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    stand_in = StandIn(listening.sockets[0].getsockname()[1])
    async with listening:
        yield stand_in


@asynccontextmanager
async def platform(script: Script, *, seconds: float = 10) -> AsyncGenerator[tuple[Platform, StandIn]]:
    """The client of a stand-in."""
    async with standing_in(script) as stand_in:
        client = Platform(stand_in.address, "2026-10", seconds=seconds)
        try:
            yield client, stand_in
        finally:
            await client.close()


async def _request(reader: asyncio.StreamReader) -> ReceivedRequest:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return ReceivedRequest(first.split(" ")[1], headers, body)


def _response(answer: ScriptedAnswer) -> bytes:
    body = answer.body if isinstance(answer.body, bytes) else msgspec.json.encode(answer.body)
    headers = {"Content-Length": str(len(body)), "Content-Type": "application/json", **answer.headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {answer.status} So\r\n{head}\r\n".encode() + body
