"""Applications behind a real port, for clients that want one."""

import asyncio
import contextlib
import signal
import socket
import ssl
import subprocess
from collections.abc import AsyncGenerator
from typing import IO

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.support import eventually

PLAIN = ssl.create_default_context()
"""For clients of our own processes, which speak no TLS. Each would otherwise spend 26 ms on reading certificates."""


def listener() -> socket.socket:
    """A free port, already taken."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    return listening


@contextlib.asynccontextmanager
async def serving(app: ASGIApp, at: socket.socket) -> AsyncGenerator[None]:
    """Serve an application in this process, for as long as the block lasts."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, ws="none"))

    async def is_up() -> bool:
        return server.started

    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve([at]))
        await eventually(is_up)
        try:
            yield
        finally:
            server.should_exit = True


def stop(process: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM) -> None:
    """Tell a process to end. Raises `TimeoutExpired` if it goes on, and kills it."""
    process.send_signal(number)
    try:
        process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise


def said(lines: IO[str]) -> str:
    """What `holdfast up` says until it serves. Fails if it ends before."""
    text = ""
    for line in lines:
        if line == "Stop with Ctrl-C.\n":
            return text
        text += line
    raise AssertionError(f"it ended after saying: {text}")


def running_already(app: ASGIApp) -> ASGIApp:
    """An application that was started elsewhere, and so need not be by the server."""

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for _ in range(2):
                await send({"type": f"{(await receive())['type']}.complete"})
        else:
            await app(scope, receive, send)

    return served
