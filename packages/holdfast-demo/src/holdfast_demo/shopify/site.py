"""The pages of the platform: its shops, the admin that shows the app in a frame, and the page that installs an app."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from holdfast.kit.contract.messages import translatable
from holdfast.kit.pages.language import Language
from holdfast.kit.pages.site import Site, redirect
from holdfast_demo.shared import serving
from holdfast_demo.shared.serving import asset_routes, form_fields, to_response
from holdfast_demo.shopify import seed, shops
from holdfast_demo.shopify.errors import ShopifyRefusal
from holdfast_demo.shopify.model import FIRST_SCOPES, Shop
from holdfast_demo.shopify.oauth import OAuth, host
from holdfast_demo.shopify.platform_state import App, PlatformState

SITE = Site("Demo shops", Path(__file__).parent)

TEMPLATE_FILES = ("cart.js", "shop.css", "side-by-side.css", "side-by-side.js")
"""The files that pages load, beside their templates."""

SCOPE_WORDS = {
    "read_products": translatable("Your products and their packs"),
    "write_products": translatable("Your products, and the data that apps keep at them"),
    "read_inventory": translatable("How many of each product you have"),
    "write_inventory": translatable("The stock numbers of the packs that you choose. No other number changes."),
    "read_orders": translatable("Your orders of the last 60 days"),
    "read_all_orders": translatable("All your orders, also older ones"),
    "write_orders": translatable("Your orders"),
    "read_locations": translatable("Your stock locations"),
    "write_app_proxy": translatable("Your storefront: pages of the app in it"),
}
"""What each scope lets an app see or change, in a merchant's words."""


def routes(platform: PlatformState, oauth: OAuth) -> list[BaseRoute]:
    """The pages."""
    pages = _ShopPages(platform, oauth)
    return [
        Route("/", pages.shops),
        Route("/", pages.open, methods=["POST"]),
        Route("/{shop}/admin/oauth/authorize", pages.ask_to_install),
        Route("/{shop}/admin/oauth/authorize", pages.agreed, methods=["POST"]),
        *asset_routes(SITE, "icon.svg", "live.js", "times.js", *(f"templates/{file}" for file in TEMPLATE_FILES)),
    ]


class _ShopPages:
    def __init__(self, platform: PlatformState, oauth: OAuth) -> None:
        self._platform = platform
        self._oauth = oauth

    async def shops(self, request: Request) -> Response:
        return self._shop_list(request)

    def _shop_list(self, request: Request, domain: str = "", error: str = "") -> Response:
        status = 422 if error else 200
        about: dict[str, Any] = {"app": self._platform.app, "shops": self._platform.shops()}
        return page(request, "shops.html", status, **about, domain=domain, error=error)

    async def open(self, request: Request) -> Response:
        domain = (await form_fields(request)).get("domain", "").lower()
        try:
            shops.open_shop(self._platform, domain)
            seed.fill(self._platform, domain)
        except ShopifyRefusal as refusal:
            return self._shop_list(request, domain, str(refusal))
        return to_response(redirect(f"/{domain}"))

    async def ask_to_install(self, request: Request) -> Response:
        """Ask the merchant to install the app; if the shop has it with these scopes, redirect to the app at once."""
        domain, params = request.path_params["shop"], dict(request.query_params)
        try:
            shop, scopes = self._platform.shop(domain), self._oauth.check_request(params)
            if shop.installed and set(scopes) <= set(shop.scopes):
                return to_response(redirect(self._oauth.agreed(domain, params)))
        except ShopifyRefusal as refusal:
            return page(request, "gone.html", 400, why=str(refusal))
        parts = urlsplit(params["redirect_uri"])
        to = f"{parts.scheme}://{parts.netloc}"
        return install_page(request, self._platform.app, shop, scopes, forms=to)

    async def agreed(self, request: Request) -> Response:
        try:
            address = self._oauth.agreed(request.path_params["shop"], dict(request.query_params))
        except ShopifyRefusal as refusal:
            return page(request, "gone.html", 400, why=str(refusal))
        return to_response(redirect(address))


def is_in_frame(request: Request) -> bool:
    """Whether a browser shows a page inside another one, where there is less room."""
    return request.headers.get("sec-fetch-dest") == "iframe"


