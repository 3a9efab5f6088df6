"""The page of a shop for its merchant, with a button for each action."""

import datetime as dt
from collections.abc import Callable
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from holdfast.kit.pages.language import Language
from holdfast.kit.pages.site import redirect
from holdfast_demo.shared import serving
from holdfast_demo.shopify import orders, pictures, shops, site
from holdfast_demo.shopify.errors import ShopifyRefusal
from holdfast_demo.shopify.levels import Level
from holdfast_demo.shopify.model import Location, Order, Variant
from holdfast_demo.shopify.oauth import OAuth
from holdfast_demo.shopify.orders import LineReturn, SaleLine
from holdfast_demo.shopify.pages import order_page, storefront
from holdfast_demo.shopify.platform_state import PlatformState
from holdfast_demo.shopify.store import RecordQuery
from holdfast_demo.shopify.webhooks import ShopifyWebhooks

MAX_ROWS = 50

PRODUCTS, ORDERS, DEVELOPERS = TABS = ("products", "orders", "developers")

TAB_BY_BUTTON = {"send": ORDERS, "cancel": ORDERS, "return": ORDERS, "again": DEVELOPERS, "uninstall": DEVELOPERS}
"""The tab on which a button stands, if it is not that of the products."""

ButtonAction = Callable[[str, dict[str, str]], object]
"""The action of a button: it gets the shop and the fields. Raises `ShopifyRefusal`."""


def routes(platform: PlatformState, oauth: OAuth, webhooks: ShopifyWebhooks) -> list[BaseRoute]:
    """The routes of the page of a shop and its buttons."""
    pages = _MerchantPages(platform, oauth, webhooks)
    actions: dict[str, ButtonAction] = {
        "sell": pages.sell,
        "count": pages.count,
        "send": pages.send,
        "cancel": pages.cancel,
        "return": pages.take_back,
        "again": pages.send_webhook_again,
        "uninstall": pages.uninstall,
    }
    return [
        Route("/{shop}", pages.page),
        Route("/{shop}/admin", pages.page),
        Route("/{shop}/admin/orders/{id:int}", pages.order),
        Route("/{shop}/admin/themes/current/editor", pages.theme),
        Route("/{shop}/variants/{id:int}", pages.variant),
        *(
            Route(f"/{{shop}}/{name}", pages.button_handler(name, action), methods=["POST"])
            for name, action in actions.items()
        ),
    ]


