"""Pages for people who are signed in. Others are asked to sign in first, and then come back."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from starlette.routing import Route

from holdfast.accounts.entrance import Entrance, back_to
from holdfast.accounts.sessions import Session
from holdfast.kit.caller import Caller
from holdfast.kit.handler import Access, Handler, Reply, Request, anonymous
from holdfast.kit.limits import Limits
from holdfast.kit.pages.files import Bounds, Take, read_files
from holdfast.kit.pages.forms import ANOTHERS_FORM, FormTokens, read_form, require_same_site
from holdfast.kit.pages.site import Site, redirect
from holdfast.kit.problems import Problem
from holdfast.kit.secrets import Secret

Answer = Callable[[Session, Request], Awaitable[Reply]]


class Door:
    """Makes the routes of pages for people who are signed in.

    entrance   finds who is signed in, and says how pages are shown
    first      the path where somebody has to go before any other page; None: nowhere
    scripts    files of the site that run on pages with a button to sign out
    """

    def __init__(
        self,
        entrance: Entrance,
        site: Site,
        limits: Limits,
        secret: Secret,
        base_url: str,
        first: Callable[[Session], str | None],
        scripts: Sequence[str] = (),
    ) -> None:
        self.entrance = entrance
        self.sessions = entrance.sessions
        self.site = site
        self._limits = limits
        self._tokens = FormTokens(secret.signer("forms of sessions"))
        self._base_url = base_url
        self._first = first
        self._scripts = scripts

    def route(
        self, path: str, name: str, answer: Answer, *methods: str, limit: str | None = None, at_once: bool = False
    ) -> Route:
        """The route of a page. `answer` answers GET, and the methods.

        at_once    whether the page can be opened also by those who have to go somewhere else first
        """

        async def answered(_: Caller, request: Request) -> Reply:
            if reply := await self.entrance.arrive(request):
                return reply
            session = await self.entrance.find(request)
            if session is None:
                return await self.entrance.ask(request)
            if not at_once and (first := self._first(session)):
                return self.to(request, back_to(first, request))
            return await answer(session, request)

        every = ("GET", "HEAD", *methods)
        access = Access(name, None, limit)
        handler = Handler(access, self._limits, answered, self.refuse, methods=every, authenticate=self._authenticate)
        return Route(path, handler, methods=every)

    async def _authenticate(self, request: Request) -> Caller:
        session = await self.entrance.find(request)
        return (session and session.caller) or await anonymous(request)

    def token(self, session: Session) -> str:
        """The token for the forms that are shown in a session."""
        return self._tokens.issue(f"session {session.id}")

    async def read(self, session: Session, request: Request) -> dict[str, str]:
        """The fields of a form.

        Raises `foreign_form` if another site sent it, and `anothers_form` if it was shown in another session.
        """
        require_same_site(request, self._base_url)
        fields = await read_form(request)
        self._require_own(session, fields)
        return _without_token(fields)

    async def read_files(self, session: Session, request: Request, bounds: Bounds, take: Take) -> dict[str, str]:
        """The same for a form with files, which `take` is told. The token stands before them.

        A form that is refused may have told some of its files before.
        """
        require_same_site(request, self._base_url)
        fields = await read_files(request, bounds, lambda fields: self._require_own(session, fields), take)
        return _without_token(fields)

    def _require_own(self, session: Session, fields: Mapping[str, str]) -> None:
        # However old the form is, it can be sent while the session lasts.
        if self._tokens.check(f"session {session.id}", fields.get("token", "")) == "forged":
            raise ANOTHERS_FORM()

    def page(self, session: Session, request: Request, template: str, status: int = 200, **values: Any) -> Reply:
        """A page for somebody who is signed in. Its template has `email`, `scripts`, and the `token` of forms."""
        shared: dict[str, Any] = {
            "email": session.email,
            "token": self.token(session),
            "scripts": self._scripts,
        }
        return self.shown(request, template, status, **{**shared, **values})

    def shown(self, request: Request, template: str, status: int = 200, **values: Any) -> Reply:
        """A page for anybody, shown where the answer to a request is shown."""
        shown = self.entrance.shown(request)
        more: dict[str, Any] = {"query": request.query, **shown.values, **values}
        return self.site.page(
            template,
            status,
            language=shown.language,
            ancestors=shown.ancestors,
            programs=shown.programs,
            **more,
        )

    def to(self, request: Request, path: str) -> Reply:
        """A redirect to a path of this site."""
        return redirect(path, ancestors=self.entrance.shown(request).ancestors)

    def refuse(self, problem: Problem, request: Request) -> Reply:
        """The page for a problem."""
        shown = self.entrance.shown(request)
        return self.site.refuse(problem, request, ancestors=shown.ancestors, language=shown.language, home=shown.home)


def _without_token(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in fields.items() if name != "token"}
