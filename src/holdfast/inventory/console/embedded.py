"""The console inside the platform's admin: who is in it, and in whose frame it may be shown.

The platform loads a page in a frame of the admin of a shop, with the shop and a session token in its address. The token
begins a session, whose cookie the browser keeps for this admin, and is taken out of the address. Every link goes on
naming the shop: a page that names a shop is shown to a session of that shop only, in a frame of its admin only. A page
that names none is the console in a window of its own.
"""

from collections.abc import Sequence
from functools import partial
from urllib.parse import parse_qsl, urlencode, urlsplit

from msgspec.structs import replace
from starlette.routing import BaseRoute, Route

from holdfast.accounts.entrance import Entrance, Shown, local
from holdfast.accounts.sessions import PLATFORM_HOURS, Session, Sessions
from holdfast.inventory.installs.connecting import Connecting
from holdfast.inventory.installs.door import refused
from holdfast.inventory.merchants import operations
from holdfast.inventory.merchants.model import Enter, Merchant
from holdfast.inventory.problems import INVALID_SESSION_TOKEN
from holdfast.inventory.resources import Database
from holdfast.inventory.shopify.domains import is_domain
from holdfast.inventory.site import SITE
from holdfast.kit.caller import Caller
from holdfast.kit.handler import Access, Handler, Reply, Request
from holdfast.kit.limits import Limits
from holdfast.kit.pages.forms import read_form, require_same_site
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import redirect
from holdfast.kit.problems import Problem

ENTER = "/console/enter"
HOME = "/console"

ENTERED = "entered"
"""What the query of a page has after a session token was sent: if there is still no cookie, the browser kept none."""

PLATFORMS = frozenset({"embedded", "hmac", "host", "id_token", "locale", "session", "timestamp"})
"""What the platform puts into addresses, besides the shop."""

ADMIN = "https://admin.shopify.com"
"""Where the admin of every shop of the real platform is, besides at the shop's own address."""

LONGEST_ID = 64
"""The most characters of the platform's number of a person."""


class EmbeddedEntrance(Entrance):
    """The entrance of merchants: by the platform's word in a frame of its admin, and by a link elsewhere."""

    def __init__(self, sessions: Sessions, database: Database, connecting: Connecting) -> None:
        super().__init__(sessions)
        self._database = database
        self._connecting = connecting
        self._settings = database.resources.settings
        self._platform = database.resources.platform

    def routes(self, limits: Limits) -> list[BaseRoute]:
        """The route that takes session tokens from pages, and the script that sends them."""
        handler = Handler(Access("console_enter", None, "installs"), limits, self.enter, self.refuse, methods=("POST",))
        return [Route(ENTER, handler, methods=["POST"]), *SITE.assets("console/enter.js")]

    def shown(self, request: Request) -> Shown:
        language, shop = language_of(request), self._shop(request)
        if not shop:
            return Shown(language, values={"bridge": None})
        bridge = self._settings.app_bridge
        return Shown(
            replace(language, kept=(("shop", shop),)),
            ancestors=" ".join(self._admins(shop)),
            programs=_origin(bridge),
            home=HOME,
            values={"bridge": {"address": bridge, "client_id": self._settings.client_id}},
        )

    async def arrive(self, request: Request) -> Reply | None:
        """Take the session token out of the address; if it is good, begin a session."""
        query = _query(request)
        token = dict(query).get("id_token")
        if not self._shop(request) or token is None or request.method == "POST":
            return None
        path = _with_query(request.path, [pair for pair in query if pair[0] not in PLATFORMS])
        try:
            return await self._entered(request, token, path)
        except Problem as problem:
            if problem.type is not INVALID_SESSION_TOKEN:
                return self.refuse(problem, request)
        # It may have been good before: the page may have been loaded again from the history of the browser.
        return redirect(path, ancestors=self.shown(request).ancestors)

    async def find(self, request: Request) -> Session | None:
        shop = self._shop(request)
        if not shop:
            session = await self.sessions.of(request)
            return None if session is None or session.way == "platform" else session
        session = await self.sessions.find(request.cookies.get(self._cookie(shop), ""))
        account = session and session.account
        is_own = isinstance(account, Merchant) and account.staff_id is not None and account.shop == shop
        return session if is_own else None

    async def ask(self, request: Request) -> Reply:
        """Have the platform's script say who is there, unless the browser has just shown that it keeps no cookie."""
        shop = self._shop(request)
        if not shop:
            return await super().ask(request)
        query = [pair for pair in _query(request) if pair[0] not in PLATFORMS | {ENTERED}]
        shown = self.shown(request)
        return SITE.page(
            "console/enter.html",
            401,
            language=shown.language,
            ancestors=shown.ancestors,
            programs=shown.programs,
            query=request.query,
            path=_with_query(request.path, query),
            entered=any(name == ENTERED for name, _ in _query(request)),
            admin=self._platform.at(shop, f"/admin/apps/{self._settings.client_id}"),
            **shown.values,
        )

    async def enter(self, _: Caller, request: Request) -> Reply:
        """Begin a session with the session token in a form, and go on to where somebody wanted to go."""
        require_same_site(request, self._settings.base_url)
        fields = await read_form(request)
        path = local(fields.get("return_to", "")) or _with_query(HOME, [("shop", self._shop(request))])
        return await self._entered(
            request, fields.get("id_token", ""), f"{path}{'&' if '?' in path else '?'}{ENTERED}=1"
        )

    async def _entered(self, request: Request, token: str, path: str) -> Reply:
        """Begin a session. Raises `invalid_session_token`, and why the shop cannot be connected."""
        told = self._connecting.verified(token)
        shop = self._shop(request)
        if told.shop != shop or not 0 < len(told.user_id) <= LONGEST_ID or not told.user_id.isprintable():
            raise INVALID_SESSION_TOKEN("The token is not of this shop.")
        await self._connecting.connect(shop, token)
        called = request.headers.get(b"user-agent", b"").decode("latin-1")
        entering = Enter(shop, told.user_id, called)
        secret = await self._database.transact(partial(operations.enter, entering=entering))
        name = self._cookie(shop).removeprefix("__Host-")
        reply = redirect(path, ancestors=self.shown(request).ancestors)
        reply.headers = [*reply.headers, self.sessions.framed_cookie(name, secret, PLATFORM_HOURS * 3600)]
        return reply

    def refuse(self, problem: Problem, request: Request) -> Reply:
        return refused(problem, request, self.shown(request).ancestors)

    def _shop(self, request: Request) -> str:
        """The shop in whose admin a page is shown; empty for pages in a window of their own."""
        if not self._settings.client_id:
            return ""
        named = [value for name, value in _query(request) if name == "shop"]
        return named[0] if len(named) == 1 and is_domain(named[0]) else ""

    def _cookie(self, shop: str) -> str:
        # Somebody may work in several shops at once.
        return self.sessions.cookie_name(f"shop-{shop}")

    def _admins(self, shop: str) -> list[str]:
        """Where the admin of a shop is."""
        own = _origin(self._platform.at(shop, "/admin"))
        return [own, ADMIN] if own == f"https://{shop}" else [own]


def _query(request: Request) -> Sequence[tuple[str, str]]:
    """The names and values in the query of a request; none if it cannot be read."""
    try:
        return parse_qsl(request.query.decode("ascii"), keep_blank_values=True, max_num_fields=50, errors="strict")
    except ValueError:
        return []


def _with_query(path: str, query: Sequence[tuple[str, str]]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"
