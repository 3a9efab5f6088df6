"""The sockets that services listen on, and draining: serving on until a load balancer has noticed the end.

After SIGTERM, `/readyz` answers 503 and each answer closes its connection. The balancer notices this and sends new
requests to other processes. Some seconds later the process ends as it does without draining.
"""

import asyncio
import contextlib
import errno
import signal
import socket
import time
from collections.abc import Callable, Generator
from types import FrameType
from typing import Any

import httpx2
import structlog

from holdfast.kit.contract.problems import CannotStart

log = structlog.get_logger()

CARD = "/.well-known/mcp/server-card.json"
"""The path of the document with a service's name."""

BACKLOG = 65_535
"""Connections that wait to be accepted, as far as the system allows. Linux allows `net.core.somaxconn`: 4,096.

If more clients connect at once, Linux drops what they send, and they repeat it seconds later.
"""

MAX_ACCEPTS_PER_TURN = 32
"""New connections that a process accepts in one turn of its event loop."""


def listen(host: str, port: int) -> socket.socket:
    """Open a socket that accepts connections at once, even while the service is still starting.

    Raises `CannotStart` if there is no such port or address, or another program listens there.
    """
    if not 0 <= port <= 65_535:
        raise CannotStart(f"Cannot listen on port {port}: a port is a number from 1 to 65535, or 0 for any free one.")
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, UnicodeError) as error:
        listener.close()
        # Only an address that exists can be asked.
        is_port_in_use = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        if is_port_in_use and (running := _running_service(host, port)):
            raise CannotStart(f"{running}. Stop it first, or choose another port.") from error
        reason = error.strerror if isinstance(error, OSError) else "this is no host name"
        raise CannotStart(f"Cannot listen on {host} port {port}: {reason}. Choose another address or port.") from error
    listener.listen(BACKLOG)
    return listener


def listen_all(host: str, *ports: int) -> list[socket.socket]:
    """Open a socket for each port. Raises `CannotStart` with the errors of all ports."""
    listeners: list[socket.socket] = []
    wrong: list[str] = []
    for port in ports:
        try:
            listeners.append(listen(host, port))
        except CannotStart as error:
            wrong.append(str(error))
    if wrong:
        raise CannotStart(" ".join(wrong))
    return listeners


def copies_of_socket(listener: socket.socket) -> list[socket.socket]:
    """The socket and copies of it, for a server that accepts several connections in one turn of its event loop.

    uvloop accepts one connection from each socket in a turn. Under load a turn takes tens of milliseconds, so clients
    that connect would wait for seconds, health checks too.
    """
    return [listener, *(listener.dup() for _ in range(MAX_ACCEPTS_PER_TURN - 1))]


def _running_service(host: str, port: int) -> str | None:
    """A sentence about the Holdfast service that answers at an address; None if none does."""
    address = _url(host, port)
    with contextlib.suppress(httpx2.HTTPError, ValueError, KeyError, TypeError):
        card = httpx2.get(f"{address}{CARD}", timeout=1, trust_env=False).json()
        if card["title"].startswith("Holdfast "):
            return f"{card['title']} runs already at {address}"
    return None


def address_of(listener: socket.socket) -> str:
    """The address at which a client on this machine reaches a socket."""
    return _url(*listener.getsockname()[:2])


def _url(host: str, port: int) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{host}:{port}"


class _Process:
    """The present process. Services that share it drain together.

    drain_began_at    the time of the first SIGTERM, by `time.monotonic`; None before it
    """

    drain_began_at: float | None = None


def is_draining() -> bool:
    """Whether this process got SIGTERM and still serves."""
    return _Process.drain_began_at is not None


@contextlib.contextmanager
def drain_on_sigterm(seconds: float, end: Callable[[], None]) -> Generator[None]:
    """Call `end` at SIGINT, or this many seconds after SIGTERM; SIGINT also ends that wait.

    The previous handlers of these signals are called at the same moment as `end`, not earlier.
    """
    loop = asyncio.get_running_loop()
    before: dict[int, Callable[[int, FrameType | None], Any]] = {}
    waits: list[asyncio.TimerHandle] = []

    def stop(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(wait if number == signal.SIGTERM and seconds else pass_on, number)

    def wait(number: int) -> None:
        now = time.monotonic()
        _Process.drain_began_at = _Process.drain_began_at or now
        seconds_left = _Process.drain_began_at + seconds - now
        if not waits:
            log.info("draining", seconds=round(seconds_left, 1))
            waits.append(loop.call_later(seconds_left, pass_on, number))

    def pass_on(number: int) -> None:
        for timer in waits:
            timer.cancel()
        end()
        before[number](number, None)

    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError):  # only the main thread has signals
            if callable(handler := signal.getsignal(number)):
                before[number] = handler
                signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
