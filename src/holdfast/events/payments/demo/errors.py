"""How a request is refused: Stripe's error envelope, from which stripe-python makes its exceptions."""

from typing import Any


class Refusal(Exception):
    """A request that is not done.

    message   what is wrong, for people
    param     the parameter that is wrong, such as `line_items[0][quantity]`
    checked   whether it was refused before anything was begun, so that its idempotency key is not used up
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


def missing(kind: str, id: str, param: str = "id", status: int = 404) -> Refusal:
    """There is no such thing. Stripe answers 404 for the thing that an address names, and 400 for others."""
    return Refusal(f"No such {kind}: '{id}'", status=status, code="resource_missing", param=param)


def unmodelled(param: str) -> Refusal:
    """Stripe knows this, and these demo payments do not: to ignore it would hide a fault."""
    return Refusal(f"Demo payments do not know what Stripe does with '{param}'.", param=param, checked=True)


def failure() -> Refusal:
    """An error of the processor itself."""
    return Refusal("An unknown error occurred.", status=500, type="api_error")


def too_many(code: str) -> Refusal:
    """There were too many requests in a short time, or at the same time about one object."""
    return Refusal("Too many requests. Try again later.", status=429, code=code)
