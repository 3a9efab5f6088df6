"""The admin of a shop, which shows the app in a frame, and a substitute for the platform's script for apps."""

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from holdfast.kit.pages.site import redirect
from holdfast_demo.shared import serving
from holdfast_demo.shopify import pages
from holdfast_demo.shopify.errors import ShopifyRefusal
from holdfast_demo.shopify.model import FIRST_SCOPES, Shop
from holdfast_demo.shopify.oauth import OAuth, host
from holdfast_demo.shopify.platform_state import PlatformState

BRIDGE = "/app-bridge.js"
"""The path of the script for pages of apps."""


def routes(world: PlatformState, oauth: OAuth) -> list[BaseRoute]:
    """The routes of the page of the app in the admin of a shop."""
    framing = _Framing(world, oauth)
    app = "/{shop}/admin/apps/{handle}"
    return [
        Route(app, framing.install, methods=["POST"]),
        Route(app, framing.page),
        Route(f"{app}/{{path:path}}", framing.page),
        Route("/{shop}/admin/session-token", framing.token),
        Route(BRIDGE, framing.bridge),
        *serving.asset_routes(pages.SITE, "templates/admin.js", "templates/admin.css"),
    ]


class _Framing:
    def __init__(self, world: PlatformState, oauth: OAuth) -> None:
        self._world = world
        self._oauth = oauth
        self._bridge = pages.SITE.content("templates/app-bridge.js")

    async def page(self, request: Request) -> Response:
        """Show the app in a frame, with a token that identifies the merchant; or ask whether to install the app."""
        shop = self._shop(request)
        if shop is None:
            return pages.page("gone.html", 404, why="There is no such shop, or no such app.")
        app = self._world.app
        if not shop.installed:
            return pages.install_page(app, shop, FIRST_SCOPES)
        path = quote(request.path_params.get("path", ""))
        query = self._oauth.signed(
            {
                "embedded": "1",
                "host": host(shop.domain),
                "id_token": self._oauth.session_token(shop.domain),
                "locale": "en",
                "shop": shop.domain,
                "timestamp": str(int(self._world.now())),
            }
        )
        address = f"{app.address}/{path}" if path else app.url
        return pages.page("admin.html", frames=app.address, app=app, shop=shop, address=f"{address}?{query}")

    async def install(self, request: Request) -> Response:
        """Install the app without sending the merchant to the app, as the platform itself does."""
        shop = self._shop(request)
        if shop is None:
            return pages.page("gone.html", 404, why="There is no such shop, or no such app.")
        self._oauth.install(shop.domain, [*FIRST_SCOPES])
        return serving.to_response(redirect(request.url.path))

    async def token(self, request: Request) -> Response:
        """A session token, for the page around the app."""
        try:
            shop = self._world.shop(request.path_params["shop"])
        except ShopifyRefusal as refused:
            return JSONResponse({"error": str(refused)}, 404)
        return JSONResponse({"token": self._oauth.session_token(shop.domain)}, headers={"Cache-Control": "no-store"})

    async def bridge(self, _: Request) -> Response:
        return Response(self._bridge, media_type="text/javascript")

    def _shop(self, request: Request) -> Shop | None:
        """The shop; None if it does not exist, or another app is requested."""
        app = self._world.app
        if request.path_params["handle"] not in {app.handle, app.client_id}:
            return None
        return self._world.find_shop(request.path_params["shop"])
