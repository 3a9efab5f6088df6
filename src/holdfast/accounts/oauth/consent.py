"""The page `/oauth/authorize`: a client asks somebody who is signed in, who allows or refuses it.

Looking at the page allows nothing. The whole request is in its address, and is checked again when the form is sent.
It is asked each time: clients have no secret, so nobody knows that the same program asks as the time before.
"""

from typing import Any

from starlette.routing import BaseRoute

from holdfast.accounts.door import Door
from holdfast.accounts.entrance import SIGN_IN, back_to
from holdfast.accounts.oauth import grants, pages, redirects
from holdfast.accounts.oauth.authorization import Answered, Asked, answer, asked, refusal
from holdfast.accounts.oauth.clients import Clients
from holdfast.accounts.oauth.limits import CONSENTS
from holdfast.accounts.oauth.model import Allowed
from holdfast.accounts.oauth.problems import (
    ACCESS_DENIED,
    INVALID_CLIENT,
    INVALID_REDIRECT_URI,
    INVALID_REQUEST,
)
from holdfast.accounts.oauth.terms import AUTHORIZE, Terms
from holdfast.accounts.sessions import Session
from holdfast.kit.database import Database
from holdfast.kit.handler import Reply, Request
from holdfast.kit.limits import Limits
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import redirect
from holdfast.kit.problems import Problem

_TOLD = frozenset({INVALID_CLIENT, INVALID_REDIRECT_URI, INVALID_REQUEST})
"""Problems of which the person is told: they cannot be told to the client."""


def routes(database: Database[Any], terms: Terms, clients: Clients, door: Door, limits: Limits) -> list[BaseRoute]:
    """The route of the page."""
    page = ConsentPage(database, terms, clients, door, limits)
    return [door.route(AUTHORIZE, "authorize", page.answer, "POST")]


class ConsentPage:
    """Asks somebody who is signed in whether a client may act for them."""

    def __init__(self, database: Database[Any], terms: Terms, clients: Clients, door: Door, limits: Limits) -> None:
        self._database = database
        self._terms = terms
        self._clients = clients
        self._door = door
        self._limits = limits

    async def answer(self, session: Session, request: Request) -> Reply:
        """Ask; or do what the form says."""
        site = self._terms.site
        try:
            wanted = await asked(self._terms, self._clients, pages.query_of(request), session.account_id)
        except Answered as refused:
            return pages.told(site, refused.problem, request, back=refused.address)
        except Problem as problem:
            if problem.type not in _TOLD:
                raise
            return pages.told(site, problem, request)
        if hindrance := pages.hindrance(site, session, request):
            return hindrance
        if request.method != "POST":
            return self._consent(session, request, wanted)
        fields = await self._door.read(session, request)
        match fields.get("decision"):
            case "allow":
                return await self._allow(session, request, wanted)
            case "refuse":
                return redirect(refusal(self._terms, wanted.redirect_uri, wanted.state, ACCESS_DENIED()))
            case _:
                return self._consent(session, request, wanted, 422)

    async def _allow(self, session: Session, request: Request, wanted: Asked) -> Reply:
        await self._limits.hit(CONSENTS, f"account {session.account_id}")
        tenant_id = session.account.tenant_id
        assert tenant_id is not None
        allowed = Allowed(
            session.id,
            session.account_id,
            tenant_id,
            wanted.client.id,
            wanted.scopes,
            wanted.redirect_uri,
            wanted.challenge,
        )
        try:
            code = await self._database.transact(lambda tx: grants.allow(tx, allowed))
        except Problem as problem:
            if problem.type is not INVALID_CLIENT:
                raise
            return pages.told(self._terms.site, problem, request)
        if code is None:
            return redirect(back_to(SIGN_IN, request))
        return redirect(answer(self._terms, wanted, code))

    def _consent(self, session: Session, request: Request, wanted: Asked, status: int = 200) -> Reply:
        return pages.page(
            self._terms.site,
            "oauth/consent.html",
            status,
            request,
            forms=redirects.source(wanted.redirect_uri),
            client=wanted.client,
            target=redirects.target(wanted.redirect_uri),
            meanings=self._terms.meanings(wanted.scopes, language_of(request)),
            email=session.email,
            token=self._door.token(session),
            action=pages.action(request),
        )
