"""The page `/oauth/authorize`: a client asks a signed-in person, who allows or refuses the request.

Opening the page allows nothing. The whole request is in its address, and is checked again when the form is sent. The
person is asked every time: clients have no secret, so a request may come from another program than the last one. A
service without an authorization server has a page there that says where apps are connected.
"""

from typing import Any
from urllib.parse import urlsplit

from holdfast.accounts.sessions import Session
from holdfast.accounts.signed_in_pages import SIGN_IN, SignedInPages, address_with_return
from holdfast.events.oauth_server import grants, redirect_addresses
from holdfast.events.oauth_server.authorization import (
    AuthorizationRefusal,
    AuthorizationRequest,
    answer_address,
    read_authorization_request,
    refusal_address,
)
from holdfast.events.oauth_server.clients import Clients
from holdfast.events.oauth_server.model import AUTHORIZE, Consent, Terms
from holdfast.events.oauth_server.oauth_problems import (
    ACCESS_DENIED,
    INVALID_CLIENT,
    INVALID_REDIRECT_URI,
    INVALID_REQUEST,
    UNREADABLE,
)
from holdfast.events.oauth_settings import AUTHORIZATION_PARAMETERS, CONSENTS
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.answers import known_parameters
from holdfast.kit.http.handler import Reply, Request, headers_of, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import Site, redirect
from holdfast.kit.postgres.database import Database


def query_of(request: Request) -> dict[str, str]:
    """The parameters of an authorization request. Raises `invalid_request`."""
    try:
        return read_query(request.query)
    except Problem as problem:
        if problem.type not in UNREADABLE:
            raise
        raise INVALID_REQUEST(problem.message, hint="Start again in the app.") from problem


def action(request: Request) -> str:
    """The address for the form of a page: the page itself, with the known parameters of its query."""
    return f"{AUTHORIZE}?{known_parameters(request.query, {*AUTHORIZATION_PARAMETERS, 'lang'}).decode('latin-1')}"


def page(site: Site, template: str, status: int, request: Request, **values: Any) -> Reply:
    """A page. Its links to other languages keep the query of the request."""
    return site.page(template, status, language=language_of(request), query=request.query, **values)


def problem_page(site: Site, problem: Problem, request: Request, *, back: str = "") -> Reply:
    """The page for an invalid request. `back`: the address that reports the problem to the client."""
    values: dict[str, Any] = {
        "problem": problem,
        "back": back,
        "target": redirect_addresses.redirect_target(back) if back else None,
    }
    return page(site, "oauth_server/unanswered.html", problem.status, request, headers=headers_of(problem), **values)


def ineligibility_page(site: Site, session: Session, request: Request) -> Reply | None:
    """The page that says why a person cannot let any client act for them; None if the person can."""
    if not session.is_proved:
        # Any visitor can register an address with a password. Consent must come from the owner of the address.
        again = address_with_return(SIGN_IN, request, site)
        return page(site, "oauth_server/unproved.html", 403, request, email=session.email, again=again)
    if session.account.tenant_id is None:
        return page(site, "oauth_server/no_tenant.html", 403, request, email=session.email)
    return None


_PAGE_PROBLEMS = frozenset({INVALID_CLIENT, INVALID_REDIRECT_URI, INVALID_REQUEST})
"""Problems that the person sees, because they cannot be reported to the client."""


def routes(
    database: Database[Any], terms: Terms, clients: Clients, signed_in: SignedInPages, limits: Limits
) -> list[Route]:
    """The route of the page."""
    page = ConsentPage(database, terms, clients, signed_in, limits)
    return [signed_in.route(AUTHORIZE, "authorize", page.answer, "POST")]


class ConsentPage:
    """Asks a signed-in person whether a client may act for them."""

    def __init__(
        self, database: Database[Any], terms: Terms, clients: Clients, signed_in: SignedInPages, limits: Limits
    ) -> None:
        self._database = database
        self._terms = terms
        self._clients = clients
        self._signed_in = signed_in
        self._limits = limits

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the consent form, or execute the decision in the form."""
        site = self._terms.site
        try:
            authorization = await read_authorization_request(
                self._terms, self._clients, query_of(request), session.account_id
            )
        except AuthorizationRefusal as refused:
            return problem_page(site, refused.problem, request, back=refused.address)
        except Problem as problem:
            if problem.type not in _PAGE_PROBLEMS:
                raise
            return problem_page(site, problem, request)
        if error_page := ineligibility_page(site, session, request):
            return error_page
        if request.method != "POST":
            return self._consent_page(session, request, authorization)
        fields = await self._signed_in.read(session, request)
        match fields.get("decision"):
            case "allow":
                return await self._allow(session, request, authorization)
            case "refuse":
                return redirect(
                    refusal_address(self._terms, authorization.redirect_uri, authorization.state, ACCESS_DENIED())
                )
            case _:
                return self._consent_page(session, request, authorization, 422)

    async def _allow(self, session: Session, request: Request, authorization: AuthorizationRequest) -> Reply:
        await self._limits.hit(CONSENTS, f"account {session.account_id}")
        tenant_id = session.account.tenant_id
        assert tenant_id is not None
        consent = Consent(
            session.id,
            session.account_id,
            tenant_id,
            authorization.client.id,
            authorization.scopes,
            authorization.redirect_uri,
            authorization.challenge,
        )
        try:
            code = await self._database.transact(lambda tx: grants.allow(tx, consent))
        except Problem as problem:
            if problem.type is not INVALID_CLIENT:
                raise
            return problem_page(self._terms.site, problem, request)
        if code is None:
            return redirect(address_with_return(SIGN_IN, request, self._terms.site))
        return redirect(answer_address(self._terms, authorization, code))

    def _consent_page(
        self, session: Session, request: Request, authorization: AuthorizationRequest, status: int = 200
    ) -> Reply:
        return page(
            self._terms.site,
            "oauth_server/consent.html",
            status,
            request,
            forms=redirect_addresses.form_action_source(authorization.redirect_uri),
            client=authorization.client,
            target=redirect_addresses.redirect_target(authorization.redirect_uri),
            meanings=self._terms.meanings(authorization.scopes, language_of(request)),
            email=session.email,
            token=self._signed_in.token(session),
            action=action(request),
        )


def missing_server_routes(signed_in: SignedInPages, issuer: str) -> list[Route]:
    """The route of the page. `issuer`: the issuer of the authorization server in use; empty: there is none."""

    async def answer(_: Session, request: Request) -> Reply:
        host = urlsplit(issuer).netloc
        return signed_in.site.page("oauth_server/absent.html", language=language_of(request), host=host)

    return [signed_in.route(AUTHORIZE, "authorize", answer)]
