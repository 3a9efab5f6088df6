"""Finds the session of a request, and how its page is shown: in a window of its own, unless a service overrides it."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from holdfast.accounts.sessions import Session, Sessions
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.http.query_parameters import known_parameters
from holdfast.kit.pages.language import Language, language_of
from holdfast.kit.pages.site import Site, redirect

SIGN_IN = "/sign-in"
ACCOUNT = "/account"


class PageContext(Struct, frozen=True):
    """How a page is shown.

    ancestors    the sites that may show it in a frame, as in the directive `frame-ancestors` of a policy; empty: none
    programs     the other origin that its scripts may come from
    home         the path to which an error page links
    values       further values for its template
    """

    language: Language
    ancestors: str = ""
    programs: str = ""
    home: str = "/"
    values: Mapping[str, Any] = {}


class SessionGate:
    """Finds the session of a request by its cookie, and redirects other visitors to the sign-in page."""

    def __init__(self, sessions: Sessions, site: Site) -> None:
        self.sessions = sessions
        self.site = site

    def page_context(self, request: Request) -> PageContext:
        """Return how the answer to a request is shown."""
        return PageContext(language_of(request))

    async def arrive(self, request: Request) -> Reply | None:
        """Return the answer to a request that proves the identity of its sender; None for all other requests."""
        return None

    async def find(self, request: Request) -> Session | None:
        """Return the session of the browser that sent a request; None if it has none."""
        return await self.sessions.of(request)

    async def ask(self, request: Request) -> Reply:
        """Return the answer for a visitor who is not signed in."""
        return redirect(address_with_return(SIGN_IN, request, self.site))


def address_with_return(path: str, request: Request, site: Site) -> str:
    """Return the address of a page that leads back to the requested one, with the known parameters of its query."""
    query = known_parameters(request.query, {*site.parameters, "lang"}).decode("latin-1")
    return f"{path}?{return_query(request.path + (f'?{query}' if query else ''))}"


def return_query(path: str) -> str:
    """Return the query that leads back to a path; empty for an empty path."""
    return urlencode({"return_to": path} if path else {})


def local_path(path: str) -> str:
    """Return the text if it is a path of this site; empty if a browser could read it as the address of another site."""
    fits = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isascii() and path.isprintable()
    return path if fits and "\\" not in path and len(path) <= 8_000 else ""
