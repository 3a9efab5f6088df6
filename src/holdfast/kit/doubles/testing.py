"""What tests can do with a double in another process: a small API below `/_test/`, there only when asked for.

Each path takes a JSON object, by POST.
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from holdfast.kit.doubles.webhooks import Webhooks

C = TypeVar("C", bound=Struct)


class Nothing(Struct, forbid_unknown_fields=True):
    """An empty object."""


class Advance(Struct, forbid_unknown_fields=True):
    """Move the clock forward."""

    seconds: float


def route(name: str, kind: type[C], act: Callable[[C], Response]) -> Route:
    """The path of a deed. What cannot be read is answered with 400."""

    async def answer(request: Request) -> Response:
        try:
            asked = msgspec.json.decode(await request.body() or b"{}", type=kind)
        except msgspec.DecodeError as error:
            return JSONResponse({"error": str(error)}, 400)
        return act(asked)

    return Route(f"/_test/{name}", answer, methods=["POST"])


def change(webhooks: Webhooks, changes: Struct) -> None:
    """Change how webhooks are sent. What is None stays as it is."""
    for name in changes.__struct_fields__:
        if (value := getattr(changes, name)) is not None:
            setattr(webhooks, name, value)
    webhooks.wake()
