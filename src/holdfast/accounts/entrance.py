"""How people come in, and where they see the pages: in a window of their own, unless a service says otherwise."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from holdfast.accounts.sessions import Session, Sessions
from holdfast.kit.handler import Reply, Request
from holdfast.kit.pages.language import Language, language_of
from holdfast.kit.pages.site import redirect

SIGN_IN = "/sign-in"


class Shown(Struct, frozen=True):
    """How a page is shown.

    ancestors    the sites that may show it in a frame, as `frame-ancestors` of a policy has them; empty: none
    programs     the origin of scripts that it loads from elsewhere
    home         where a page leads that says what went wrong
    values       further values for its template
    """

    language: Language
    ancestors: str = ""
    programs: str = ""
    home: str = "/"
    values: Mapping[str, Any] = {}


class Entrance:
    """Finds who is signed in by a cookie, and sends others to the page to sign in."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions

    def shown(self, request: Request) -> Shown:
        """How the answer to a request is shown."""
        return Shown(language_of(request))

    async def arrive(self, request: Request) -> Reply | None:
        """What is answered to somebody who comes with a proof of who they are; None for everybody else."""
        return None

    async def find(self, request: Request) -> Session | None:
        """Who is signed in in the browser that sent a request."""
        return await self.sessions.of(request)

    async def ask(self, request: Request) -> Reply:
        """What is answered to somebody who is not signed in."""
        return redirect(back_to(SIGN_IN, request))


def back_to(path: str, request: Request) -> str:
    """The address of a page that leads back to the one that was asked for."""
    query = request.query.decode("latin-1")
    return f"{path}?{returning(request.path + (f'?{query}' if query else ''))}"


def returning(path: str) -> str:
    """The query that leads back to a path; empty for none."""
    return urlencode({"return_to": path} if path else {})


def local(path: str) -> str:
    """A path of this site; empty if a browser could take the text for the address of another one."""
    fits = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isascii() and path.isprintable()
    return path if fits and "\\" not in path and len(path) <= 8_000 else ""
