"""How the platform says no: to people and tests, in answers of the token endpoint, in those of the Admin API."""

from typing import Any

from graphql import GraphQLError


class Refused(Exception):
    """What was asked for cannot be done; the message says why."""


class OAuthRefused(Exception):
    """A refusal of the token endpoint."""

    def __init__(self, error: str, description: str, status: int = 400) -> None:
        super().__init__(description)
        self.status = status
        self.body = {"error": error, "error_description": description}


class UserErrors(Exception):
    """What a mutation refuses and answers beside its data: fields, messages, codes."""

    def __init__(self, *errors: dict[str, Any]) -> None:
        super().__init__(str(errors))
        self.errors = errors


def user_error(message: str, code: str | None, *field: str) -> dict[str, Any]:
    """One of the errors of a mutation."""
    return {"message": message, "field": list(field) or None, "code": code}


def failed(message: str, code: str, **extensions: Any) -> GraphQLError:
    """An error of the Admin API with its code."""
    return GraphQLError(message, extensions={"code": code, **extensions})
