"""What the pages at `/oauth/authorize` have in common, whoever is the authorization server."""

from typing import Any

from holdfast.accounts.entrance import SIGN_IN, back_to
from holdfast.accounts.oauth import redirects
from holdfast.accounts.oauth.problems import INVALID_REQUEST, UNREADABLE
from holdfast.accounts.oauth.terms import AUTHORIZE
from holdfast.accounts.sessions import Session
from holdfast.kit.handler import Reply, Request, headers_of, read_query
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import Site
from holdfast.kit.problems import Problem


def query_of(request: Request) -> dict[str, str]:
    """The parameters of an authorization request. Raises `invalid_request`."""
    try:
        return read_query(request.query)
    except Problem as problem:
        if problem.type not in UNREADABLE:
            raise
        raise INVALID_REQUEST(problem.message, hint="Start again in the app.") from problem


def action(request: Request) -> str:
    """Where the form of a page is sent: to the page itself, with its query as it is."""
    return f"{AUTHORIZE}?{request.query.decode('latin-1')}"


def page(site: Site, template: str, status: int, request: Request, **values: Any) -> Reply:
    """A page. Links to it in other languages keep what is asked for."""
    return site.page(template, status, language=language_of(request), query=request.query, **values)


def told(site: Site, problem: Problem, request: Request, *, back: str = "") -> Reply:
    """The page that says why a client cannot ask. `back`: the address that tells it so."""
    values: dict[str, Any] = {"problem": problem, "back": back, "target": redirects.target(back) if back else None}
    return page(site, "oauth/unanswered.html", problem.status, request, headers=headers_of(problem), **values)


def hindrance(site: Site, session: Session, request: Request) -> Reply | None:
    """The page that says why somebody cannot let any client act for them; None if they can."""
    if not session.is_proved:
        # Anybody can register an address with a password. What is allowed must be allowed by its owner.
        again = back_to(SIGN_IN, request)
        return page(site, "oauth/unproved.html", 403, request, email=session.email, again=again)
    if session.account.tenant_id is None:
        return page(site, "oauth/no_tenant.html", 403, request, email=session.email)
    return None
