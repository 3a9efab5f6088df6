"""Merchants install the app here: `/auth` sends them to the platform, which sends them back to `/auth/install`.

The OAuth state is a random text that goes to the platform and comes back with the merchant. The browser keeps it in a
cookie too, so that an attacker cannot lead another browser into the end of an install. The cookie is bound to the shop
and to a minute, and signed with a key that signs nothing else.

Inside the platform's admin, a page of the app identifies the merchant with a session token: `POST /auth/session`.
"""

import hmac
import re
import secrets
import time
from functools import partial
from typing import TypeVar
from urllib.parse import urlencode

from holdfast.inventory.installs.operations import ShopConnector
from holdfast.inventory.problems import (
    INSTALL_EXPIRED,
    error_body,
)
from holdfast.inventory.resources import Database
from holdfast.inventory.shopify import signatures
from holdfast.inventory.shopify.domains import CART_CHECK, REQUIRED, is_domain
from holdfast.inventory.shops import operations as shops
from holdfast.inventory.site import SITE
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import Problem, invalid
from holdfast.kit.http.cookies import cookie_header
from holdfast.kit.http.handler import NO_STORE, Access, Handler, Header, Reply, Request, encode, read_query
from holdfast.kit.http.index import Route
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import redirect
from holdfast.kit.security.api_keys import credential
from holdfast.kit.security.service_secret import Secret

STATE_LIFETIME_SECONDS = 60
"""Seconds in which the merchant has to agree."""

INSTALL_PATH = "/auth/install"

_SHAPE = re.compile(r"([A-Za-z0-9_-]{43})\.([0-9]{1,12})\.([0-9a-f]{64})")


class InstallStates:
    """Makes and verifies states.

    base_url    the address of the service: with https, the cookie is sent over TLS only
    """

    def __init__(self, secret: Secret, base_url: str) -> None:
        self._signer = secret.signer("install state")
        self._secure = base_url.startswith("https:")
        self.cookie_name = "__Secure-install" if self._secure else "install"

    def begin(self, shop: str, now: float) -> tuple[str, Header]:
        """A new state for a shop, and the header that sets the cookie."""
        state, until = secrets.token_urlsafe(32), int(now) + STATE_LIFETIME_SECONDS
        return state, self._cookie(
            f"{state}.{until}.{self._signer.sign(f'{shop} {state} {until}')}", STATE_LIFETIME_SECONDS
        )

    def accepts(self, shop: str, state: str, cookie: str, now: float) -> bool:
        """Whether the browser with this cookie began this install, with this state, within the minute."""
        parts = _SHAPE.fullmatch(cookie)
        if parts is None or not hmac.compare_digest(parts[1].encode(), state.encode()):
            return False
        return self._signer.accepts(f"{shop} {state} {parts[2]}", parts[3]) and now <= int(parts[2])

    def end(self) -> Header:
        """The header that removes the cookie."""
        return self._cookie("", 0)

    def _cookie(self, value: str, seconds: int) -> Header:
        return cookie_header(self.cookie_name, value, path=INSTALL_PATH, seconds=seconds, is_secure=self._secure)


BEGIN = "/auth"
SESSION = "/auth/session"

T = TypeVar("T")


def routes(database: Database, limits: Limits, connector: ShopConnector) -> list[Route]:
    """The routes for merchants."""
    pages = InstallPages(database, connector)
    refuse = partial(refusal_page, forms=database.resources.settings.forms_to_platform)
    return [
        Route(BEGIN, Handler(Access("begin_install", None, "installs"), limits, pages.begin, refuse)),
        Route(
            INSTALL_PATH, Handler(Access("install", None, "installs"), limits, pages.install, refuse, methods=("GET",))
        ),
        Route(
            SESSION,
            Handler(Access("open_session", None, "installs"), limits, pages.session, refuse_session, methods=("POST",)),
        ),
    ]


