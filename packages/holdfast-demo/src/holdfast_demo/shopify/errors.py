"""Refusals of the platform: on pages and to tests, at the token endpoint, in the Admin API, and planned ones."""

import re
from dataclasses import dataclass
from typing import Any, Literal

from graphql import GraphQLError


class ShopifyRefusal(Exception):
    """A request that cannot be done; the message says why."""


class OAuthRefusal(Exception):
    """A refusal of the token endpoint."""

    def __init__(self, error: str, description: str, status: int = 400) -> None:
        super().__init__(description)
        self.status = status
        self.body = {"error": error, "error_description": description}


class UserErrors(Exception):
    """The errors that a mutation answers beside its data: fields, messages, codes."""

    def __init__(self, *errors: dict[str, Any]) -> None:
        super().__init__(str(errors))
        self.errors = errors


def user_error(message: str, code: str | None, *field: str) -> dict[str, Any]:
    """An error of a mutation."""
    return {"message": message, "field": list(field) or None, "code": code}


def graphql_error(message: str, code: str, **extensions: Any) -> GraphQLError:
    """An error of the Admin API with its code."""
    return GraphQLError(message, extensions={"code": code, **extensions})


Kind = Literal["throttle", "before", "after", "down", "slow", "half", "stale", "shifted", "busy", "away", "failing"]
"""What happens to a request:

throttle   it is told to wait, whatever it costs
before     500, and nothing was done
after      500, and it was done
down       503 by something in front of the platform, whose answer is no JSON
slow       it is done at once, and answered later, perhaps too late
half       every second field that may be null is null, with an error beside the data
stale      levels are shown as they were before their last change
shifted    pages begin with the last one of the page before
busy       its key is said to be in use
away       levels cannot be changed by differences for a while: nothing is done
failing    the same, as a failure
"""


@dataclass
class Fault:
    """A planned failure of requests.

    operation   a regular expression that matches a part of their query
    shop        the shop; empty: all shops
    times       how many requests fail; later ones succeed
    seconds     the duration of a slow answer
    """

    kind: Kind
    operation: str = ""
    shop: str = ""
    times: int = 1
    seconds: float = 30

    def hits(self, shop: str, query: str) -> bool:
        """Whether it concerns a request."""
        return self.shop in ("", shop) and re.search(self.operation, query) is not None
