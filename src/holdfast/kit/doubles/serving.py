"""How a double is served, and answers with pages."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Coroutine
from typing import Any
from urllib.parse import parse_qs

import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from holdfast.kit.handler import Reply
from holdfast.kit.serving import Served

MOST_BYTES = 20_000
"""The largest form."""


def served(app: ASGIApp, listener: socket.socket) -> Served:
    """An application, ready to be served on a socket. Requests are not logged."""
    return Served(uvicorn.Config(app, log_level="warning", log_config=None, access_log=False, ws="none"), listener)


@contextlib.asynccontextmanager
async def at_work(*work: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Work in the background for as long as the block lasts. Raises what the work has raised, at the end."""
    background = [asyncio.create_task(each) for each in work]
    try:
        yield
    finally:
        for each in background:
            each.cancel()
        for ended in await asyncio.gather(*background, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended


async def form(request: Request) -> dict[str, str]:
    """The fields of a form; none of one that is too large."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            return {}
    read = parse_qs(body.decode("utf-8", "replace"), max_num_fields=20)
    return {name: values[-1].strip() for name, values in read.items()}


def sent(reply: Reply) -> Response:
    """An answer of the kit's pages as Starlette sends it."""
    headers = {name.decode(): value.decode() for name, value in reply.headers}
    media_type = reply.media_type.decode() if reply.content else None
    return Response(reply.content, reply.status, headers, media_type)
