"""The page `/oauth/authorize`: a client asks a signed-in person, who allows or refuses the request.

Opening the page allows nothing. The whole request is in its address, and is checked again when the form is sent.
The person is asked every time: clients have no secret, so a request may come from another program than the last one.
"""

from typing import Any

from starlette.routing import BaseRoute

from holdfast.accounts.oauth import grants, pages, redirects
from holdfast.accounts.oauth.authorization import (
    AuthorizationRefusal,
    AuthorizationRequest,
    answer_address,
    read_authorization_request,
    refusal_address,
)
from holdfast.accounts.oauth.clients import Clients
from holdfast.accounts.oauth.limits import CONSENTS
from holdfast.accounts.oauth.model import Consent
from holdfast.accounts.oauth.problems import (
    ACCESS_DENIED,
    INVALID_CLIENT,
    INVALID_REDIRECT_URI,
    INVALID_REQUEST,
)
from holdfast.accounts.oauth.terms import AUTHORIZE, Terms
from holdfast.accounts.sessions import Session
from holdfast.accounts.signed_in_pages import SIGN_IN, SignedInPages, address_with_return
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import redirect
from holdfast.kit.postgres.database import Database
from holdfast.kit.running.rate_limits import Limits

_SHOWN_TO_PERSON = frozenset({INVALID_CLIENT, INVALID_REDIRECT_URI, INVALID_REQUEST})
"""Problems that the person sees, because they cannot be reported to the client."""


def routes(
    database: Database[Any], terms: Terms, clients: Clients, signed_in: SignedInPages, limits: Limits
) -> list[BaseRoute]:
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
                self._terms, self._clients, pages.query_of(request), session.account_id
            )
        except AuthorizationRefusal as refused:
            return pages.problem_page(site, refused.problem, request, back=refused.address)
        except Problem as problem:
            if problem.type not in _SHOWN_TO_PERSON:
                raise
            return pages.problem_page(site, problem, request)
        if error_page := pages.ineligibility_page(site, session, request):
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
        allowed = Consent(
            session.id,
            session.account_id,
            tenant_id,
            authorization.client.id,
            authorization.scopes,
            authorization.redirect_uri,
            authorization.challenge,
        )
        try:
            code = await self._database.transact(lambda tx: grants.allow(tx, allowed))
        except Problem as problem:
            if problem.type is not INVALID_CLIENT:
                raise
            return pages.problem_page(self._terms.site, problem, request)
        if code is None:
            return redirect(address_with_return(SIGN_IN, request, self._terms.site))
        return redirect(answer_address(self._terms, authorization, code))

    def _consent_page(
        self, session: Session, request: Request, authorization: AuthorizationRequest, status: int = 200
    ) -> Reply:
        return pages.page(
            self._terms.site,
            "oauth/consent.html",
            status,
            request,
            forms=redirects.form_action_source(authorization.redirect_uri),
            client=authorization.client,
            target=redirects.target(authorization.redirect_uri),
            meanings=self._terms.meanings(authorization.scopes, language_of(request)),
            email=session.email,
            token=self._signed_in.token(session),
            action=pages.action(request),
        )
