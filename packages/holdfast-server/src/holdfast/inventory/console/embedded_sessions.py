"""The console inside the platform's admin: the session of its merchant, and the frame in which it may be shown.

The platform loads a page in a frame of the admin of a shop, with the shop and a session token in its address. The token
begins a session, whose cookie the browser keeps for this admin, and is removed from the address. Every link names the
shop: a page that names a shop is shown to a session of that shop only, in a frame of its admin only. A page without a
shop is the console in a window of its own.
"""

from collections.abc import Sequence
from functools import partial
from urllib.parse import parse_qsl, urlencode, urlsplit

from msgspec.structs import replace

from holdfast.accounts.sessions import PLATFORM_HOURS, Session, Sessions
from holdfast.accounts.signed_in_pages import PageContext, SessionGate, local_path
from holdfast.inventory.installs.operations import ShopConnector
from holdfast.inventory.installs.routes import refusal_page
from holdfast.inventory.merchants import operations
from holdfast.inventory.merchants.model import Merchant, StaffSignIn
from holdfast.inventory.problems import INVALID_SESSION_TOKEN
from holdfast.inventory.resources import Database
from holdfast.inventory.shopify.domains import is_domain
from holdfast.inventory.site import SITE
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.handler import Access, Handler, Reply, Request
from holdfast.kit.http.index import Route
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.pages.forms import read_form, require_same_site
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import redirect

ENTER = "/console/enter"
HOME = "/console"

CONSOLE_PAGE = "console/page.html"
"""The template in which errors are shown to merchants: it follows the look of the platform inside its admin."""

ENTERED = "entered"
"""The parameter of a page after a session token was sent: if there is still no cookie, the browser kept none."""

ADMIN = "https://admin.shopify.com"
"""The origin of the admin of every shop of the real platform, besides the shop's own address."""

MAX_ID_CHARACTERS = 64
"""The most characters of the platform's number of a person."""


