"""An API for tests that control a double in another process, below `/_test/`, and the faults that they ask for. It is
served only on request.

Each path takes a JSON object, by POST.
"""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from holdfast_demo.shared.webhooks import WebhookSender

C = TypeVar("C", bound=Struct)


class EmptyCommand(Struct, forbid_unknown_fields=True):
    """An empty object."""


class AdvanceClock(Struct, forbid_unknown_fields=True):
    """Move the clock forward."""

    seconds: float


def route(name: str, kind: type[C], action: Callable[[C], Response]) -> Route:
    """The route of a command. A body that cannot be read is answered with 400."""

    async def answer(request: Request) -> Response:
        try:
            command = msgspec.json.decode(await request.body() or b"{}", type=kind)
        except msgspec.DecodeError as error:
            return JSONResponse({"error": str(error)}, 400)
        return action(command)

    return Route(f"/_test/{name}", answer, methods=["POST"])


def change_webhooks(webhooks: WebhookSender, changes: Struct) -> None:
    """Change how webhooks are sent. A field that is None changes nothing."""
    for name in changes.__struct_fields__:
        if (value := getattr(changes, name)) is not None:
            setattr(webhooks, name, value)
    webhooks.wake()


class CountedFault(Protocol):
    """A failure of the next `times` requests; later requests succeed."""

    times: int


F = TypeVar("F", bound=CountedFault)


class Faults(Generic[F]):
    """The planned faults."""

    def __init__(self) -> None:
        self._planned: list[F] = []

    def plan(self, fault: F) -> None:
        self._planned.append(fault)

    def clear(self) -> None:
        self._planned.clear()

    def take(self, hits: Callable[[F], bool]) -> F | None:
        """Use up and return the fault of a request; None if there is none. `hits`: whether a fault concerns it."""
        for fault in self._planned:
            if fault.times > 0 and hits(fault):
                fault.times -= 1
                return fault
        return None
