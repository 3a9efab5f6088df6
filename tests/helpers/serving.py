"""Applications behind a real port, for clients that want one."""

import asyncio
import contextlib
import signal
import socket
import ssl
import subprocess
from collections.abc import AsyncGenerator, Mapping
from typing import IO, Any

import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.events.settings import Settings
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.application import Application
from holdfast.kit.http.handler import envelope
from holdfast.kit.http.index import Route
from tests.helpers.events_service import Service, eventually, running_events

PLAIN = ssl.create_default_context()
"""For clients of our own processes, which speak no TLS. Each would otherwise spend 26 ms on reading certificates."""


def application(*routes: Route) -> Application:
    """An application with these routes."""
    return Application(routes, contextlib.nullcontext, envelope(Problem.body))


class BoundPort(socket.socket):
    """A port of this machine, which this process has taken."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.getsockname()[1]}"


def bind_port() -> BoundPort:
    """Take a free port."""
    port = BoundPort()
    port.bind(("127.0.0.1", 0))
    return port


@contextlib.asynccontextmanager
async def serve_app(app: ASGIApp, at: socket.socket, **options: Any) -> AsyncGenerator[None]:
    """Serve an application in this process, for as long as the block lasts.

    At its end, clients that still wait get their answers, and streams end; what is made for clients that are gone is
    cancelled.
    """
    ending = asyncio.Event()
    chosen: dict[str, Any] = {"log_level": "warning", "access_log": False, "ws": "none", **options}
    config = uvicorn.Config(_until(ending, app), **chosen)
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup([at])
    # `serve` would look every 100 ms whether to end, and then wait 100 ms more. Here, this sets the usual headers.
    await server.on_tick(0)
    try:
        yield
    finally:
        ending.set()
        for listening in server.servers:
            listening.close()
        for connection in [*server.server_state.connections]:
            connection.shutdown()
        await eventually(lambda: not server.server_state.connections)
        unfinished = [*server.server_state.tasks]
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
        await server.lifespan.shutdown()


def _until(ending: asyncio.Event, app: ASGIApp) -> ASGIApp:
    """The same application. What waits for its client to be gone, as streams do, is told so when this event is set."""

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        has_arrived = False

        async def receive_until_end() -> Message:
            nonlocal has_arrived
            if has_arrived and scope["type"] == "http":
                gone, end = asyncio.ensure_future(receive()), asyncio.ensure_future(ending.wait())
                try:
                    await asyncio.wait([gone, end], return_when=asyncio.FIRST_COMPLETED)
                    return gone.result() if gone.done() else {"type": "http.disconnect"}
                finally:
                    gone.cancel()
                    end.cancel()
            message = await receive()
            has_arrived = not message.get("more_body", False)
            return message

        await app(scope, receive_until_end, send)

    return served


def stop(process: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM) -> None:
    """Tell a process to end. Raises `TimeoutExpired` if it goes on, and kills it."""
    process.send_signal(number)
    try:
        process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise


def startup_output(lines: IO[str]) -> str:
    """What `holdfast up` says until it serves. Fails if it ends before."""
    text = ""
    for line in lines:
        if line == "Stop with Ctrl-C.\n":
            return text
        text += line
    raise AssertionError(f"it ended after saying: {text}")


@contextlib.asynccontextmanager
async def serve_events(
    settings: Settings, *, resources: Mapping[str, Any] | None = None, **changes: Any
) -> AsyncGenerator[Service]:
    """The events service behind a real port, to which its links lead. `changes` are those of the settings."""
    port = bind_port()
    changed = settings.model_copy(update={"base_url": port.url, **changes})
    async with running_events(changed, resources=resources) as service, serve_app(running_already(service.app), port):
        yield service


class PresentApp:
    """The application at an address: another one for each test, which is started elsewhere."""

    def __init__(self) -> None:
        self._present: Starlette | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._present
        await self._present(scope, receive, send)

    @contextlib.asynccontextmanager
    async def answering_with(self, app: Starlette) -> AsyncGenerator[None]:
        """Answer with this application, for as long as the block lasts."""
        self._present = app
        async with app.router.lifespan_context(app):
            yield


def running_already(app: ASGIApp) -> ASGIApp:
    """An application that was started elsewhere, and so need not be by the server."""

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for _ in range(2):
                await send({"type": f"{(await receive())['type']}.complete"})
        else:
            await app(scope, receive, send)

    return served