class EmbeddedSessionGate(SessionGate):
    """The session gate of merchants: by the platform's word in a frame of its admin, and by a link otherwise."""

    def __init__(self, sessions: Sessions, database: Database, connector: ShopConnector) -> None:
        super().__init__(sessions, SITE)
        self._database = database
        self._connector = connector
        self._settings = database.resources.settings
        self._platform = database.resources.platform

    def routes(self, limits: Limits) -> list[Route]:
        """The route that takes session tokens from pages, and the scripts of pages inside the admin."""
        handler = Handler(Access("console_enter", None, "installs"), limits, self.enter, self.refuse, methods=("POST",))
        return [Route(ENTER, handler), *SITE.assets("console/enter.js", "console/in_admin.js")]

    def page_context(self, request: Request) -> PageContext:
        language, shop = language_of(request), self._shop(request)
        if not shop:
            return PageContext(language, values={"bridge": None, "console_page": CONSOLE_PAGE})
        bridge = self._settings.app_bridge
        return PageContext(
            replace(language, query_fields=(("shop", shop),)),
            ancestors=" ".join(self._admins(shop)),
            script_source=_origin(bridge),
            home=HOME,
            values={
                "bridge": {"address": bridge, "client_id": self._settings.client_id},
                "console_page": CONSOLE_PAGE,
            },
        )

    async def answer_identity_proof(self, request: Request) -> Reply | None:
        """Remove the session token from the address, and begin a session if it is valid."""
        query = _query(request)
        token = dict(query).get("id_token")
        if not self._shop(request) or token is None or request.method == "POST":
            return None
        path = _with_query(request.path, _page_parameters(query))
        try:
            return await self._begin_session(request, token, path)
        except Problem as problem:
            if problem.type is not INVALID_SESSION_TOKEN:
                return self.refuse(problem, request)
        # It may have been valid before: the browser may have loaded the page again from its history.
        return redirect(path, ancestors=self.page_context(request).ancestors)

    async def find(self, request: Request) -> Session | None:
        shop = self._shop(request)
        if not shop:
            session = await self.sessions.find_by_request(request)
            return None if session is None or session.sign_in_way == "platform" else session
        session = await self.sessions.find(request.cookies.get(self.sessions.cookie_name(self._cookie(shop)), ""))
        account = session and session.account
        is_own = isinstance(account, Merchant) and account.staff_id is not None and account.shop == shop
        return session if is_own else None

    async def answer_stranger(self, request: Request) -> Reply:
        """Show a page whose script sends a session token, unless the browser has just kept no cookie."""
        shop = self._shop(request)
        if not shop:
            return await super().answer_stranger(request)
        query = _query(request)
        context = self.page_context(request)
        return SITE.page(
            "console/enter.html",
            401,
            language=context.language,
            ancestors=context.ancestors,
            script_source=context.script_source,
            query=request.query,
            path=_with_query(request.path, _page_parameters(query)),
            entered=any(name == ENTERED for name, _ in query),
            admin=self._app_in_admin(shop),
            **context.values,
        )

    async def enter(self, _: Caller, request: Request) -> Reply:
        """Begin a session with the session token in a form, and redirect to the requested page."""
        require_same_site(request, self._settings.base_url)
        fields = await read_form(request)
        path = local_path(fields.get("return_to", "")) or _with_query(HOME, [("shop", self._shop(request))])
        return await self._begin_session(
            request, fields.get("id_token", ""), f"{path}{'&' if '?' in path else '?'}{ENTERED}=1"
        )

    async def _begin_session(self, request: Request, token: str, path: str) -> Reply:
        """Begin a session. Raises `invalid_session_token`, and the reason if the shop cannot be connected."""
        claims = self._connector.verify_token(token)
        shop = self._shop(request)
        if claims.shop != shop or not 0 < len(claims.user_id) <= MAX_ID_CHARACTERS or not claims.user_id.isprintable():
            raise INVALID_SESSION_TOKEN("The token is not of this shop.")
        await self._connector.connect(shop, token)
        called = request.headers.get(b"user-agent", b"").decode("latin-1")
        entering = StaffSignIn(shop, claims.user_id, called)
        secret = await self._database.transact(partial(operations.begin_staff_session, entering=entering))
        reply = redirect(path, ancestors=self.page_context(request).ancestors)
        reply.headers = [*reply.headers, self.sessions.framed_cookie(self._cookie(shop), secret, PLATFORM_HOURS * 3600)]
        return reply

    def refuse(self, problem: Problem, request: Request) -> Reply:
        context, shop = self.page_context(request), self._shop(request)
        return refusal_page(
            problem,
            request,
            forms=self._settings.forms_to_platform,
            ancestors=context.ancestors,
            shop=shop,
            admin=self._app_in_admin(shop) if shop else "",
        )

    def _shop(self, request: Request) -> str:
        """The shop in whose admin a page is shown; empty for pages in a window of their own."""
        if not self._settings.client_id:
            return ""
        shops = [value for name, value in _query(request) if name == "shop"]
        return shops[0] if len(shops) == 1 and is_domain(shops[0]) else ""

    def _app_in_admin(self, shop: str) -> str:
        """The address of the app in the admin of a shop."""
        return self._platform.at(shop, f"/admin/apps/{self._settings.client_id}")

    def _cookie(self, shop: str) -> str:
        """The name of the cookie, as the sessions of people name theirs."""
        # A person may work in several shops at once.
        return f"shop-{shop}"

    def _admins(self, shop: str) -> list[str]:
        """The origins of the admin of a shop."""
        shop_origin = _origin(self._platform.at(shop, "/admin"))
        return [shop_origin, ADMIN] if shop_origin == f"https://{shop}" else [shop_origin]


def _query(request: Request) -> Sequence[tuple[str, str]]:
    """The names and values in the query of a request; none if it cannot be read."""
    try:
        return parse_qsl(request.query.decode("ascii"), keep_blank_values=True, max_num_fields=50, errors="strict")
    except ValueError:
        return []


def _page_parameters(query: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """The parameters that pages read: not those that the platform adds, which may be a proof."""
    return [pair for pair in query if pair[0] in SITE.parameters | {"lang"}]


def _with_query(path: str, query: Sequence[tuple[str, str]]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"