class InstallPages:
    """The answers of the routes."""

    def __init__(self, database: Database, connector: ShopConnector) -> None:
        self._database = database
        self._connector = connector
        self._resources = database.resources
        self._settings = database.resources.settings
        self._states = InstallStates(database.resources.secret, self._settings.base_url)

    async def begin(self, _: Caller, request: Request) -> Reply:
        """Send the merchant to the platform, to grant the scopes of the app."""
        self._connector.require_app()
        query = read_query(request.query)
        if not is_domain(shop := query.get("shop", "")):
            raise invalid({"shop": ["must look like my-shop.myshopify.com, in lower case"]})
        if "hmac" in query:  # the platform's own link is signed; one that a person typed is not
            signatures.verify_query(request.query, self._resources.client_secrets, time.time())
        state, cookie = self._states.begin(shop, time.time())
        params = {
            "client_id": self._settings.client_id,
            "scope": ",".join((*REQUIRED, *await self._optional_scopes(shop, query.get("cart_check")))),
            "redirect_uri": f"{self._settings.base_url}{INSTALL_PATH}",
            "state": state,
        }
        address = self._resources.platform.at(shop, f"/admin/oauth/authorize?{urlencode(params)}")
        reply = redirect(address)
        reply.status, reply.headers = 302, [*reply.headers, cookie]
        return reply

    async def _optional_scopes(self, shop: str, cart_check: str | None) -> list[str]:
        """The optional scopes to request. Without `cart_check` in the query, a granted scope stays granted."""
        if cart_check not in {None, "0", "1"}:
            raise invalid({"cart_check": ["must be 1 to grant it, or 0 to withdraw it"]})
        is_requested = await self._connector.has_granted(shop, CART_CHECK) if cart_check is None else cart_check == "1"
        return [CART_CHECK] if is_requested else []

    async def install(self, _: Caller, request: Request) -> Reply:
        """Store what the merchant has granted, and show the key of the shop if it is new."""
        self._connector.require_app()
        query = signatures.verify_query(request.query, self._resources.client_secrets, time.time())
        shop, cookie = query["shop"], request.cookies.get(self._states.cookie_name, "")
        if not self._states.accepts(shop, query.get("state", ""), cookie, time.time()):
            raise INSTALL_EXPIRED()
        grant_request = self._resources.token_endpoint.for_code(shop, query.get("code", ""))
        installed = await self._connector.install(shop, grant_request)
        return SITE.page(
            "installs/installed.html",
            language=language_of(request),
            headers=[self._states.end()],
            shop=shop,
            key=installed.key,
            base_url=self._settings.base_url,
            admin=self._resources.platform.at(shop, f"/admin/apps/{self._settings.client_id}"),
        )

    async def session(self, _: Caller, request: Request) -> Reply:
        """Find the shop of a session token, and install the app there if only the platform knows of it yet."""
        self._connector.require_app()
        token = credential(request.headers) or ""
        shop = self._connector.verify_token(token).shop
        key = await self._connector.connect(shop, token)
        stored_shop = await self._database.read(lambda reader: shops.find(reader, shop))
        body = {"shop": shop, "shared_inventory_id": stored_shop.shared_inventory_id, "api_key": key}
        return Reply(200, encode(body), [NO_STORE])


def refusal_page(
    problem: Problem, request: Request, *, forms: str, ancestors: str = "", shop: str = "", admin: str = ""
) -> Reply:
    """A page with an error, which may stand in a frame and link to the way out.

    It repeats nothing of the query, which the platform may have signed.

    forms        where its form leads that begins again: the platform
    ancestors    the sites that may show it in a frame
    shop         the shop to which it links, to start again; empty: none
    admin        the address of the app in the admin of that shop, to try again what will pass; empty: none
    """
    return SITE.page(
        "installs/refused.html",
        problem.status,
        language=language_of(request),
        forms=forms,
        ancestors=ancestors,
        problem=problem,
        again=f"{BEGIN}?{urlencode({'shop': shop})}" if shop else None,
        admin=admin,
    )


def refuse_session(problem: Problem, request: Request) -> Reply:
    """An error as JSON. After a 401, App Bridge gets a fresh session token and tries once more."""
    headers = [NO_STORE]
    if problem.status == 401:
        headers.append((b"x-shopify-retry-invalid-session-request", b"1"))
    return Reply(problem.status, encode(error_body(problem)), headers)
