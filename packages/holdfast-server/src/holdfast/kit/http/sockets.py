"""The sockets that services listen on."""

import contextlib
import socket

import httpx2

from holdfast.kit.contract.problems import CannotStart

CARD = "/.well-known/mcp/server-card.json"
"""The path of the document with a service's name."""

BACKLOG = 65_535
"""Connections that wait to be accepted, as far as the system allows. Linux allows `net.core.somaxconn`: 4,096.

If more clients connect at once, Linux drops what they send, and they repeat it seconds later.
"""

ACCEPTED_AT_ONCE = 32
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
        if running := _running_service(host, port):
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


def shared(listener: socket.socket) -> list[socket.socket]:
    """Return the socket and copies of it, for a server that accepts several connections in one turn of its event loop.

    uvloop accepts one connection from each socket in a turn. Under load a turn takes tens of milliseconds, so clients
    that connect would wait for seconds, health checks too.
    """
    return [listener, *(listener.dup() for _ in range(ACCEPTED_AT_ONCE - 1))]


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
