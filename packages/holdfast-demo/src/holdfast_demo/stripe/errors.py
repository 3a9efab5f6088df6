"""Refusals of requests: Stripe's error envelope, from which stripe-python makes its exceptions."""

from typing import Any


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


def unmodelled(param: str) -> StripeRefusal:
    """The refusal of a parameter that only Stripe supports. Ignoring it would hide a fault."""
    return StripeRefusal(f"Demo payments do not know what Stripe does with '{param}'.", param=param, checked=True)


def failure() -> StripeRefusal:
    """An error of the processor itself."""
    return StripeRefusal("An unknown error occurred.", status=500, type="api_error")


def too_many(code: str) -> StripeRefusal:
    """The refusal of too many requests in a short time, or at the same time about one object."""
    return StripeRefusal("Too many requests. Try again later.", status=429, code=code)
