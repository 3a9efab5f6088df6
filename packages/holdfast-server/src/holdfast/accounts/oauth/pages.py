"""Functions for the pages at `/oauth/authorize`, of the built-in authorization server and of another one."""

from typing import Any

from holdfast.accounts import AUTHORIZATION_PARAMETERS
from holdfast.accounts.oauth import redirects
from holdfast.accounts.oauth.problems import INVALID_REQUEST, UNREADABLE
from holdfast.accounts.oauth.terms import AUTHORIZE
from holdfast.accounts.sessions import Session
from holdfast.accounts.signed_in_pages import SIGN_IN, address_with_return
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.handler import Reply, Request, headers_of, read_query
from holdfast.kit.http.query_parameters import known_parameters
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import Site


def query_of(request: Request) -> dict[str, str]:
    """Return the parameters of an authorization request. Raises `invalid_request`."""
    try:
        return read_query(request.query)
    except Problem as problem:
        if problem.type not in UNREADABLE:
            raise
        raise INVALID_REQUEST(problem.message, hint="Start again in the app.") from problem


def action(request: Request) -> str:
    """Return the address for the form of a page: the page itself, with the known parameters of its query."""
    return f"{AUTHORIZE}?{known_parameters(request.query, {*AUTHORIZATION_PARAMETERS, 'lang'}).decode('latin-1')}"


def page(site: Site, template: str, status: int, request: Request, **values: Any) -> Reply:
    """Return a page. Its links to other languages keep the query of the request."""
    return site.page(template, status, language=language_of(request), query=request.query, **values)


def problem_page(site: Site, problem: Problem, request: Request, *, back: str = "") -> Reply:
    """Return the page for an invalid request. `back`: the address that reports the problem to the client."""
    values: dict[str, Any] = {"problem": problem, "back": back, "target": redirects.target(back) if back else None}
    return page(site, "oauth/unanswered.html", problem.status, request, headers=headers_of(problem), **values)


def ineligibility_page(site: Site, session: Session, request: Request) -> Reply | None:
    """Return the page that says why a person cannot let any client act for them; None if the person can."""
    if not session.is_proved:
        # Any visitor can register an address with a password. Consent must come from the owner of the address.
        again = address_with_return(SIGN_IN, request, site)
        return page(site, "oauth/unproved.html", 403, request, email=session.email, again=again)
    if session.account.tenant_id is None:
        return page(site, "oauth/no_tenant.html", 403, request, email=session.email)
    return None
