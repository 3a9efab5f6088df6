"""Clients, what they ask for, and what people allow them."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from holdfast.accounts.oauth.problems import INVALID_REDIRECT_URI
from holdfast.accounts.oauth.redirects import is_acceptable
from holdfast.kit.command import Command
from holdfast.kit.mail import plain
from holdfast.kit.problems import ProblemType

LONGEST_ID = 500
LONGEST_NAME = 100
MOST_ADDRESSES = 20

CODE_SECONDS = 60
ACCESS_SECONDS = 3_600
REFRESH_DAYS = 60

CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
"""A SHA-256 in base64url, as the method S256 sends it (RFC 7636)."""

VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")


class Client(Struct, frozen=True):
    """A program that acts for people who allow it.

    id      the address of its metadata document, or what its registration returned
    name    what it calls itself; nobody has checked that
    """

    id: str
    name: str | None
    redirect_uris: Sequence[str]

    @property
    def host(self) -> str | None:
        """The host of its metadata document, which it proved to be at; None for a registered client."""
        return urlsplit(self.id).hostname if self.id.startswith("https://") else None


def client(id: str, metadata: Mapping[str, Any], refusal: ProblemType) -> Client:
    """The client with this metadata (RFC 7591). Members that are not needed here are ignored.

    Raises `invalid_redirect_uri`, and `refusal` for what else is not acceptable.
    """
    uris: Any = metadata.get("redirect_uris")
    if not isinstance(uris, list) or not 1 <= len(uris) <= MOST_ADDRESSES:  # pyright: ignore[reportUnknownArgumentType]
        raise refusal(f"redirect_uris must be a list of 1 to {MOST_ADDRESSES} addresses.")
    addresses: list[Any] = [*uris]
    for each in addresses:
        if not isinstance(each, str) or not is_acceptable(each):
            raise INVALID_REDIRECT_URI(f"This cannot be a redirect address: {str(each)[:200]}")
    for name, needed in (("grant_types", "authorization_code"), ("response_types", "code")):
        given: Any = metadata.get(name)
        if given is not None and not (isinstance(given, list) and needed in given):
            raise refusal(f"{name} must be a list that has {needed}.")
    called = metadata.get("client_name")
    if called is not None and not isinstance(called, str):
        raise refusal("client_name must be a text.")
    return Client(id, plain(called or "")[:LONGEST_NAME].strip() or None, addresses)


class Allowed(Struct, frozen=True):
    """What somebody allows a client.

    session_id      in which it is allowed
    account_id      who allows it
    tenant_id       for whom the client will act
    redirect_uri    where the code is sent
    challenge       the hash of the verifier that the client will show for the code
    """

    session_id: int
    account_id: int
    tenant_id: int
    client_id: str
    scopes: Sequence[str]
    redirect_uri: str
    challenge: str


class Tokens(Struct, frozen=True):
    """An access token and the refresh token that gets the next one, both shown once."""

    access: str
    refresh: str
    scopes: Sequence[str]


class ListConnections(Command):
    """No options: every connected client is listed."""


class Disconnect(Command):
    client_id: Annotated[str, Meta(min_length=1, max_length=LONGEST_ID, description="The client, as listed.")]


class Connection(Struct, frozen=True):
    """A client that acts for a tenant.

    name       what it calls itself; nobody has checked that
    host       the host of its metadata document, where it described itself; null for a registered client
    used_at    when it last got tokens; they are good for an hour
    """

    client_id: str
    name: str | None
    host: str | None
    scopes: list[str]
    since: datetime
    used_at: datetime
