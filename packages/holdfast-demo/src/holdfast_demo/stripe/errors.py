"""Refusals of requests, also planned ones: Stripe's error envelope, from which stripe-python makes its exceptions."""

import re
from dataclasses import dataclass
from typing import Any, Literal


class StripeRefusal(Exception):
    """A refused request.

    message   the reason, for people
    param     the invalid parameter, such as `line_items[0][quantity]`
    checked   whether it was refused before its execution, so that its idempotency key is not used up
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        type: str = "invalid_request_error",
        code: str = "",
        param: str = "",
        checked: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.type = type
        self.code = code
        self.param = param
        self.checked = checked

    def body(self) -> dict[str, Any]:
        """The error envelope."""
        more = {"code": self.code, "param": self.param}
        error = {"type": self.type, "message": self.message, **{name: value for name, value in more.items() if value}}
        return {"error": error}


def missing(kind: str, id: str, param: str = "id", status: int = 404) -> StripeRefusal:
    """The refusal for a missing object: 404 for the object in an address, 400 for others, as Stripe does."""
    return StripeRefusal(f"No such {kind}: '{id}'", status=status, code="resource_missing", param=param)


def unmodelled_parameter(param: str) -> StripeRefusal:
    """The refusal of a parameter that only Stripe supports. Ignoring it would hide a fault."""
    return StripeRefusal(f"Demo payments do not know what Stripe does with '{param}'.", param=param, checked=True)


def failure() -> StripeRefusal:
    """An error of the processor itself."""
    return StripeRefusal("An unknown error occurred.", status=500, type="api_error")


def too_many(code: str) -> StripeRefusal:
    """The refusal of too many requests in a short time, or at the same time about one object."""
    return StripeRefusal("Too many requests. Try again later.", status=429, code=code)


Kind = Literal["before", "after", "remembered", "slow", "down", "limited", "locked"]
"""When a request fails: `before` it was done; `after`, with its answer lost on the way, so that the next one with the
key gets it; `remembered`, so that the next one gets the error again, as Stripe keeps errors of its own; `slow`, done
at once and answered later; `down`, by something in front of the processor, whose answer is no JSON; `limited`, since
there were too many, with how long to wait; `locked`, since another one is changing the same object."""


@dataclass
class Fault:
    """A planned failure of requests.

    path      a regular expression that matches a part of their path
    times     how many requests fail; later ones succeed
    seconds   the duration of a slow answer, or the wait that `limited` demands
    """

    kind: Kind
    path: str = ""
    method: str = "POST"
    times: int = 1
    seconds: float = 30

    def hits(self, method: str, path: str) -> bool:
        """Whether it concerns a request."""
        return method == self.method and re.search(self.path, path) is not None
