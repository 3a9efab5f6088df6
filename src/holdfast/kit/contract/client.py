"""The client of a request: work that waits for its turn is dropped when the client has gone."""

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, TypeVar

from holdfast.kit.contract.problems import ProblemType

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


_client: ContextVar[Client | None] = ContextVar("client", default=None)


def begin_request(scope: Mapping[str, Any]) -> None:
    """Remember the client of the request that this task answers."""
    _client.set(scope.get(CLIENT))


async def wait_while_connected(turn: asyncio.Future[T]) -> T:
    """Wait for a turn as long as the client of this request is connected. Raises `client_gone`.

    Whoever gives the turn looks whether the future is done: then the work is not begun.
    """
    client = _client.get()
    return await (client.wait_for(turn) if client else turn)
