"""The pages of the platform: its shops, and the page on which an app is installed."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from holdfast.inventory.shopify.double import seed, shops
from holdfast.inventory.shopify.double.errors import Refused
from holdfast.inventory.shopify.double.oauth import OAuth
from holdfast.inventory.shopify.double.world import World
from holdfast.kit.doubles.serving import form, sent
from holdfast.kit.pages.site import Site, redirect

SITE = Site("Demo shops", Path(__file__).parent)


def routes(world: World, oauth: OAuth) -> list[BaseRoute]:
    """The pages."""
    pages = _Pages(world, oauth)
    return [
        Route("/", pages.shops),
        Route("/", pages.open, methods=["POST"]),
        Route("/{shop}/admin/oauth/authorize", pages.asked),
        Route("/{shop}/admin/oauth/authorize", pages.agreed, methods=["POST"]),
        *SITE.assets("icon.svg"),
    ]


class _Pages:
    def __init__(self, world: World, oauth: OAuth) -> None:
        self._world = world
        self._oauth = oauth

    async def shops(self, _: Request) -> Response:
        return self._listed()

    def _listed(self, given: str = "", error: str = "") -> Response:
        status = 422 if error else 200
        return page("shops.html", status, app=self._world.app, shops=self._world.shops(), given=given, error=error)

    async def open(self, request: Request) -> Response:
        domain = (await form(request)).get("domain", "").lower()
        try:
            shops.open_shop(self._world, domain)
            seed.fill(self._world, domain)
        except Refused as refused:
            return self._listed(domain, str(refused))
        return sent(redirect(f"/{domain}"))

    async def asked(self, request: Request) -> Response:
        """The page that asks a merchant; those who have the app already with these scopes go on at once."""
        domain, params = request.path_params["shop"], dict(request.query_params)
        try:
            shop, scopes = self._world.shop(domain), self._oauth.check_request(params)
            if shop.installed and set(scopes) <= set(shop.scopes):
                return sent(redirect(self._oauth.agreed(domain, params)))
        except Refused as refused:
            return page("gone.html", 400, why=str(refused))
        parts = urlsplit(params["redirect_uri"])
        to = f"{parts.scheme}://{parts.netloc}"
        return page("install.html", forms=to, app=self._world.app, shop=shop, scopes=scopes)

    async def agreed(self, request: Request) -> Response:
        try:
            address = self._oauth.agreed(request.path_params["shop"], dict(request.query_params))
        except Refused as refused:
            return page("gone.html", 400, why=str(refused))
        return sent(redirect(address))


def page(template: str, status: int = 200, *, forms: str = "", frames: str = "", **values: Any) -> Response:
    """A page of the platform."""
    return sent(SITE.page(f"templates/{template}", status, forms=forms, frames=frames, **values))