def install_page(request: Request, app: App, shop: Shop, scopes: Sequence[str], **options: Any) -> Response:
    """The question whether to install an app, with what it may do then."""
    changes = [(scope, SCOPE_WORDS.get(scope)) for scope in scopes if scope.startswith("write_")]
    sees = [(scope, SCOPE_WORDS.get(scope)) for scope in scopes if not scope.startswith("write_")]
    return page(request, "install.html", app=app, shop=shop, scopes=scopes, sees=sees, changes=changes, **options)


def local_title(language: Language, title: str) -> str:
    """The title of a product or a pack in a language, if it is one of the demo's; else as its merchant wrote it."""
    if title not in seed.TITLES:
        return title
    return SITE.texts(language).gettext(title).replace(" x ", " \N{MULTIPLICATION SIGN} ")


def page(
    request: Request, template: str, status: int = 200, *, forms: str = "", frames: str = "", **values: Any
) -> Response:
    """A page of the platform, by default in the language of the browser.

    Its own pages show others of it side by side, in frames.
    """
    options = {"forms": forms, "frames": frames, "ancestors": "'self'"}
    language = values.setdefault("language", serving.language_of(request))
    values["local_title"] = partial(local_title, language)
    return to_response(SITE.page(f"templates/{template}", status, **options, **values))


BRIDGE = "/app-bridge.js"
"""The path of the script for pages of apps."""


def admin_routes(platform: PlatformState, oauth: OAuth) -> list[BaseRoute]:
    """The routes of the page of the app in the admin of a shop."""
    framing = _Framing(platform, oauth)
    app = "/{shop}/admin/apps/{handle}"
    return [
        Route(app, framing.install, methods=["POST"]),
        Route(app, framing.page),
        Route(f"{app}/{{path:path}}", framing.page),
        Route("/{shop}/admin/session-token", framing.token),
        Route(BRIDGE, framing.bridge),
        *serving.asset_routes(SITE, "templates/admin.js", "templates/admin.css"),
    ]


class _Framing:
    def __init__(self, platform: PlatformState, oauth: OAuth) -> None:
        self._platform = platform
        self._oauth = oauth
        self._bridge = SITE.content("templates/app-bridge.js")

    async def page(self, request: Request) -> Response:
        """Show the app in a frame, with a token that identifies the merchant; or ask whether to install the app."""
        shop = self._shop(request)
        if shop is None:
            return page(request, "gone.html", 404, why="There is no such shop, or no such app.")
        app = self._platform.app
        if not shop.installed:
            return install_page(request, app, shop, FIRST_SCOPES)
        path = quote(request.path_params.get("path", ""))
        query = self._oauth.signed(
            {
                "embedded": "1",
                "host": host(shop.domain),
                "id_token": self._oauth.session_token(shop.domain),
                "locale": "en",
                "shop": shop.domain,
                "timestamp": str(int(self._platform.now())),
            }
        )
        address = f"{app.address}/{path}" if path else app.url
        values: dict[str, Any] = {"app": app, "shop": shop, "address": f"{address}?{query}"}
        return page(request, "admin.html", frames=app.address, in_frame=is_in_frame(request), **values)

    async def install(self, request: Request) -> Response:
        """Install the app without sending the merchant to the app, as the platform itself does."""
        shop = self._shop(request)
        if shop is None:
            return page(request, "gone.html", 404, why="There is no such shop, or no such app.")
        self._oauth.install(shop.domain, [*FIRST_SCOPES])
        return serving.to_response(redirect(request.url.path))

    async def token(self, request: Request) -> Response:
        """A session token, for the page around the app."""
        try:
            shop = self._platform.shop(request.path_params["shop"])
        except ShopifyRefusal as refusal:
            return JSONResponse({"error": str(refusal)}, 404)
        return JSONResponse({"token": self._oauth.session_token(shop.domain)}, headers={"Cache-Control": "no-store"})

    async def bridge(self, _: Request) -> Response:
        return Response(self._bridge, media_type="text/javascript")

    def _shop(self, request: Request) -> Shop | None:
        """The shop; None if it does not exist, or another app is requested."""
        app = self._platform.app
        if request.path_params["handle"] not in {app.handle, app.client_id}:
            return None
        return self._platform.find_shop(request.path_params["shop"])
