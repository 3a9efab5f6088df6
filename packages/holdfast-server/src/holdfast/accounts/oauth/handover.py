"""The page `/oauth/authorize` on behalf of another authorization server.

The other server sends people to this page to sign in and to consent. This service sends the other server a trusted-auth
token that identifies the person, and the decision. The other server issues the code and the tokens.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from starlette.routing import BaseRoute

from holdfast.accounts.oauth import pages, redirects, trusted_auth
from holdfast.accounts.oauth.another_server import AnotherServer, RequestedScope
from holdfast.accounts.oauth.limits import DOCUMENTS
from holdfast.accounts.oauth.model import CHALLENGE, MAX_NAME_CHARS, Client
from holdfast.accounts.oauth.problems import INVALID_CLIENT, INVALID_REDIRECT_URI, INVALID_REQUEST
from holdfast.accounts.oauth.terms import AUTHORIZE, Terms
from holdfast.accounts.sessions import Session
from holdfast.accounts.signed_in_pages import SignedInPages
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.mail.message import header_text
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import redirect
from holdfast.kit.postgres.database import Database
from holdfast.kit.running.rate_limits import Limits

_SHOWN_TO_PERSON = frozenset({INVALID_CLIENT, INVALID_REDIRECT_URI, INVALID_REQUEST})


def routes(
    database: Database[Any], terms: Terms, server: AnotherServer, signed_in: SignedInPages, limits: Limits
) -> list[BaseRoute]:
    """The route of the page."""
    return [
        signed_in.route(AUTHORIZE, "authorize", Handover(database, terms, server, signed_in, limits).answer, "POST")
    ]


class Handover:
    """Asks a signed-in person whether a client of another server may act for them, and reports to that server."""

    def __init__(
        self, database: Database[Any], terms: Terms, server: AnotherServer, signed_in: SignedInPages, limits: Limits
    ) -> None:
        self._database = database
        self._terms = terms
        self._server = server
        self._signed_in = signed_in
        self._limits = limits

    async def answer(self, session: Session, request: Request) -> Reply:
        """Show the consent form, or execute the decision in the form."""
        site = self._terms.site
        if error_page := pages.ineligibility_page(site, session, request):
            return error_page
        try:
            parameters = parameters_to_forward(pages.query_of(request))
            fields = await self._signed_in.read(session, request) if request.method == "POST" else {}
            await self._limits.hit(DOCUMENTS, f"account {session.account_id}")
            return await self._show_or_decide(session, request, parameters, fields.get("decision"))
        except Problem as problem:
            if problem.type not in _SHOWN_TO_PERSON:
                raise
            return pages.problem_page(site, problem, request)

    async def _show_or_decide(
        self, session: Session, request: Request, parameters: Mapping[str, Any], decision: str | None
    ) -> Reply:
        """Show the form; or, with a decision, send it to the other server and redirect the person."""
        trusted = await self._database.transact(
            lambda tx: trusted_auth.token(tx, session, self._terms.issuer, self._server.audience)
        )
        session_token = await self._server.begin(trusted)
        preview = await self._server.preview(
            session_token, {name: parameters[name] for name in PREVIEW_PARAMETERS if name in parameters}
        )
        grantable = [result for result in preview.scope_results if result.is_grantable]
        redirect_uri = parameters["redirect_uri"]
        if decision not in {"allow", "refuse"}:
            return pages.page(
                self._terms.site,
                "oauth/consent.html",
                422 if request.method == "POST" else 200,
                request,
                forms=redirects.form_action_source(redirect_uri),
                client=Client(parameters["client_id"], _plain_name(preview.client.client_name), [redirect_uri]),
                target=redirects.target(redirect_uri),
                meanings=self._meanings(grantable, request),
                email=session.email,
                token=self._signed_in.token(session),
                action=pages.action(request),
            )
        scopes = [result.scope for result in grantable]
        address = await self._server.decide(session_token, parameters, scopes, allowed=decision == "allow")
        if _destination(address) != _destination(redirect_uri):
            raise INVALID_REDIRECT_URI("The authorization server would send you elsewhere than the app asked.")
        return redirect(address)

    def _meanings(self, grantable: Sequence[RequestedScope], request: Request) -> Sequence[str]:
        ours = self._terms.scopes
        return [
            self._terms.meanings([result.scope], language_of(request))[0]
            if result.scope in ours
            else header_text(result.description)
            for result in grantable
        ]


PREVIEW_PARAMETERS = ("client_id", "redirect_uri", "response_type", "scopes", "prompt")
"""The parameters that the other server checks before the person is asked."""


def parameters_to_forward(query: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters of a request for the other server. Raises a `Problem` if it must not be passed on."""
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


def _destination(address: str) -> tuple[str, str, str]:
    """Return scheme, host and path of an address, without its query."""
    parts = urlsplit(address)
    return parts.scheme, parts.netloc, parts.path or "/"


def _plain_name(name: str) -> str | None:
    return header_text(name)[:MAX_NAME_CHARS].strip() or None
