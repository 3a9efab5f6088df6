"""The client of a request: its source, and whether it waits. Work that waits for its turn is dropped when it has gone.

A stranger with IPv6 has a network of 64 bits at least, and often one of 48 bits, with 65,536 of the smaller ones. So a
request from IPv6 is counted in both.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Coroutine, Generator, Mapping
from contextvars import ContextVar, copy_context
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from types import MappingProxyType
from typing import Any, TypeVar

from holdfast.kit.contract.problems import ProblemType

LOCAL = "a local socket"

WIDE_SHARE = 16
"""How many times the limit of an IPv6 network of /64 a network of /48 has."""

WIDE_CONNECTIONS = 4
"""How many times the connections and streams of a network of /64 a network of /48 may have open."""

_WIDE = "wide network "


def address(scope: Mapping[str, Any]) -> str:
    """The source of a request over ASGI: an IPv4 address, an IPv6 network of /64, or a local socket."""
    return source(scope["client"][0]) if scope.get("client") else LOCAL


@lru_cache(10_000)
def source(host: str) -> str:
    """The source of requests from an address."""
    with contextlib.suppress(ValueError):
        ip = ip_address(host)
        if isinstance(ip, IPv6Address):
            if not ip.ipv4_mapped:
                return f"network {int(ip) >> 64:016x}"
            ip = ip.ipv4_mapped
        return f"address {ip}"
    return f"address {host}"


def wide_network(source: str) -> str | None:
    """The IPv6 network of /48 that a network of /64 is a part of; None for other sources."""
    return f"{_WIDE}{source.removeprefix('network ')[:12]}" if source.startswith("network ") else None


@lru_cache(10_000)
def path_of(source: str) -> tuple[str, ...]:
    """The networks that a source is a part of, the widest one first, and the source itself."""
    wide = wide_network(source)
    return (wide, source) if wide else (source,)


def is_source(name: str) -> bool:
    """Whether requests with this name are counted by their source."""
    return name == LOCAL or name.startswith(("address ", "network ", _WIDE))


T = TypeVar("T")

CLIENT = "holdfast.client"
"""In the scope of an HTTP request: its `Client`. Only our own server provides it."""

CLIENT_GONE = ProblemType(
    "client_gone", 499, "The client closed its connection before its request was begun.", "Send the request again."
)
"""For logs and metrics. No client receives it."""


class Client:
    """One connection of a client."""

    __slots__ = ("_waits", "has_gone")

    def __init__(self) -> None:
        self.has_gone = False
        self._waits: set[asyncio.Future[Any]] = set()

    def leave(self) -> None:
        """End the waits of its requests: the connection was closed."""
        self.has_gone = True
        for wait in self._waits:
            wait.cancel()

    async def wait_for(self, turn: asyncio.Future[T]) -> T:
        """Wait for a turn. When the client goes, the future is cancelled, and this raises `client_gone`."""
        if self.has_gone:
            turn.cancel()
            raise CLIENT_GONE()
        self._waits.add(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self.has_gone and not (task and task.cancelling()):
                raise CLIENT_GONE() from None
            raise
        finally:
            self._waits.discard(turn)


_scope: ContextVar[Mapping[str, Any]] = ContextVar("scope", default=MappingProxyType({}))
"""The scope of the request that this task answers; empty for work without a request."""


def begin_request(scope: Mapping[str, Any]) -> None:
    """Remember the scope of the request that this task answers, for its client and its source."""
    _scope.set(scope)


def request_source() -> str:
    """The source of the request that this task answers; that of a local socket for work without a request."""
    return address(_scope.get())


def _scope_without_client() -> Mapping[str, Any]:
    """What remains of a scope when its client does not matter any more: its source."""
    return {"client": _scope.get().get("client")}


def require_client() -> None:
    """Raise `client_gone` if the client of this request has gone: for work that has not begun."""
    client: Client | None = _scope.get().get(CLIENT)
    if client and client.has_gone:
        raise CLIENT_GONE()


@contextlib.contextmanager
def without_client() -> Generator[None]:
    """While the block lasts, waits do not end when the client goes: for the end of work that has begun."""
    token = _scope.set(_scope_without_client())
    try:
        yield
    finally:
        _scope.reset(token)


def create_shared_task(work: Coroutine[Any, Any, T], name: str | None = None) -> asyncio.Task[T]:
    """Start work that several requests wait for: it goes on when the client that caused it has gone."""
    context = copy_context()
    context.run(_scope.set, _scope_without_client())
    return asyncio.create_task(work, name=name, context=context)


def wait_while_connected(turn: asyncio.Future[T]) -> Awaitable[T]:
    """Wait for a turn as long as the client of this request is connected. Raises `client_gone`.

    Before the work begins, the giver of the turn checks whether the future is done: then it does not begin.
    """
    client: Client | None = _scope.get().get(CLIENT)
    return client.wait_for(turn) if client else turn
