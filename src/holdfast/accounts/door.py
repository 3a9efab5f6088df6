"""Pages for people who are signed in. Others are asked to sign in first, and then come back."""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlencode

from starlette.routing import Route

from holdfast.accounts.sessions import Session, Sessions
from holdfast.kit.caller import Caller
from holdfast.kit.handler import Access, Handler, Reply, Request, anonymous
from holdfast.kit.limits import Limits
from holdfast.kit.pages.forms import FormTokens, read_form, require_same_site
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import Site, redirect
from holdfast.kit.problems import FORBIDDEN
from holdfast.kit.secrets import Secret

SIGN_IN = "/sign-in"

Answer = Callable[[Session, Request], Awaitable[Reply]]


class Door:
    """Makes the routes of pages for people who are signed in.

    first    the path where somebody has to go before any other page; None: nowhere
    """

    def __init__(
        self,
        sessions: Sessions,
        site: Site,
        limits: Limits,
        secret: Secret,
        base_url: str,
        first: Callable[[Session], str | None],
    ) -> None:
        self.sessions = sessions
        self.site = site
        self._limits = limits
        self._tokens = FormTokens(secret.signer("forms of sessions"))
        self._base_url = base_url
        self._first = first

    def route(
        self, path: str, name: str, answer: Answer, *methods: str, limit: str | None = None, at_once: bool = False
    ) -> Route:
        """The route of a page. `answer` answers GET, and the methods.

        at_once    whether the page can be opened also by those who have to go somewhere else first
        """

        async def answered(_: Caller, request: Request) -> Reply:
            session = await self.sessions.of(request)
            if session is None:
                return redirect(back_to(SIGN_IN, request))
            if not at_once and (first := self._first(session)):
                return redirect(back_to(first, request))
            return await answer(session, request)

        every = ("GET", "HEAD", *methods)
        access = Access(name, None, limit)
        handler = Handler(
            access, self._limits, answered, self.site.refuse, methods=every, authenticate=self._authenticate
        )
        return Route(path, handler, methods=every)

    async def _authenticate(self, request: Request) -> Caller:
        session = await self.sessions.of(request)
        return (session and session.caller) or await anonymous(request)

    def token(self, session: Session) -> str:
        """The token for the forms that are shown in a session."""
        return self._tokens.issue(f"session {session.id}")

    async def read(self, session: Session, request: Request) -> dict[str, str]:
        """The fields of a form. Raises `forbidden` if another site sent it, or if it was shown in another session."""
        require_same_site(request, self._base_url)
        fields = await read_form(request)
        # However old the form is, it can be sent while the session lasts.
        if self._tokens.check(f"session {session.id}", fields.pop("token", "")) == "forged":
            raise FORBIDDEN("This form was shown to somebody else.", hint="Open the page again and send its form.")
        return fields

    def page(self, session: Session, request: Request, template: str, status: int = 200, **values: Any) -> Reply:
        """A page for somebody who is signed in. Its template has their `email`, and the `token` of its forms."""
        language = language_of(request)
        return self.site.page(
            template, status, language=language, email=session.email, token=self.token(session), **values
        )


def back_to(path: str, request: Request) -> str:
    """The address of a page that leads back to the one that was asked for."""
    query = request.query.decode("latin-1")
    return f"{path}?{urlencode({'return_to': request.path + (f'?{query}' if query else '')})}"


def local(path: str) -> str:
    """A path of this site; empty if a browser could take the text for the address of another one."""
    fits = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isascii() and path.isprintable()
    return path if fits and "\\" not in path and len(path) <= 8_000 else ""
