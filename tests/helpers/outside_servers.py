"""Servers outside the service, which give the answers that a test sets."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from holdfast.kit.outbound.refusals import FetchRefusal
from holdfast.kit.outbound.requests import OutboundClient

OWNER = ("tests", 1)

LOCAL = "127.0.0.1"

Script = Callable[[asyncio.StreamWriter, str], Awaitable[None]]
"""What a server does with a connection on which it has read this request."""


class OutsideServer:
    """A server that follows a script, and knows what it was asked."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.requests: list[str] = []
        self.url = f"http://{LOCAL}:{port}/"


@asynccontextmanager
async def outside_server(script: Script, tls: ssl.SSLContext | None = None) -> AsyncGenerator[OutsideServer]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = (await reader.readuntil(b"\r\n\r\n")).decode()
            server.requests.append(request)
            await script(writer, request)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has gone
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, LOCAL, 0, ssl=tls)
    server = OutsideServer(listening.sockets[0].getsockname()[1])
    async with listening:
        yield server


def raw_answer(head: str, body: bytes = b"") -> Script:
    """A script that gives every request the same answer."""

    async def answer(writer: asyncio.StreamWriter, _: str) -> None:
        writer.write(f"HTTP/1.1 {head}\r\n\r\n".encode() + body)
        await writer.drain()

    return answer


def ok_answer(body: bytes, *headers: str, content_type: str = "image/png") -> Script:
    about = [f"Content-Type: {content_type}"] if content_type else []
    return raw_answer("\r\n".join(["200 OK", f"Content-Length: {len(body)}", *about, *headers]), body)


def redirecting_script(*to: str) -> Script:
    """A script that leads along these addresses, one after another, and then answers."""
    left = list(to)

    async def answer(writer: asyncio.StreamWriter, request: str) -> None:
        script = (
            raw_answer(f"302 Found\r\nLocation: {left.pop(0)}\r\nSet-Cookie: a=b; Path=/")
            if left
            else ok_answer(b"there")
        )
        await script(writer, request)

    return answer


def client_reaching(*servers: OutsideServer, seconds: float = 10) -> OutboundClient:
    return OutboundClient(exempt=[(LOCAL, server.port) for server in servers], seconds=seconds)


async def fetch_refusal(client: OutboundClient, url: str, limit: int = 1000) -> str:
    with pytest.raises(FetchRefusal) as refusal:
        await client.get(url, owner=OWNER, limit=limit)
    return str(refusal.value)
