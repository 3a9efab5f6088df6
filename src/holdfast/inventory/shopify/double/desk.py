"""The page of a shop: what its merchant sees and does, one button each."""

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from holdfast.inventory.shopify.double import orders, pages, shops, storefront
from holdfast.inventory.shopify.double.errors import Refused
from holdfast.inventory.shopify.double.levels import Level
from holdfast.inventory.shopify.double.model import Location, Order, Variant, moment
from holdfast.inventory.shopify.double.oauth import OAuth
from holdfast.inventory.shopify.double.orders import Back, Sold
from holdfast.inventory.shopify.double.store import Wanted
from holdfast.inventory.shopify.double.webhooks import Webhooks
from holdfast.inventory.shopify.double.world import World
from holdfast.kit.doubles import serving
from holdfast.kit.pages.site import redirect

MOST_ROWS = 50

Deed = Callable[[str, dict[str, str]], object]
"""What a button does: to which shop, with which fields. Raises `Refused`."""


def routes(world: World, oauth: OAuth, webhooks: Webhooks) -> list[BaseRoute]:
    """The page of a shop, and what its buttons do."""
    desk = _Desk(world, oauth, webhooks)
    deeds: dict[str, Deed] = {
        "sell": desk.sell,
        "count": desk.count,
        "send": desk.send,
        "cancel": desk.cancel,
        "return": desk.take_back,
        "again": desk.tell_again,
        "uninstall": desk.uninstall,
    }
    return [
        Route("/{shop}", desk.page),
        Route("/{shop}/admin", desk.page),
        Route("/{shop}/variants/{id:int}", desk.variant),
        *(Route(f"/{{shop}}/{name}", desk.does(deed), methods=["POST"]) for name, deed in deeds.items()),
    ]


class _Desk:
    def __init__(self, world: World, oauth: OAuth, webhooks: Webhooks) -> None:
        self._world = world
        self._oauth = oauth
        self._webhooks = webhooks

    async def page(self, request: Request) -> Response:
        return self._shown(request.path_params["shop"])

    async def variant(self, request: Request) -> Response:
        """The page on which a variant is counted by hand."""
        domain = request.path_params["shop"]
        try:
            shop, variant = self._world.shop(domain), shops.find_variant(self._world, domain, request.path_params["id"])
        except Refused as refused:
            return pages.page("gone.html", 404, why=str(refused))
        return pages.page("variant.html", shop=shop, variant=variant, levels=self._levels(domain, variant))

    def does(self, deed: Deed) -> Callable[[Request], Any]:
        """What answers a button: the page of the shop again, with what was refused."""

        async def answer(request: Request) -> Response:
            domain = request.path_params["shop"]
            try:
                self._world.shop(domain)
                deed(domain, await serving.form(request))
            except Refused as refused:
                return self._shown(domain, str(refused))
            return serving.sent(redirect(f"/{domain}"))

        return answer

    def _shown(self, domain: str, error: str = "") -> Response:
        shop = self._world.find_shop(domain)
        if shop is None:
            return pages.page("gone.html", 404, why=f"There is no shop {domain}.")
        newest = Wanted(reverse=True, most=MOST_ROWS)
        variants = self._world.store.some(Variant, domain, Wanted(most=MOST_ROWS))
        rows = [
            {"variant": each, "levels": self._levels(domain, each), "address": storefront.of_variant(domain, each)}
            for each in variants
        ]
        return pages.page(
            "shop.html",
            422 if error else 200,
            error=error,
            shop=shop,
            app=self._world.app,
            rows=rows,
            orders=self._world.store.some(Order, domain, newest),
            deliveries=self._webhooks.newest(domain, MOST_ROWS),
            moment=moment,
        )

    def _levels(self, domain: str, variant: Variant) -> list[tuple[str, Level]]:
        """The levels of a variant, each with the name of its location."""
        places = {each.id: each.name for each in self._world.store.some(Location, domain)}
        return [(places[level.location], level) for level in self._world.levels.of_item(domain, variant.item)]

    def sell(self, domain: str, form: dict[str, str]) -> object:
        return orders.sell(self._world, domain, [Sold(_whole(form, "variant"), 1)])

    def count(self, domain: str, form: dict[str, str]) -> object:
        variant = shops.find_variant(self._world, domain, _whole(form, "variant"))
        return shops.count(self._world, domain, variant.item, _whole(form, "location"), _whole(form, "available"))

    def send(self, domain: str, form: dict[str, str]) -> object:
        return orders.send(self._world, domain, _whole(form, "order"))

    def cancel(self, domain: str, form: dict[str, str]) -> object:
        return orders.cancel(self._world, domain, _whole(form, "order"))

    def take_back(self, domain: str, form: dict[str, str]) -> object:
        """Take one unit back, of the first line that has any."""
        order = orders.find(self._world, domain, _whole(form, "order"))
        for line in order.lines:
            if line.current:
                return orders.refund(self._world, domain, order.id, [Back(line.id, 1)])
        raise Refused("Nothing of this order is left to be taken back.")

    def tell_again(self, domain: str, form: dict[str, str]) -> None:
        self._webhooks.send_again(domain, form.get("webhook", ""))

    def uninstall(self, domain: str, _: dict[str, str]) -> None:
        self._oauth.uninstall(domain)


def _whole(form: dict[str, str], name: str) -> int:
    text = form.get(name, "")
    if not text.removeprefix("-").isdecimal() or not text.isascii() or len(text) > 18:
        raise Refused(f"A whole number is expected as {name}.")
    return int(text)
