"""The admin of a shop, which shows the app in a frame, and what stands in for the platform's script for its pages."""

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from holdfast.inventory.shopify.double import pages
from holdfast.inventory.shopify.double.errors import Refused
from holdfast.inventory.shopify.double.model import FIRST_SCOPES, Shop
from holdfast.inventory.shopify.double.oauth import OAuth, host
from holdfast.inventory.shopify.double.world import World
from holdfast.kit.doubles import serving
from holdfast.kit.pages.site import redirect

BRIDGE = "/app-bridge.js"
"""Where the script for pages of apps is."""


def routes(world: World, oauth: OAuth) -> list[BaseRoute]:
    """The page of the app in the admin of a shop, and what it is asked for."""
    framing = _Framing(world, oauth)
    app = "/{shop}/admin/apps/{handle}"
    return [
        Route(app, framing.install, methods=["POST"]),
        Route(app, framing.page),
        Route(f"{app}/{{path:path}}", framing.page),
        Route("/{shop}/admin/session-token", framing.token),
        Route(BRIDGE, framing.bridge),
        *pages.SITE.assets("templates/admin.js", "templates/admin.css"),
    ]


class _Framing:
    def __init__(self, world: World, oauth: OAuth) -> None:
        self._world = world
        self._oauth = oauth
        self._bridge = pages.SITE.content("templates/app-bridge.js")

    async def page(self, request: Request) -> Response:
        """The app in a frame, with a token that says who looks at it; or the question whether to install it."""
        found = self._shop(request)
        if found is None:
            return pages.page("gone.html", 404, why="There is no such shop, or no such app.")
        app = self._world.app
        if not found.installed:
            return pages.page("install.html", app=app, shop=found, scopes=FIRST_SCOPES)
        path = quote(request.path_params.get("path", ""))
        query = self._oauth.signed(
            {
                "embedded": "1",
                "host": host(found.domain),
                "id_token": self._oauth.session_token(found.domain),
                "locale": "en",
                "shop": found.domain,
                "timestamp": str(int(self._world.now())),
            }
        )
        address = f"{app.address}/{path}" if path else app.url
        return pages.page("admin.html", frames=app.address, app=app, shop=found, address=f"{address}?{query}")

    async def install(self, request: Request) -> Response:
        """Install the app, as the platform does by itself: without sending the merchant to the app."""
        found = self._shop(request)
        if found is None:
            return pages.page("gone.html", 404, why="There is no such shop, or no such app.")
        self._oauth.install(found.domain, [*FIRST_SCOPES])
        return serving.sent(redirect(request.url.path))

    async def token(self, request: Request) -> Response:
        """A session token, for the page around the app."""
        try:
            shop = self._world.shop(request.path_params["shop"])
        except Refused as refused:
            return JSONResponse({"error": str(refused)}, 404)
        return JSONResponse({"token": self._oauth.session_token(shop.domain)}, headers={"Cache-Control": "no-store"})

    async def bridge(self, _: Request) -> Response:
        return Response(self._bridge, media_type="text/javascript")

    def _shop(self, request: Request) -> Shop | None:
        """The shop; None if there is none, or if another app is asked for."""
        app = self._world.app
        if request.path_params["handle"] not in {app.handle, app.client_id}:
            return None
        return self._world.find_shop(request.path_params["shop"])
