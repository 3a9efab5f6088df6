"""What the server works with: its terms, clients, consents, tokens, connections."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from holdfast.events.oauth_server.oauth_problems import INVALID_REDIRECT_URI
from holdfast.events.oauth_server.redirect_addresses import is_acceptable
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import ProblemType
from holdfast.kit.mail.message import header_text
from holdfast.kit.pages.language import Language
from holdfast.kit.pages.site import Site
from holdfast.kit.security.signed_tokens import ALGORITHMS

AUTHORIZE = "/oauth/authorize"
TOKEN = "/oauth/token"  # noqa: S105 - a path
OLD_TOKEN = "/token"  # noqa: S105 - a path
"""The path at which clients of 2025-03-26 expect the endpoint. The official client tries it after each restart."""

REGISTER = "/oauth/register"
REVOKE = "/oauth/revoke"
METADATA = "/.well-known/oauth-authorization-server"


@dataclass(frozen=True)
class Terms:
    """What a service lets clients do.

    issuer            its base address, to the letter
    resource          the address that tokens are for
    scopes            what each scope allows, in one English sentence that the catalogues of the site contain
    default_scopes    the scopes for a client that requests none
    manual            the address of the documentation for authors of clients
    """

    issuer: str
    resource: str
    scopes: Mapping[str, str]
    default_scopes: Sequence[str]
    manual: str
    site: Site

    def meanings(self, scopes: Sequence[str], language: Language) -> list[str]:
        """What scopes allow, in a language."""
        texts = self.site.texts(language)
        return [texts.gettext(self.scopes[scope]) for scope in scopes]

    def metadata(self) -> dict[str, Any]:
        """The metadata of the authorization server (RFC 8414)."""
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}{AUTHORIZE}",
            "token_endpoint": f"{self.issuer}{TOKEN}",
            "registration_endpoint": f"{self.issuer}{REGISTER}",
            "revocation_endpoint": f"{self.issuer}{REVOKE}",
            "scopes_supported": [*self.scopes],
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
            "token_endpoint_auth_signing_alg_values_supported": sorted(ALGORITHMS),
            "revocation_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
            "revocation_endpoint_auth_signing_alg_values_supported": sorted(ALGORITHMS),
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": True,
            "protected_resources": [self.resource],
            "service_documentation": self.manual,
            "ui_locales_supported": ["en", "de"],
        }


MAX_ID_CHARS = 500
MAX_NAME_CHARS = 100
MAX_REDIRECT_URIS = 20

CODE_SECONDS = 60
ACCESS_SECONDS = 3_600
REFRESH_DAYS = 60

CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
"""A SHA-256 in base64url, as the method S256 sends it (RFC 7636)."""

VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")


AuthMethod = Literal["none", "private_key_jwt"]


class Client(Struct, frozen=True):
    """A program that acts for people with their consent.

    id              the address of its metadata document, or the id that its registration returned
    name            the name that it gives itself; unverified
    auth_methods    what is accepted as its proof at the token endpoint: `none` is PKCE alone
    jwks            the keys with which it signs, as its metadata document has them
    jwks_uri        the address of these keys; None: it has none, or they are in the document
    """

    id: str
    name: str | None
    redirect_uris: Sequence[str]
    auth_methods: Sequence[AuthMethod] = ("none",)
    jwks: Sequence[dict[str, Any]] | None = None
    jwks_uri: str | None = None

    @property
    def host(self) -> str | None:
        """The host of its metadata document, which proves that the client is from there; None if it registered."""
        return urlsplit(self.id).hostname if self.id.startswith("https://") else None


def client_of_metadata(id: str, metadata: Mapping[str, Any], refusal: ProblemType) -> Client:
    """The client with this metadata (RFC 7591). Members that are not needed here are ignored.

    Raises `invalid_redirect_uri`, and `refusal` for any other member that is not acceptable.
    """
    uris: Any = metadata.get("redirect_uris")
    if not isinstance(uris, list) or not 1 <= len(uris) <= MAX_REDIRECT_URIS:  # pyright: ignore[reportUnknownArgumentType]
        raise refusal(f"redirect_uris must be a list of 1 to {MAX_REDIRECT_URIS} addresses.")
    addresses: list[Any] = [*uris]
    for address in addresses:
        if not isinstance(address, str) or not is_acceptable(address):
            raise INVALID_REDIRECT_URI(
                f"This cannot be a redirect address: {str(address)[:200]}",
                hint="Use https, http on the loopback interface, or a scheme such as com.example.app:/done.",
            )
    for name, required_item in (("grant_types", "authorization_code"), ("response_types", "code")):
        declared_items: Any = metadata.get(name)
        if declared_items is not None and not (isinstance(declared_items, list) and required_item in declared_items):
            raise refusal(f"{name} must be a list that has {required_item}.")
    client_name = metadata.get("client_name")
    if client_name is not None and not isinstance(client_name, str):
        raise refusal("client_name must be a text.")
    return Client(id, header_text(client_name or "")[:MAX_NAME_CHARS].strip() or None, addresses)


class Consent(Struct, frozen=True):
    """The consent of a person for a client.

    session_id      the session in which it is given
    account_id      the account that gives it
    tenant_id       the tenant for which the client will act
    redirect_uri    the address to which the code is sent
    challenge       the hash of the verifier that the client will send with the code
    """

    session_id: int
    account_id: int
    tenant_id: int
    client_id: str
    scopes: Sequence[str]
    redirect_uri: str
    challenge: str


class OAuthTokens(Struct, frozen=True):
    """An access token and the refresh token that gets the next one.

    seconds    the seconds for which the access token is still valid
    """

    access: str
    refresh: str
    scopes: Sequence[str]
    seconds: int = ACCESS_SECONDS


class ListConnections(Command):
    """No options: every connected client is listed."""


class Disconnect(Command):
    client_id: Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS, description="The client, as listed.")]


class Connection(Struct, frozen=True):
    """A client that acts for a tenant.

    name       the name that it gives itself; unverified
    host       the host of its metadata document; null for a registered client
    used_at    when it last got tokens; they are valid for an hour
    """

    client_id: str
    name: str | None
    host: str | None
    scopes: list[str]
    since: datetime
    used_at: datetime
