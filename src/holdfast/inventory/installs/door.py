"""Where merchants install the app: `/auth` sends them to the platform, which sends them back to `/auth/install`.

Inside the platform's admin, a page of the app shows who it is with a session token: `POST /auth/session`.
"""

import time
from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import urlencode

from starlette.routing import BaseRoute, Route

from holdfast.inventory.installs.connecting import Connecting
from holdfast.inventory.installs.state import PATH as INSTALL
from holdfast.inventory.installs.state import States
from holdfast.inventory.problems import (
    INSTALL_EXPIRED,
    error_body,
)
from holdfast.inventory.resources import Database
from holdfast.inventory.shopify import query_signature
from holdfast.inventory.shopify.domains import is_domain
from holdfast.inventory.shopify.scopes import CART_CHECK, REQUIRED
from holdfast.inventory.shops import operations as shops
from holdfast.inventory.site import SITE
from holdfast.kit.caller import Caller
from holdfast.kit.handler import NO_STORE, Access, Handler, Reply, Request, encode, read_query
from holdfast.kit.keys import credential
from holdfast.kit.limits import Limits
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import redirect
from holdfast.kit.problems import Problem, invalid

BEGIN = "/auth"
SESSION = "/auth/session"

T = TypeVar("T")


def routes(database: Database, limits: Limits, connecting: Connecting) -> list[BaseRoute]:
    """The routes for merchants."""
    door = Door(database, connecting)
    return [
        Route(BEGIN, Handler(Access("begin_install", None, "installs"), limits, door.begin, refuse)),
        Route(INSTALL, Handler(Access("install", None, "installs"), limits, door.install, refuse, methods=("GET",))),
        Route(
            SESSION,
            Handler(Access("open_session", None, "installs"), limits, door.session, refuse_session, methods=("POST",)),
            methods=["POST"],
        ),
    ]


class Door:
    """The answers of the routes."""

    def __init__(self, database: Database, connecting: Connecting) -> None:
        self._database = database
        self._connecting = connecting
        self._resources = database.resources
        self._settings = database.resources.settings
        self._states = States(database.resources.secret, self._settings.base_url)

    async def begin(self, _: Caller, request: Request) -> Reply:
        """Send the merchant to the platform, to agree to what the app may do."""
        self._connecting.require_app()
        query = read_query(request.query)
        if not is_domain(shop := query.get("shop", "")):
            raise invalid({"shop": ["must look like my-shop.myshopify.com, in lower case"]})
        if "hmac" in query:  # the platform's own link is signed; one that a person typed is not
            query_signature.verify(request.query, self._resources.client_secrets, time.time())
        state, cookie = self._states.begin(shop, time.time())
        asked = {
            "client_id": self._settings.client_id,
            "scope": ",".join((*REQUIRED, *await self._options(shop, query.get("cart_check")))),
            "redirect_uri": f"{self._settings.base_url}{INSTALL}",
            "state": state,
        }
        address = self._resources.platform.at(shop, f"/admin/oauth/authorize?{urlencode(asked)}")
        reply = redirect(address)
        reply.status, reply.headers = 302, [*reply.headers, cookie]
        return reply

    async def _options(self, shop: str, cart_check: str | None) -> list[str]:
        """What is asked for beside what is required. Without a word on it, what was granted stays granted."""
        if cart_check not in {None, "0", "1"}:
            raise invalid({"cart_check": ["must be 1 to grant it, or 0 to withdraw it"]})
        wanted = await self._connecting.has_granted(shop, CART_CHECK) if cart_check is None else cart_check == "1"
        return [CART_CHECK] if wanted else []

    async def install(self, _: Caller, request: Request) -> Reply:
        """Take what the merchant has granted, and show the key of the shop if it is new."""
        self._connecting.require_app()
        query = query_signature.verify(request.query, self._resources.client_secrets, time.time())
        shop, cookie = query["shop"], request.cookies.get(self._states.cookie_name, "")
        if not self._states.accepts(shop, query.get("state", ""), cookie, time.time()):
            raise INSTALL_EXPIRED()
        granted = self._resources.token_endpoint.for_code(shop, query.get("code", ""))
        installed = await self._connecting.install(shop, granted)
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
        """Say which shop a session token is of, and install the app there if only the platform knows of it yet."""
        self._connecting.require_app()
        told = credential(request.headers) or ""
        shop = self._connecting.verified(told).shop
        key = await self._connecting.connect(shop, told)
        found = await self._database.read(lambda reader: shops.find(reader, shop))
        body = {"shop": shop, "shared_inventory_id": found.shared_inventory_id, "api_key": key}
        return Reply(200, encode(body), [NO_STORE])


def refuse(problem: Problem, request: Request) -> Reply:
    """A page that says what is wrong, and where to begin again."""
    return refused(problem, request)


def refused(problem: Problem, request: Request, ancestors: str = "") -> Reply:
    """The same page. `ancestors`: the sites that may show it in a frame."""
    shop = _shop_of(request.query)
    return SITE.page(
        "installs/refused.html",
        problem.status,
        language=language_of(request),
        ancestors=ancestors,
        problem=problem,
        shop=shop,
        again=f"{BEGIN}?{urlencode({'shop': shop})}" if shop else None,
    )


def refuse_session(problem: Problem, request: Request) -> Reply:
    """An error as JSON; with 401, App Bridge gets a fresh session token and asks once more."""
    headers = [NO_STORE]
    if problem.status == 401:
        headers.append((b"x-shopify-retry-invalid-session-request", b"1"))
    if problem.retry_after is not None:
        headers.append((b"retry-after", str(problem.retry_after).encode()))
    return Reply(problem.status, encode(error_body(problem)), headers)


def _shop_of(query: bytes) -> str:
    """The shop in a query; empty if there is none that can be one."""
    try:
        given: Mapping[str, str] = read_query(query)
    except Problem:
        return ""
    shop = given.get("shop", "")
    return shop if is_domain(shop) else ""
