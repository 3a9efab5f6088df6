"""The terms of the server, clients, consents and tokens; the problems of RFC 6749, 7591 and 8707; and the rules for
redirect addresses.

The address in a request must be exactly a registered one, unless it leads to the person's own computer. Then the port
may differ, since a program there takes any free port (RFC 8252, section 7.3), and the path may have one more segment:
Codex adds an id of the server to it, which its metadata document cannot name. Whatever listens on that computer could
have the registered path, too.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlencode, urlsplit

from msgspec import Meta, Struct

from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import BAD_REQUEST, INVALID_JSON, VALIDATION_FAILED, Problem, ProblemType
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


INVALID_REQUEST = ProblemType(
    "invalid_request",
    400,
    "The OAuth request cannot be understood.",
    "Compare it with RFC 6749 and the metadata at /.well-known/oauth-authorization-server.",
)
INVALID_CLIENT = ProblemType(
    "invalid_client",
    400,
    "The client is unknown, or its registration has ended.",
    "Register at /oauth/register, or use the https address of a client ID metadata document as client_id.",
)
INVALID_GRANT = ProblemType(
    "invalid_grant",
    400,
    "The code or the refresh token is unknown, or has expired.",
    "Ask the person again at /oauth/authorize.",
)
UNSUPPORTED_GRANT_TYPE = ProblemType(
    "unsupported_grant_type",
    400,
    "This grant type is not supported.",
    "Use authorization_code or refresh_token.",
)
UNSUPPORTED_RESPONSE_TYPE = ProblemType(
    "unsupported_response_type", 400, "This response type is not supported.", "Use response_type=code."
)
INVALID_SCOPE = ProblemType(
    "invalid_scope",
    400,
    "None of these scopes can be granted.",
    "Ask for scopes that the metadata lists, and later for no more than was granted.",
)
INVALID_TARGET = ProblemType(
    "invalid_target",
    400,
    "The resource is not one of this service.",
    "Leave out `resource`, or name the address of the agent endpoint.",
)
ACCESS_DENIED = ProblemType("access_denied", 403, "The person refused.", "Do not ask again without being told to.")
INVALID_REDIRECT_URI = ProblemType(
    "invalid_redirect_uri",
    400,
    "The client cannot use this redirect address.",
    "Use https, http on localhost or a loopback address, or the scheme of an app; without user and fragment.",
)
INVALID_CLIENT_METADATA = ProblemType(
    "invalid_client_metadata",
    400,
    "The metadata of the client is not acceptable.",
    "Send JSON with redirect_uris and without a secret: clients use PKCE.",
)

ALL = (
    INVALID_REQUEST,
    INVALID_CLIENT,
    INVALID_GRANT,
    UNSUPPORTED_GRANT_TYPE,
    UNSUPPORTED_RESPONSE_TYPE,
    INVALID_SCOPE,
    INVALID_TARGET,
    ACCESS_DENIED,
    INVALID_REDIRECT_URI,
    INVALID_CLIENT_METADATA,
)

UNREADABLE = frozenset({BAD_REQUEST, INVALID_JSON, VALIDATION_FAILED})
"""The problems that the kit raises for a body or a query that it cannot read."""

_NOT_IN_DESCRIPTIONS = re.compile(r'[^ -~]|["\\]')


def description(problem: Problem) -> str:
    """The text of a problem, in the characters that RFC 6749 allows."""
    return _NOT_IN_DESCRIPTIONS.sub("'", f"{problem.message} {problem.hint}")


def error_body(problem: Problem) -> dict[str, Any]:
    """The error envelope of RFC 6749 and 7591."""
    return {"error": problem.code, "error_description": description(problem)}


MAX_ADDRESS_CHARS = 500

_ADDRESS = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*):[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]+")
"""An address in the characters of RFC 3986, without a fragment, its scheme in lower case."""

_LOOPBACK = re.compile(r"http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?(?=[/?]|$)")

_SEGMENT = re.compile(r"/(?!\.{1,2}$)[A-Za-z0-9._~-]{1,100}")
"""One more segment of a path."""

_APPS = frozenset(
    """
    antigravity claude cursor goose jetbrains kiro raycast trae vscode vscode-insiders vscodium warp windsurf zed
    """.split()
)
"""Schemes without a dot that are known to belong to one app."""


_SYSTEMS = ("microsoft.", "windows.", "x-apple.")
"""The prefixes of schemes with a dot that belong to the operating system."""


def _is_of_app(scheme: str) -> bool:
    """Whether a scheme belongs to one app: a reversed domain name, or a known scheme.

    RFC 8252, section 7.1, requires the dot. Any other scheme may belong to the operating system: `search-ms:` and
    `ms-msdt:` run programs of Windows.
    """
    return scheme in _APPS or ("." in scheme and not scheme.startswith(_SYSTEMS))


class RedirectTarget(NamedTuple):
    """Where an address leads, as people see it: to a site, to this computer, or to an app; and its name."""

    kind: Literal["site", "computer", "app"]
    name: str


def is_acceptable(address: str) -> bool:
    """Whether a client may have this redirect address."""
    match = _ADDRESS.fullmatch(address)
    if match is None or len(address) > MAX_ADDRESS_CHARS:
        return False
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return False
    if "@" in parts.netloc or port == 0:
        return False
    if parts.scheme == "https":
        return bool(parts.hostname)
    if _LOOPBACK.match(address):
        return True
    return _is_of_app(parts.scheme)


def registered_address(registered: Sequence[str], redirect_uri: str | None) -> str | None:
    """The redirect address of a request, if the client has it. The only address of a client may be left out.

    Returns None for an address that was registered when the rules were weaker, and is not acceptable any more.
    """
    if redirect_uri is None and len(registered) == 1:
        redirect_uri = registered[0]
    if redirect_uri is None or not is_acceptable(redirect_uri):
        return None
    return redirect_uri if any(_is_same(address, redirect_uri) for address in registered) else None


def _is_same(registered: str, redirect_uri: str) -> bool:
    if registered == redirect_uri:
        return True
    if not (_LOOPBACK.match(redirect_uri) and _LOOPBACK.match(registered)):
        return False
    expected, named = (_LOOPBACK.sub(r"http://\1", address) for address in (registered, redirect_uri))
    return named == expected or bool(
        "?" not in expected and _SEGMENT.fullmatch(named.removeprefix(expected.removesuffix("/")))
    )


def redirect_target(address: str) -> RedirectTarget:
    """Where an address leads."""
    parts = urlsplit(address)
    if parts.scheme == "https":
        return RedirectTarget("site", parts.netloc.lower())
    if parts.scheme == "http":
        return RedirectTarget("computer", parts.netloc)
    return RedirectTarget("app", parts.scheme)


def form_action_source(address: str) -> str:
    """The sources that allow a form to lead there (Content Security Policy, `form-action`).

    Browsers also check every redirect that follows, and clients redirect to further pages: any https address may come.
    """
    parts = urlsplit(address)
    if parts.scheme == "https":
        return "https:"
    if parts.scheme == "http" and "[" not in parts.netloc:
        return f"https: http://{parts.netloc}"
    return f"https: {parts.scheme}:"  # a policy cannot name an IPv6 address


def with_parameters(address: str, **parameters: str | None) -> str:
    """A redirect address with the parameters of an answer added to its query."""
    separator = "?" if "?" not in address else "" if address.endswith(("?", "&")) else "&"
    return f"{address}{separator}{urlencode({name: value for name, value in parameters.items() if value is not None})}"


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
    for name, needed in (("grant_types", "authorization_code"), ("response_types", "code")):
        declared: Any = metadata.get(name)
        if declared is not None and not (isinstance(declared, list) and needed in declared):
            raise refusal(f"{name} must be a list that has {needed}.")
    called = metadata.get("client_name")
    if called is not None and not isinstance(called, str):
        raise refusal("client_name must be a text.")
    return Client(id, header_text(called or "")[:MAX_NAME_CHARS].strip() or None, addresses)


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
