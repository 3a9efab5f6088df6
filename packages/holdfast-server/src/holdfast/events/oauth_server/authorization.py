"""Authorization requests: what a client asks a person for, in the query of `/oauth/authorize`.

The person sees the problem of an invalid request. If client and redirect address are valid, a link on that page reports
the problem to the client. The link needs a click: any program can register a client, so an automatic redirect would let
our address lead to any other.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from holdfast.events.oauth_server import redirect_addresses
from holdfast.events.oauth_server.clients import Clients
from holdfast.events.oauth_server.model import CHALLENGE, Client, Terms
from holdfast.events.oauth_server.oauth_problems import (
    INVALID_CLIENT,
    INVALID_REDIRECT_URI,
    INVALID_REQUEST,
    INVALID_SCOPE,
    INVALID_TARGET,
    UNSUPPORTED_RESPONSE_TYPE,
    description,
)
from holdfast.kit.contract.addresses import is_same_address
from holdfast.kit.contract.problems import Problem

MAX_STATE_CHARS = 4_000


class AuthorizationRequest(Struct, frozen=True):
    """A valid authorization request of a client."""

    client: Client
    redirect_uri: str
    state: str | None
    scopes: Sequence[str]
    challenge: str


class AuthorizationRefusal(Exception):
    """An authorization request that is refused; the client gets the problem if the person goes back to it.

    address    the redirect address, with the problem in its query
    """

    def __init__(self, problem: Problem, address: str) -> None:
        super().__init__(address)
        self.problem = problem
        self.address = address


async def read_authorization_request(
    terms: Terms, clients: Clients, query: Mapping[str, str], account_id: int
) -> AuthorizationRequest:
    """Read an authorization request from a query.

    Raises `invalid_client` and `invalid_redirect_uri`, which the person sees, and `AuthorizationRefusal`.
    """
    if not query.get("client_id"):
        raise INVALID_CLIENT("The request names no client.", hint="Start again in the app.")
    client = await clients.find(query["client_id"], account_id)
    redirect_uri = redirect_addresses.registered_address(client.redirect_uris, query.get("redirect_uri"))
    if redirect_uri is None:
        raise INVALID_REDIRECT_URI("The client has not said that it uses this redirect address.")
    state = query.get("state")
    try:
        if state is not None and len(state) > MAX_STATE_CHARS:
            state = None
            raise INVALID_REQUEST(f"state is longer than {MAX_STATE_CHARS} characters.")
        return AuthorizationRequest(client, redirect_uri, state, scopes(terms, query), challenge(terms, query))
    except Problem as problem:
        raise AuthorizationRefusal(problem, refusal_address(terms, redirect_uri, state, problem)) from problem


def challenge(terms: Terms, query: Mapping[str, str]) -> str:
    """The code challenge of a request that can be answered with a code. Raises a `Problem`."""
    if query.get("response_type") != "code":
        raise UNSUPPORTED_RESPONSE_TYPE()
    if query.get("response_mode", "query") != "query":
        raise INVALID_REQUEST("Answers are sent in the query alone.", hint="Leave out response_mode.")
    if query.get("code_challenge_method") != "S256" or not CHALLENGE.fullmatch(query.get("code_challenge", "")):
        raise INVALID_REQUEST(
            "There is no code challenge, or not one of the method S256.",
            hint="Send code_challenge_method=S256 and a code_challenge of 43 characters (RFC 7636).",
        )
    require_resource(terms, query)
    return query["code_challenge"]


def require_resource(terms: Terms, query: Mapping[str, str]) -> None:
    """Raises `invalid_target` if a request names another resource (RFC 8707)."""
    if not is_same_address(query.get("resource", terms.resource), terms.resource):
        raise INVALID_TARGET(f"Tokens are for {terms.resource} alone.")


def scopes(terms: Terms, query: Mapping[str, str]) -> Sequence[str]:
    """The requested scopes that exist. Raises `invalid_scope` if there is none."""
    requested_scopes = query.get("scope", "").split()
    existing_scopes = (
        [scope for scope in terms.scopes if scope in requested_scopes] if requested_scopes else [*terms.default_scopes]
    )
    if not existing_scopes:
        raise INVALID_SCOPE()
    return existing_scopes


def answer_address(terms: Terms, request: AuthorizationRequest, code: str) -> str:
    """The address that takes a code to the client."""
    return redirect_addresses.with_parameters(request.redirect_uri, code=code, state=request.state, iss=terms.issuer)


def refusal_address(terms: Terms, redirect_uri: str, state: str | None, problem: Problem) -> str:
    """The address that takes a refusal to the client."""
    return redirect_addresses.with_parameters(
        redirect_uri, error=problem.code, error_description=description(problem), state=state, iss=terms.issuer
    )
