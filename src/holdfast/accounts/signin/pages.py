"""Signing in and out: `/sign-in`, the page behind a link, `/sign-out`, and the list of one's sessions, `/account`.

The answer to an address is the same whether or not anybody has it. Following a link changes nothing: its page has a
button.
"""

from typing import Any, Literal

from starlette.routing import BaseRoute, Route

from holdfast.accounts import sessions
from holdfast.accounts.directory import Directory
from holdfast.accounts.door import Door
from holdfast.accounts.entrance import SIGN_IN, local, returning
from holdfast.accounts.limits import OF_A_CLIENT, OF_AN_ADDRESS
from holdfast.accounts.sessions import Session
from holdfast.accounts.signin import links
from holdfast.accounts.signin.links import AskLink, LookAtLink, SignedIn, Standing, UseLink
from holdfast.accounts.signin.mail import MINUTES
from holdfast.accounts.signin.operations import EndSessions, ListSessions, SignInOperations
from holdfast.accounts.signin.password import SignIn
from holdfast.kit.caller import NOBODY, Caller
from holdfast.kit.handler import Access, Handler, Header, Reply, Request, read_query
from holdfast.kit.limits import Limits
from holdfast.kit.pages.forms import FormTokens, read_form, require_same_site
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import redirect
from holdfast.kit.problems import BAD_REQUEST, NOT_FOUND, RATE_LIMITED, Problem
from holdfast.kit.runner import Runner
from holdfast.kit.secrets import Secret

BROWSER_SECONDS = 3600
KNOWN_SECONDS = 365 * 86_400

Notice = Literal["old", "malformed", "wrong", "crowded"]


