"""Pages for signed-in people: the session of a request, and the routes of pages. Others sign in first.

A page calls the operations of the API as the signed-in person. So it can do what the API can, and no more.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from holdfast.accounts.sessions import Session, Sessions
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, Problem
from holdfast.kit.http.answers import known_parameters
from holdfast.kit.http.handler import Access, Handler, Reply, Request, anonymous
from holdfast.kit.http.index import Route
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.pages.form_files import FileLimits, TakeFile, read_files
from holdfast.kit.pages.forms import ANOTHERS_FORM, FormTokens, read_form, require_same_site
from holdfast.kit.pages.language import Language, language_of
from holdfast.kit.pages.site import NavigationEntry, Site, redirect
from holdfast.kit.security.service_secret import Secret

SIGN_IN = "/sign-in"
ACCOUNT = "/account"


class PageContext(Struct, frozen=True):
    """How a page is shown.

    ancestors        the sites that may show it in a frame, for `frame-ancestors` of the policy; empty: none
    script_source    the other origin that its scripts may come from
    home             the path to which an error page links
    values           further values for its template
    """

    language: Language
    ancestors: str = ""
    script_source: str = ""
    home: str = "/"
    values: Mapping[str, Any] = {}


class SessionGate:
    """Finds the session of a request by its cookie, and redirects other visitors to the sign-in page."""

    def __init__(self, sessions: Sessions, site: Site) -> None:
        self.sessions = sessions
        self.site = site

    def page_context(self, request: Request) -> PageContext:
        """How the answer to a request is shown."""
        return PageContext(language_of(request))

    async def answer_identity_proof(self, request: Request) -> Reply | None:
        """The answer to a request that proves the identity of its sender; None for all other requests."""
        return None

    async def find(self, request: Request) -> Session | None:
        """The session of the browser that sent a request; None if it has none."""
        return await self.sessions.find_by_request(request)

    async def answer_stranger(self, request: Request) -> Reply:
        """The answer for a visitor who is not signed in."""
        return redirect(address_with_return(SIGN_IN, request, self.site))


def address_with_return(path: str, request: Request, site: Site) -> str:
    """The address of a page that leads back to the requested one, with the known parameters of its query."""
    query = known_parameters(request.query, {*site.parameters, "lang"}).decode("latin-1")
    return f"{path}?{return_query(request.path + (f'?{query}' if query else ''))}"


def return_query(path: str) -> str:
    """The query that leads back to a path; empty for an empty path."""
    return urlencode({"return_to": path} if path else {})


def local_path(path: str) -> str:
    """The text if it is a path of this site; empty if a browser could read it as the address of another site."""
    fits = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isascii() and path.isprintable()
    return path if fits and "\\" not in path and len(path) <= 8_000 else ""


Answer = Callable[[Session, Request], Awaitable[Reply]]

TIMES_SCRIPT = "times.js"
"""The file that writes moments in the zone of the browser. It runs on every page for signed-in people."""

FILE_FIELD_SCRIPT = "file_field.js"
"""The file that writes the name of a chosen file beside the button of a file field."""

_SESSION = "holdfast.session"
"""The name of the session of a request in its scope."""


class SignedInPages:
    """Makes the routes of pages for signed-in people.

    gate                finds the session of a request, and how its page is shown
    home                the path to which a person is sent who signs in without a target
    navigation          returns the navigation of a session: its entries by path
    account_template    what the service adds to the page of the account; it has the variable `account`
    first_page          returns the path that a session has to visit before any other page; None: there is none
    hint_template       what the service says about who can sign in; it has the variables `link_status`, which is empty
                        on the form, `email` and `is_unbound`. Without it the service says nothing
    scripts             files of the site that run on pages with a button to sign out
    """

    def __init__(
        self,
        gate: SessionGate,
        site: Site,
        limits: Limits,
        secret: Secret,
        base_url: str,
        *,
        home: str,
        navigation: Callable[[Session], Mapping[str, NavigationEntry]],
        account_template: str,
        first_page: Callable[[Session], str | None] = lambda _: None,
        hint_template: str = "",
        scripts: Sequence[str] = (),
    ) -> None:
        self.gate = gate
        self.sessions = gate.sessions
        self.site = site
        self.limits = limits
        self.secret = secret
        self.base_url = base_url
        self.home, self.account_template, self.hint_template = home, account_template, hint_template
        self._tokens = FormTokens(secret.own_signer("forms of sessions"))
        self._first_page = first_page
        self._navigation = navigation
        self._scripts = scripts

    def route(
        self,
        path: str,
        name: str,
        answer: Answer,
        *methods: str,
        limit: str | None = None,
        skips_first_page: bool = False,
    ) -> Route:
        """The route of a page. `answer` answers GET and `methods`.

        limit               the rate limit of `methods`, or of GET if there are no others. The GET of a page that has
                            others is not limited: an open page fetches itself again and again
        skips_first_page    whether the page opens even for a session that has to visit another page first
        """

        async def respond(_: Caller, request: Request) -> Reply:
            if reply := await self.gate.answer_identity_proof(request):
                return reply
            session = await self.gate.find(request)
            if session is None:
                return await self.gate.answer_stranger(request)
            if not skips_first_page and (first_path := self._first_page(session)):
                return self.redirect(request, address_with_return(first_path, request, self.site))
            return await answer(session, request)

        all_methods = ("GET", "HEAD", *methods)
        handler = Handler(
            Access(name, None, limit),
            self.limits,
            respond,
            self.refuse,
            methods=all_methods,
            authenticate=self._authenticate,
            reading=Access(name) if methods else None,
        )
        return Route(path, handler)

    def missing_route(self, path: str, name: str) -> Route:
        """The route of all other paths below one: there is no such page."""

        async def respond(_: Caller, request: Request) -> Reply:
            raise NOT_FOUND()

        handler = Handler(Access(name), self.limits, respond, self.refuse, authenticate=self._authenticate)
        return Route(f"{path}/{{path:path}}", handler)

    async def _authenticate(self, request: Request) -> Caller:
        session = await self.gate.find(request)
        request.scope[_SESSION] = session
        return (session and session.caller) or await anonymous(request)

    def token(self, session: Session) -> str:
        """The token for the forms that are shown in a session."""
        return self._tokens.issue(f"session {session.id}")

    async def read(self, session: Session, request: Request) -> dict[str, str]:
        """The fields of a form.

        Raises `foreign_form` if another site sent it, and `anothers_form` if it was shown in another session.
        """
        require_same_site(request, self.base_url)
        fields = await read_form(request)
        self._require_own_form(session, fields)
        return _without_token(fields)

    async def read_files(
        self, session: Session, request: Request, bounds: FileLimits, take: TakeFile
    ) -> dict[str, str]:
        """Read a form with files, which are passed to `take`. The token precedes the files.

        `take` may have got some files of a form that is then refused.
        """
        require_same_site(request, self.base_url)
        fields = await read_files(request, bounds, lambda fields: self._require_own_form(session, fields), take)
        return _without_token(fields)

    def _require_own_form(self, session: Session, fields: Mapping[str, str]) -> None:
        # A form never expires while its session lasts.
        if self._tokens.check(f"session {session.id}", fields.get("token", "")) == "forged":
            raise ANOTHERS_FORM()

    def page(self, session: Session, request: Request, template: str, status: int = 200, **values: Any) -> Reply:
        """A page for a signed-in person. Its template has the values of `console.html`, and `scripts`.

        The value `scripts` names further files of the site that run on the page; `here` is the path of the entry of
        the navigation that is marked.
        """
        shared = self._console_values(session)
        scripts = [*shared["scripts"], *values.pop("scripts", ())]
        return self.public_page(request, template, status, **{**shared, **values, "scripts": scripts})

    def _console_values(self, session: Session) -> dict[str, Any]:
        return {
            "email": session.email,
            "token": self.token(session),
            "scripts": [TIMES_SCRIPT, *self._scripts],
            "here": "",
            "navigation": self._navigation(session),
        }

    def public_page(self, request: Request, template: str, status: int = 200, **values: Any) -> Reply:
        """A page that needs no session, with the language, frame and values of the request."""
        context = self.gate.page_context(request)
        more: dict[str, Any] = {"query": request.query, **context.values, **values}
        return self.site.page(
            template,
            status,
            language=context.language,
            ancestors=context.ancestors,
            script_source=context.script_source,
            **more,
        )

    def redirect(self, request: Request, path: str) -> Reply:
        """A redirect to a path of this site."""
        return redirect(path, ancestors=self.gate.page_context(request).ancestors)

    def refuse(self, problem: Problem, request: Request) -> Reply:
        """The page for a problem. A signed-in person sees it inside the console."""
        context = self.gate.page_context(request)
        session: Session | None = request.scope.get(_SESSION)
        return self.site.refuse(
            problem,
            request,
            ancestors=context.ancestors,
            language=context.language,
            home=context.home,
            script_source=context.script_source,
            **context.values,
            **(self._console_values(session) if session else {}),
        )


def _without_token(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in fields.items() if name != "token"}
