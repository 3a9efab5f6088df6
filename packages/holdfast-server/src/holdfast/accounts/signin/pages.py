"""The pages of signing in and out: `/sign-in`, the page behind a link, `/sign-out`, and the sessions, `/account`.

The answer to an address is the same whether or not an account has it. Following a link changes nothing: its page has a
button.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from holdfast.accounts import sessions
from holdfast.accounts.directory import Directory
from holdfast.accounts.known_browsers import KNOWN_DAYS, GetKnownBrowser
from holdfast.accounts.sessions import Session
from holdfast.accounts.settings import LINKS_TO_ADDRESS, PASSWORDS_OF_ADDRESS, SIGN_INS_OF_CLIENT, SIGN_INS_OF_OWNER
from holdfast.accounts.signed_in_pages import (
    ACCOUNT,
    FILE_FIELD_SCRIPT,
    SIGN_IN,
    TIMES_SCRIPT,
    SignedInPages,
    local_path,
    return_query,
)
from holdfast.accounts.signin import links, operations
from holdfast.accounts.signin.links import GetSignInLink, LinkSignInResult, SendSignInLink, SignInLinkView, UseLink
from holdfast.accounts.signin.mail import MINUTES
from holdfast.accounts.signin.operations import (
    EndSessions,
    ListSessions,
    PasswordSignInResult,
    SignIn,
    SignInOperations,
)
from holdfast.kit.contract.addresses import mailbox
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import (
    BAD_REQUEST,
    NOT_FOUND,
    RATE_LIMITED,
    SERVICE_UNAVAILABLE,
    Problem,
    ProblemType,
)
from holdfast.kit.http.handler import Access, Handler, Header, Reply, Request, headers_of
from holdfast.kit.http.index import Route
from holdfast.kit.operations.runner import Runner
from holdfast.kit.pages.forms import FormTokens, read_form, require_same_site
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import redirect
from holdfast.kit.security.cookie_secrets import is_cookie_secret, new_cookie_secret

# A browser also names those that it is compatible with, so the order matters.
_BROWSERS = (
    ("Edge", re.compile(r"\bEdg(?:e|A|iOS)?/")),
    ("Opera", re.compile(r"\bOPR/|\bOpera\b")),
    ("Samsung Internet", re.compile(r"\bSamsungBrowser/")),
    ("Firefox", re.compile(r"\b(?:Firefox|FxiOS)/")),
    ("Chrome", re.compile(r"\b(?:Chrome|CriOS|HeadlessChrome|Chromium)/")),
    ("Safari", re.compile(r"\bVersion/\S+ .*\bSafari/")),
)
_SYSTEMS = (
    ("iPhone", re.compile(r"\biPhone\b")),
    ("iPad", re.compile(r"\biPad\b")),
    ("Android", re.compile(r"\bAndroid\b")),
    ("Windows", re.compile(r"\bWindows\b")),
    ("macOS", re.compile(r"\bMacintosh\b")),
    ("ChromeOS", re.compile(r"\bCrOS\b")),
    ("Linux", re.compile(r"\bLinux\b")),
)


class BrowserName(NamedTuple):
    """A browser and its system. Each is empty if it is unknown."""

    browser: str
    system: str


def browser_name(user_agent: str) -> BrowserName:
    """The names in a User-Agent, such as Firefox and Windows."""
    return BrowserName(
        next((name for name, pattern in _BROWSERS if pattern.search(user_agent)), ""),
        next((name for name, pattern in _SYSTEMS if pattern.search(user_agent)), ""),
    )


BROWSER_COOKIE_SECONDS = 3600
KNOWN_COOKIE_SECONDS = KNOWN_DAYS * 86_400

FormNotice = Literal["old", "malformed", "wrong", "crowded", "busy"]
TRY_LATER: Mapping[ProblemType, FormNotice] = {RATE_LIMITED: "crowded", SERVICE_UNAVAILABLE: "busy"}
"""What the form says about problems after which it can be sent again."""


class SignInPages:
    """Answers requests to sign in and out."""

    def __init__(
        self, operations: SignInOperations, directory: Directory, runner: Runner, signed_in: SignedInPages
    ) -> None:
        self._send_link, self._get_link = runner.run_of(operations.send_link), runner.run_of(operations.get_link)
        self._use_link, self._sign_in_by_password = (
            runner.run_of(operations.use_link),
            runner.run_of(operations.by_password),
        )
        self._get_known_browser = runner.run_of(operations.get_known_browser)
        self._list_sessions, self._end_sessions = (
            runner.run_of(operations.list_sessions),
            runner.run_of(operations.end_sessions),
        )
        self._directory = directory
        self._signed_in = signed_in
        self._limits = signed_in.limits
        self._sessions = signed_in.sessions
        self._site = signed_in.site
        self._secret = signed_in.secret
        self._tokens = FormTokens(signed_in.secret.own_signer("sign-in forms"))
        self._base_url = signed_in.base_url
        self._home = signed_in.home
        self._account_template, self._hint_template = signed_in.account_template, signed_in.hint_template

    def routes(self) -> list[Route]:
        def page(path: str, name: str, answer: Any) -> Route:
            methods = ("GET", "HEAD", "POST")
            handler = Handler(Access(name), self._limits, answer, self._site.refuse, methods=methods)
            return Route(path, handler)

        return [
            page(SIGN_IN, "sign_in", self.sign_in),
            Route(f"{SIGN_IN}/sent", Handler(Access("sign_in_sent"), self._limits, self.mail_sent, self._site.refuse)),
            page(f"{SIGN_IN}/{{link}}", "sign_in_link", self.link),
            *self._site.assets(TIMES_SCRIPT, FILE_FIELD_SCRIPT),
            self._signed_in.route("/sign-out", "sign_out", self.sign_out, "POST", skips_first_page=True),
            self._signed_in.route(ACCOUNT, "account", self.account, "POST", skips_first_page=True),
        ]

    async def sign_in(self, caller: Caller, request: Request) -> Reply:
        """Show the form, send a link to the address in it, or sign in with the password in it."""
        if request.method != "POST":
            return_to = local_path(self._site.read_query(request).get("return_to", ""))
            session = await self._sessions.find_by_request(request)
            if session and session.sign_in_way != "password":  # a session by password does not prove that mails arrive
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
        entered: PasswordSignInResult | None = None
        try:
            if password:
                # First, so that a try that is refused for this does not count.
                operations.require_capacity(caller)
            await self._limits.hit(SIGN_INS_OF_CLIENT, caller.name)
            # A password belongs to one address. Links to all tagged forms of an address reach the same person.
            limit, tried = (PASSWORDS_OF_ADDRESS, email) if password else (LINKS_TO_ADDRESS, mailbox(email))
            if await self._is_known_browser(caller, request, email):
                await self._limits.hit(SIGN_INS_OF_OWNER, f"{limit} {tried}")
            else:
                await self._limits.hit_shared(limit, tried, caller.name)
            if password:
                user_agent = request.headers.get(b"user-agent", b"").decode("latin-1")
                entered = await self._sign_in_by_password(
                    caller, SignIn(email=email, password=password, user_agent=user_agent)
                )
        except Problem as problem:
            notice = TRY_LATER.get(problem.type)
            if notice is None:
                raise
            return self._form(request, fields, problem.status, notice=notice, headers=headers_of(problem))
        return_to = local_path(fields.get("return_to", ""))
        if not password:
            return await self._answer_with_link(caller, request, email, return_to)
        if entered is None:
            return self._form(request, fields, 422, notice="wrong")
        return self._enter(entered.secret, entered.browser_secret, return_to)

    async def mail_sent(self, caller: Caller, request: Request) -> Reply:
        """Show that a mail is on its way."""
        return self._site.page("signin/sent.html", language=language_of(request), minutes=MINUTES)

    async def link(self, caller: Caller, request: Request) -> Reply:
        """Show a button, and sign in when it is pressed."""
        id = links.decode_token(self._secret, request.fields["link"])
        if id is None:
            await self._limits.hit(SIGN_INS_OF_CLIENT, caller.name)
            raise NOT_FOUND()
        browser = sessions.digest(request.cookies.get(self._sessions.cookie_name("browser"), ""))
        if request.method != "POST":
            link: SignInLinkView = await self._get_link(caller, GetSignInLink(id=id, browser=browser))
            if link.status == "used" and await self._sessions.find_by_request(request):
                return redirect(link.return_to or self._home)
            return self._link_page(request, link, id)
        require_same_site(request, self._base_url)
        fields = await read_form(request)
        if self._tokens.check(f"link {id}", fields.get("token", "")) != "good":
            link = await self._get_link(caller, GetSignInLink(id=id, browser=browser))
            return self._link_page(request, link, id, 422)
        user_agent = request.headers.get(b"user-agent", b"").decode("latin-1")
        language = language_of(request).code
        command = UseLink(id=id, browser=browser, user_agent=user_agent, language=language)
        result: LinkSignInResult = await self._use_link(caller, command)
        if result.status != "good":
            return self._link_page(request, SignInLinkView(result.status, result.email, "", result.is_unbound), id, 410)
        return self._enter(result.secret, result.browser_secret, result.return_to)

    async def sign_out(self, session: Session, request: Request) -> Reply:
        """End this session."""
        if request.method == "POST":
            await self._signed_in.read(session, request)
            await self._end_sessions(session.person, EndSessions(account_id=session.account_id, id=session.id))
            return self._signed_out()
        return redirect(ACCOUNT)

    async def account(self, session: Session, request: Request) -> Reply:
        """List the sessions of the account, or end one or all of them."""
        caller = session.person
        if request.method == "POST":
            fields = await self._signed_in.read(session, request)
            which = fields.get("session", "")
            if which == "all":
                await self._end_sessions(caller, EndSessions(account_id=session.account_id))
                return self._signed_out()
            if not which.isascii() or not which.isdigit() or len(which) > 18:
                raise BAD_REQUEST("The form names no session.", hint="Open the page again.")
            await self._end_sessions(caller, EndSessions(account_id=session.account_id, id=int(which)))
            return redirect(language_of(request).at(ACCOUNT))
        open_sessions = await self._list_sessions(caller, ListSessions(account_id=session.account_id))
        return self._signed_in.page(
            session,
            request,
            "signin/account.html",
            here=ACCOUNT,
            sessions=open_sessions,
            browser_name=browser_name,
            this=session.id,
            account=session.account,
            more=self._account_template,
        )

    async def _answer_with_link(self, caller: Caller, request: Request, email: str, return_to: str) -> Reply:
        """Send a link that works in this browser, and show that a mail is on its way."""
        language = language_of(request)
        name = self._sessions.cookie_name("browser")
        browser = request.cookies.get(name, "")
        if not is_cookie_secret(browser):  # the text from a browser may be invalid in a header
            browser = new_cookie_secret()
        await self._send_link(
            caller,
            SendSignInLink(email=email, browser=sessions.digest(browser), return_to=return_to, language=language.code),
        )
        reply = redirect(language.at(f"{SIGN_IN}/sent"))
        return _with_headers(reply, self._sessions.cookie("browser", browser, BROWSER_COOKIE_SECONDS))

    def _enter(self, secret: str, browser_secret: str | None, return_to: str) -> Reply:
        cookies = [self._sessions.cookie("session", secret)]
        if browser_secret:
            cookies.append(self._sessions.cookie("known", browser_secret, KNOWN_COOKIE_SECONDS))
        return _with_headers(redirect(local_path(return_to) or self._home), *cookies)

    def _signed_out(self) -> Reply:
        return _with_headers(redirect("/"), self._sessions.cookie("session", "", 0))

    async def _is_known_browser(self, caller: Caller, request: Request, email: str) -> bool:
        """Whether the owner of an address has signed in in this browser."""
        secret = request.cookies.get(self._sessions.cookie_name("known"), "")
        return is_cookie_secret(secret) and await self._get_known_browser(
            caller, GetKnownBrowser(email=email, secret=secret)
        )

    def _form(
        self,
        request: Request,
        fields: dict[str, str],
        status: int = 200,
        *,
        notice: FormNotice | None = None,
        headers: Sequence[Header] = (),
    ) -> Reply:
        return_to = local_path(fields.get("return_to", ""))
        return self._site.page(
            "signin/sign_in.html",
            status,
            language=language_of(request),
            query=return_query(return_to).encode(),
            headers=headers,
            email=fields.get("email", "")[:300],
            return_to=return_to,
            with_password=bool(fields.get("password")),
            token=self._tokens.issue("sign in"),
            notice=notice,
            hint=self._hint_template,
            link_status="",
        )

    def _link_page(self, request: Request, link: SignInLinkView, id: int, status: int = 200) -> Reply:
        return self._site.page(
            "signin/link.html",
            status,
            language=language_of(request),
            link_status=link.status,
            email=link.email if link.status in {"good", "no_account"} else "",
            is_unbound=link.is_unbound,
            hint=self._hint_template,
            path=f"{SIGN_IN}/{links.encode_token(self._secret, id)}",
            token=self._tokens.issue(f"link {id}"),
            minutes=MINUTES,
        )


def _with_headers(reply: Reply, *headers: Header) -> Reply:
    reply.headers = [*reply.headers, *headers]
    return reply
