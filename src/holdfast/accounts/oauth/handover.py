"""The page `/oauth/authorize` on behalf of another authorization server.

It sends people here to sign in and to consent. It is shown a trusted-auth token that says who they are, and told what
they decided; the code and the tokens are its own.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from starlette.routing import BaseRoute

from holdfast.accounts.door import Door
from holdfast.accounts.oauth import pages, redirects, trusted_auth
from holdfast.accounts.oauth.another_server import AnotherServer, Wanted
from holdfast.accounts.oauth.limits import DOCUMENTS
from holdfast.accounts.oauth.model import CHALLENGE, LONGEST_NAME, Client
from holdfast.accounts.oauth.problems import INVALID_CLIENT, INVALID_REDIRECT_URI, INVALID_REQUEST
from holdfast.accounts.oauth.terms import AUTHORIZE, Terms
from holdfast.accounts.sessions import Session
from holdfast.kit.database import Database
from holdfast.kit.handler import Reply, Request
from holdfast.kit.limits import Limits
from holdfast.kit.mail import plain
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import redirect
from holdfast.kit.problems import Problem

_TOLD = frozenset({INVALID_CLIENT, INVALID_REDIRECT_URI, INVALID_REQUEST})


def routes(database: Database[Any], terms: Terms, server: AnotherServer, door: Door, limits: Limits) -> list[BaseRoute]:
    """The route of the page."""
    return [door.route(AUTHORIZE, "authorize", Handover(database, terms, server, door, limits).answer, "POST")]


class Handover:
    """Asks somebody who is signed in whether a client of another server may act for them, and tells that server."""

    def __init__(
        self, database: Database[Any], terms: Terms, server: AnotherServer, door: Door, limits: Limits
    ) -> None:
        self._database = database
        self._terms = terms
        self._server = server
        self._door = door
        self._limits = limits

    async def answer(self, session: Session, request: Request) -> Reply:
        """Ask; or do what the form says."""
        site = self._terms.site
        if hindrance := pages.hindrance(site, session, request):
            return hindrance
        try:
            wanted = forwarded(pages.query_of(request))
            fields = await self._door.read(session, request) if request.method == "POST" else {}
            await self._limits.hit(DOCUMENTS, f"account {session.account_id}")
            return await self._ask(session, request, wanted, fields.get("decision"))
        except Problem as problem:
            if problem.type not in _TOLD:
                raise
            return pages.told(site, problem, request)

    async def _ask(self, session: Session, request: Request, wanted: Mapping[str, Any], decision: str | None) -> Reply:
        trusted = await self._database.transact(
            lambda tx: trusted_auth.token(tx, session, self._terms.issuer, self._server.audience)
        )
        there = await self._server.begin(trusted)
        preview = await self._server.preview(there, {name: wanted[name] for name in PREVIEWED if name in wanted})
        grantable = [each for each in preview.scope_results if each.is_grantable]
        redirect_uri = wanted["redirect_uri"]
        if decision not in {"allow", "refuse"}:
            return pages.page(
                self._terms.site,
                "oauth/consent.html",
                422 if request.method == "POST" else 200,
                request,
                forms=redirects.source(redirect_uri),
                client=Client(wanted["client_id"], _shown(preview.client.client_name), [redirect_uri]),
                target=redirects.target(redirect_uri),
                meanings=self._meanings(grantable, request),
                email=session.email,
                token=self._door.token(session),
                action=pages.action(request),
            )
        scopes = [each.scope for each in grantable]
        address = await self._server.decide(there, wanted, scopes, allowed=decision == "allow")
        if _place(address) != _place(redirect_uri):
            raise INVALID_REDIRECT_URI("The authorization server would send you elsewhere than the app asked.")
        return redirect(address)

    def _meanings(self, grantable: Sequence[Wanted], request: Request) -> Sequence[str]:
        ours = self._terms.scopes
        return [
            self._terms.meanings([each.scope], language_of(request))[0]
            if each.scope in ours
            else plain(each.description)
            for each in grantable
        ]


PREVIEWED = ("client_id", "redirect_uri", "response_type", "scopes", "prompt")
"""The parameters that decide whether a request can be answered."""


def forwarded(query: Mapping[str, str]) -> dict[str, Any]:
    """What the other server is told of a request. Raises a `Problem` for what must not be passed on."""
    if not query.get("client_id"):
        raise INVALID_CLIENT("The request names no client.", hint="Start again in the app.")
    if not redirects.is_acceptable(query.get("redirect_uri", "")):
        raise INVALID_REDIRECT_URI()
    if query.get("response_type") != "code":
        raise INVALID_REQUEST("response_type must be code.")
    if query.get("code_challenge_method") != "S256" or not CHALLENGE.fullmatch(query.get("code_challenge", "")):
        raise INVALID_REQUEST("There is no code challenge, or not one of the method S256.")
    known = ("client_id", "redirect_uri", "response_type", "prompt", "state", "nonce", "code_challenge")
    request: dict[str, Any] = {name: query[name] for name in known if name in query}
    request["scopes"] = query.get("scope", "").split()
    if "resource" in query:
        request["resources"] = [query["resource"]]
    return request


def _place(address: str) -> tuple[str, str, str]:
    """Where an address leads, whatever is in its query."""
    parts = urlsplit(address)
    return parts.scheme, parts.netloc, parts.path or "/"


def _shown(name: str) -> str | None:
    return plain(name)[:LONGEST_NAME].strip() or None