class SignInPages:
    """Answers requests to sign in and out.

    home    where somebody goes who has signed in and had not wanted to go anywhere
    more    the template of what the service adds to the page of the account; it has the `account`
    """

    def __init__(
        self,
        operations: SignInOperations,
        directory: Directory,
        runner: Runner,
        limits: Limits,
        door: Door,
        secret: Secret,
        *,
        base_url: str,
        home: str,
        more: str,
    ) -> None:
        self._ask, self._look, self._use = runner[operations.ask], runner[operations.look], runner[operations.use]
        self._by_password, self._list = runner[operations.by_password], runner[operations.list]
        self._end = runner[operations.end]
        self._directory = directory
        self._limits = limits
        self._door = door
        self._sessions = door.sessions
        self._site = door.site
        self._secret = secret
        self._tokens = FormTokens(secret.signer("sign-in forms"))
        self._known = secret.signer("browsers that are known")
        self._base_url = base_url
        self._home, self._more = home, more

    def routes(self) -> list[BaseRoute]:
        def page(path: str, name: str, answer: Any) -> Route:
            methods = ("GET", "HEAD", "POST")
            handler = Handler(Access(name), self._limits, answer, self._site.refuse, methods=methods)
            return Route(path, handler, methods=methods)

        return [
            page(SIGN_IN, "sign_in", self.sign_in),
            Route(f"{SIGN_IN}/sent", Handler(Access("sign_in_sent"), self._limits, self.sent, self._site.refuse)),
            page(f"{SIGN_IN}/{{link}}", "sign_in_link", self.link),
            self._door.route("/sign-out", "sign_out", self.sign_out, "POST", at_once=True),
            self._door.route("/account", "account", self.account, "POST", at_once=True),
        ]

    async def sign_in(self, caller: Caller, request: Request) -> Reply:
        """Show the form, send a link to the address in it, or sign in with the password in it."""
        if request.method != "POST":
            return_to = local(read_query(request.query).get("return_to", ""))
            session = await self._sessions.of(request)
            if session and session.is_proved:
                return redirect(return_to or self._home)
            return self._form(request, {"return_to": return_to})
        require_same_site(request, self._base_url)
        fields = await read_form(request)
        if self._tokens.check("sign in", fields.get("token", "")) != "good":
            return self._form(request, fields, 422, notice="old")
        email = self._directory.canonical(fields.get("email", ""))
        if email is None:
            return self._form(request, fields, 422, notice="malformed")
        password = fields.get("password", "")
        try:
            await self._limits.hit(OF_A_CLIENT, caller.name)
            await self._limits.hit(
                OF_AN_ADDRESS, f"{'password' if password else 'link'} {email} {self._by(request, email)}"
            )
        except Problem as problem:
            if problem.type is not RATE_LIMITED:
                raise
            return self._form(request, fields, 429, notice="crowded")
        return_to = local(fields.get("return_to", ""))
        if not password:
            return await self._send(caller, request, email, return_to)
        called = request.headers.get(b"user-agent", b"").decode("latin-1")
        secret: str | None = await self._by_password(caller, SignIn(email=email, password=password, called=called))
        if secret is None:
            return self._form(request, fields, 422, notice="wrong")
        return self._enter(secret, email, return_to)

    async def sent(self, caller: Caller, request: Request) -> Reply:
        """Say that a mail is on its way."""
        return self._site.page("signin/sent.html", language=language_of(request), minutes=MINUTES)

    async def link(self, caller: Caller, request: Request) -> Reply:
        """Ask for a click, and sign in."""
        id = links.read(self._secret, request.scope["path_params"]["link"])
        if id is None:
            await self._limits.hit(OF_A_CLIENT, caller.name)
            raise NOT_FOUND()
        browser = sessions.digest(request.cookies.get(self._sessions.cookie_name("browser"), ""))
        if request.method != "POST":
            standing: Standing = await self._look(caller, LookAtLink(id=id, browser=browser))
            if standing.state == "used" and await self._sessions.of(request):
                return redirect(standing.return_to or self._home)
            return self._asked(request, standing, id)
        require_same_site(request, self._base_url)
        fields = await read_form(request)
        if self._tokens.check(f"link {id}", fields.get("token", "")) != "good":
            standing = await self._look(caller, LookAtLink(id=id, browser=browser))
            return self._asked(request, standing, id, 422)
        called = request.headers.get(b"user-agent", b"").decode("latin-1")
        done: SignedIn = await self._use(caller, UseLink(id=id, browser=browser, called=called))
        if done.state != "good":
            return self._asked(request, Standing(done.state, "", ""), id, 410)
        return self._enter(done.secret, done.email, done.return_to)

    async def sign_out(self, session: Session, request: Request) -> Reply:
        """End this session."""
        if request.method == "POST":
            await self._door.read(session, request)
            await self._end(session.caller or NOBODY, EndSessions(account_id=session.account_id, id=session.id))
            return self._left()
        return redirect("/account")

    async def account(self, session: Session, request: Request) -> Reply:
        """List the sessions of the account, and end one of them or all."""
        caller = session.caller or NOBODY
        if request.method == "POST":
            fields = await self._door.read(session, request)
            which = fields.get("session", "")
            if which == "all":
                await self._end(caller, EndSessions(account_id=session.account_id))
                return self._left()
            if not which.isascii() or not which.isdigit() or len(which) > 18:
                raise BAD_REQUEST("The form names no session.", hint="Open the page again.")
            await self._end(caller, EndSessions(account_id=session.account_id, id=int(which)))
            return redirect(language_of(request).at("/account"))
        found = await self._list(caller, ListSessions(account_id=session.account_id))
        return self._door.page(
            session,
            request,
            "signin/account.html",
            found=found,
            this=session.id,
            account=session.account,
            home=self._home,
            more=self._more,
        )

    async def _send(self, caller: Caller, request: Request, email: str, return_to: str) -> Reply:
        """Send a link that works in this browser."""
        language = language_of(request)
        name = self._sessions.cookie_name("browser")
        browser = request.cookies.get(name, "")
        if not sessions.is_secret(browser):  # what a browser sends may be no text for a header
            browser = sessions.new_secret()
        await self._ask(
            caller,
            AskLink(email=email, browser=sessions.digest(browser), return_to=return_to, language=language.code),
        )
        reply = redirect(language.at(f"{SIGN_IN}/sent"))
        return _with(reply, self._sessions.cookie("browser", browser, BROWSER_SECONDS))

    def _enter(self, secret: str, email: str, return_to: str) -> Reply:
        known = self._known.sign(email)
        return _with(
            redirect(local(return_to) or self._home),
            self._sessions.cookie("session", secret),
            self._sessions.cookie("known", known, KNOWN_SECONDS),
        )

    def _left(self) -> Reply:
        return _with(redirect("/"), self._sessions.cookie("session", "", 0))

    def _by(self, request: Request, email: str) -> str:
        """Whose limit counts: that of browsers in which the owner of an address has signed in, or that of others."""
        known = request.cookies.get(self._sessions.cookie_name("known"), "")
        return "owner" if self._known.accepts(email, known) else "others"

    def _form(
        self, request: Request, fields: dict[str, str], status: int = 200, *, notice: Notice | None = None
    ) -> Reply:
        return_to = local(fields.get("return_to", ""))
        return self._site.page(
            "signin/sign_in.html",
            status,
            language=language_of(request),
            query=returning(return_to).encode(),
            email=fields.get("email", "")[:300],
            return_to=return_to,
            with_password=bool(fields.get("password")),
            token=self._tokens.issue("sign in"),
            notice=notice,
        )

    def _asked(self, request: Request, standing: Standing, id: int, status: int = 200) -> Reply:
        return self._site.page(
            "signin/link.html",
            status,
            language=language_of(request),
            state=standing.state,
            email=standing.email if standing.state == "good" else "",
            path=f"{SIGN_IN}/{links.write(self._secret, id)}",
            token=self._tokens.issue(f"link {id}"),
            minutes=MINUTES,
        )


def _with(reply: Reply, *headers: Header) -> Reply:
    reply.headers = [*reply.headers, *headers]
    return reply
