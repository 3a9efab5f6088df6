"""Agents: the credentials they send, and those they get in return."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from holdfast.inventory.agents.tokens import Claims
from holdfast.inventory.problems import (
    INVALID_REQUEST,
    INVALID_TARGET,
    UNSUPPORTED_GRANT_TYPE,
    UNSUPPORTED_IDENTITY_TYPE,
)
from holdfast.inventory.shops.model import SCOPES
from holdfast.kit.contract.addresses import is_same_address
from holdfast.kit.contract.command import Timestamp

SERVICE_AUTH = "service_auth"
BEARER = "Bearer"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
LIFETIME = 3600
"""Seconds an assertion or an access token is valid."""


class Registration(Struct, frozen=True):
    """An agent's registration, with the scopes that its key has now."""

    id: str
    shop: str
    scopes: list[str]


class AgentClaims(Claims, frozen=True):
    """The claims of an assertion or an access token."""

    shop: str
    scope: str
    client_id: str
    registration_type: str


class Identity(Struct):
    """An agent's credentials."""

    registration_id: Annotated[str, Meta(description="The same for as long as the key lives.")]
    registration_type: str
    identity_assertion: Annotated[str, Meta(description="A JWT: a bearer token for /mcp, and good for access tokens.")]
    assertion_expires: Timestamp
    scopes: list[str]
    token_type: str
    expires_in: Annotated[int, Meta(description="Seconds the assertion is valid.")]
    token_endpoint: Annotated[str, Meta(description="Where the assertion can be exchanged for an access token.")]


class Grant(Struct, frozen=True):
    """An identity assertion to be exchanged, for all its scopes (None) or some."""

    assertion: str
    scopes: frozenset[str] | None


class AccessToken(Struct):
    """RFC 6749, section 5.1."""

    access_token: str
    token_type: str
    expires_in: int
    scope: str


def requested_key(body: dict[str, Any]) -> str:
    """The API key in a request for an identity. Raises `invalid_request` or `unsupported_identity_type`."""
    type, key = body.get("type"), body.get("api_key")
    if not isinstance(type, str):
        raise INVALID_REQUEST(f"The field `type` is required: {SERVICE_AUTH}.")
    if type != SERVICE_AUTH:
        raise UNSUPPORTED_IDENTITY_TYPE()
    if not isinstance(key, str) or not key:
        raise INVALID_REQUEST("The field `api_key` is required: agents are registered by a shop's key.")
    if unknown := sorted(body.keys() - {"type", "api_key"}):
        raise INVALID_REQUEST(f"There is no field {', '.join(unknown)}.")
    return key


def requested_grant(form: dict[str, str], resources: frozenset[str]) -> Grant:
    """The grant that a form requests. Raises the errors of RFC 6749 and 8707.

    resources    the allowed audiences of a token
    """
    params = {name: value for name, value in form.items() if value}  # an empty parameter counts as absent
    if "grant_type" not in params:
        raise INVALID_REQUEST(f"The parameter `grant_type` is required: {JWT_BEARER}.")
    if params["grant_type"] != JWT_BEARER:
        raise UNSUPPORTED_GRANT_TYPE()
    if "assertion" not in params:
        raise INVALID_REQUEST("The parameter `assertion` is required: an identity_assertion of this service.")
    if "resource" in params and not any(is_same_address(params["resource"], resource) for resource in resources):
        raise INVALID_TARGET()
    return Grant(params["assertion"], frozenset(params["scope"].split()) if "scope" in params else None)


def ordered_scopes(scopes: frozenset[str]) -> list[str]:
    """Scopes in the order of the contract."""
    return [scope for scope in SCOPES if scope in scopes]