class _MerchantPages:
    def __init__(self, platform: PlatformState, oauth: OAuth, webhooks: ShopifyWebhooks) -> None:
        self._platform = platform
        self._oauth = oauth
        self._webhooks = webhooks

    async def page(self, request: Request) -> Response:
        return self._shop_page(request, request.query_params.get("tab", ""))

    async def order(self, request: Request) -> Response:
        """Lead to an order on the page of its shop."""
        domain = request.path_params["shop"]
        try:
            self._platform.shop(domain)
            order = orders.find(self._platform, domain, request.path_params["id"])
        except ShopifyRefusal as refusal:
            return site.page(request, "gone.html", 404, why=str(refusal))
        return serving.to_response(redirect(f"/{domain}?tab={ORDERS}#order-{order.id}"))

    async def theme(self, request: Request) -> Response:
        """Lead to the page of a product, whose theme has the block already."""
        domain = request.path_params["shop"]
        variants = self._platform.store.select(Variant, domain, RecordQuery(max_count=1))
        if not variants:
            return site.page(request, "gone.html", 404, why=f"The shop {domain} has no product.")
        return serving.to_response(redirect(storefront.of_variant(domain, variants[0])))

    async def variant(self, request: Request) -> Response:
        """Show the page on which a variant is counted by hand."""
        domain = request.path_params["shop"]
        try:
            shop = self._platform.shop(domain)
            variant = shops.find_variant(self._platform, domain, request.path_params["id"])
        except ShopifyRefusal as refusal:
            return site.page(request, "gone.html", 404, why=str(refusal))
        return site.page(
            request,
            "variant.html",
            app=self._platform.app,
            shop=shop,
            variant=variant,
            picture=pictures.picture_of(variant),
            levels=self._levels(domain, variant),
        )

    def button_handler(self, name: str, action: ButtonAction) -> Callable[[Request], Any]:
        """The handler of a button: it shows the page of the shop again, with the refusal if there is one."""
        tab = TAB_BY_BUTTON.get(name, PRODUCTS)

        async def answer(request: Request) -> Response:
            domain = request.path_params["shop"]
            try:
                self._platform.shop(domain)
                action(domain, await serving.form_fields(request))
            except ShopifyRefusal as refusal:
                return self._shop_page(request, tab, str(refusal))
            return serving.to_response(redirect(f"/{domain}" if tab == PRODUCTS else f"/{domain}?tab={tab}"))

        return answer

    def _shop_page(self, request: Request, tab: str, error: str = "") -> Response:
        domain = request.path_params["shop"]
        shop = self._platform.find_shop(domain)
        if shop is None:
            return site.page(request, "gone.html", 404, why=f"There is no shop {domain}.")
        language, search = serving.language_of(request), request.query_params.get("q", "").strip()
        return site.page(
            request,
            "shop.html",
            422 if error else 200,
            in_frame=site.is_in_frame(request),
            tab=tab if tab in TABS else PRODUCTS,
            error=error,
            shop=shop,
            app=self._platform.app,
            products=self._products(domain, language),
            orders=[order_page.summary_of(order, language) for order in self._newest_orders(domain, search, language)],
            q=search,
            deliveries=self._webhooks.newest(domain, MAX_ROWS),
            scripts=["times.js", "live.js"],
            moment_of=partial(dt.datetime.fromtimestamp, tz=dt.UTC),
        )

    def _newest_orders(self, domain: str, search: str, language: Language) -> list[Order]:
        """The newest orders whose number, or a product or variant of which, has a text."""
        newest = self._platform.store.select(Order, domain, RecordQuery(reverse=True))
        return [order for order in newest if search.casefold() in order_page.search_text(order, language).casefold()][
            :MAX_ROWS
        ]

    def _products(self, domain: str, language: Language) -> list[dict[str, Any]]:
        """The products of a shop, each with a row for each of its variants."""
        variants = self._platform.store.select(Variant, domain, RecordQuery(max_count=MAX_ROWS))
        products: dict[int, dict[str, Any]] = {}
        for variant in variants:
            address = storefront.of_variant(domain, variant)
            product = products.setdefault(
                variant.product, {"title": variant.product_title, "address": address, "rows": []}
            )
            product["rows"].append(
                {
                    "variant": variant,
                    "levels": self._levels(domain, variant),
                    "picture": pictures.picture_of(variant),
                    "price": pictures.price_of(variant, language),
                }
            )
        return [*products.values()]

    def _levels(self, domain: str, variant: Variant) -> list[tuple[str, Level]]:
        """The levels of a variant, each with the name of its location."""
        names_by_location = {location.id: location.name for location in self._platform.store.select(Location, domain)}
        return [
            (names_by_location[level.location], level) for level in self._platform.levels.of_item(domain, variant.item)
        ]

    def sell(self, domain: str, form: dict[str, str]) -> object:
        return orders.sell(self._platform, domain, [SaleLine(_whole_number(form, "variant"), 1)])

    def count(self, domain: str, form: dict[str, str]) -> object:
        variant = shops.find_variant(self._platform, domain, _whole_number(form, "variant"))
        return shops.count(
            self._platform, domain, variant.item, _whole_number(form, "location"), _whole_number(form, "available")
        )

    def send(self, domain: str, form: dict[str, str]) -> object:
        return orders.send(self._platform, domain, _whole_number(form, "order"))

    def cancel(self, domain: str, form: dict[str, str]) -> object:
        return orders.cancel(self._platform, domain, _whole_number(form, "order"))

    def take_back(self, domain: str, form: dict[str, str]) -> object:
        """Take back one unit of the first line that has any."""
        order = orders.find(self._platform, domain, _whole_number(form, "order"))
        for line in order.lines:
            if line.current:
                return orders.refund(self._platform, domain, order.id, [LineReturn(line.id, 1)])
        raise ShopifyRefusal("Nothing of this order is left to be taken back.")

    def send_webhook_again(self, domain: str, form: dict[str, str]) -> None:
        self._webhooks.send_again(domain, form.get("webhook", ""))

    def uninstall(self, domain: str, _: dict[str, str]) -> None:
        self._oauth.uninstall(domain)


def _whole_number(form: dict[str, str], name: str) -> int:
    text = form.get(name, "")
    if not text.removeprefix("-").isdecimal() or not text.isascii() or len(text) > 18:
        raise ShopifyRefusal(f"A whole number is expected as {name}.")
    return int(text)
