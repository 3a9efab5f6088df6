"""The page that shows the stock of a shop's first product and its packs, above the storefront, the shop and the app."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from holdfast.kit.contract.messages import translatable
from holdfast.kit.pages.language import ENGLISH, Language
from holdfast.kit.pages.site import redirect
from holdfast_demo.shared import serving
from holdfast_demo.shopify import app_proxy, pictures, shops, site
from holdfast_demo.shopify.errors import ShopifyRefusal
from holdfast_demo.shopify.model import FIRST_SCOPES, Order, Variant
from holdfast_demo.shopify.oauth import OAuth
from holdfast_demo.shopify.pages import storefront
from holdfast_demo.shopify.pictures import Picture
from holdfast_demo.shopify.platform_state import PlatformState
from holdfast_demo.shopify.store import RecordQuery

MAX_PACKS = 3
MAX_FOLLOW_SECONDS = 5
"""Seconds after a change in which the numbers of the other packs follow it."""

MAX_ORDERS = 500
"""The most orders, the newest, of which sales before the app was installed are added up."""

WAYS = (
    translatable("no way to buy"),
    translatable("one way to buy"),
    translatable("two ways to buy"),
    translatable("three ways to buy"),
)


class StagePack(NamedTuple):
    """A pack on the page.

    size         how many units are in it
    available    the number of the shop
    live         how many can be sold, as the app says; None: it is in no pool
    """

    variant: Variant
    picture: Picture
    price: str
    size: int
    available: int
    live: int | None

    @property
    def differs(self) -> bool:
        """Whether the shop shows another number than the pool has."""
        return self.live is not None and self.live != self.available

    @property
    def units(self) -> int:
        """How many units its number promises."""
        return max(self.available, 0) * self.size


class StageStock(NamedTuple):
    """What there is of the first product, in units.

    shelf               how many are there; less than 0: more were sold than there were
    promised            how many the numbers of all packs promise together
    seconds_unchanged   seconds since a number of the shop changed
    """

    packs: list[StagePack]
    shelf: int
    promised: int
    seconds_unchanged: float = 0

    @property
    def is_shared(self) -> bool:
        """Whether all packs are in pools."""
        return all(pack.live is not None for pack in self.packs)

    @property
    def is_drifted(self) -> bool:
        """Whether a number of the shop differs from its pool, and is not about to follow a sale."""
        differs = self.is_shared and any(pack.differs for pack in self.packs)
        return differs and self.seconds_unchanged > MAX_FOLLOW_SECONDS

    @property
    def ways(self) -> str:
        return WAYS[len(self.packs)]


class _View(NamedTuple):
    """A frame of the page. `title`: in English."""

    name: str
    title: str
    address: str


def routes(platform: PlatformState, oauth: OAuth) -> list[BaseRoute]:
    """The page, and its button that installs the app."""

    async def show(request: Request) -> Response:
        domain = request.path_params["shop"]
        shop = platform.find_shop(domain)
        if shop is None:
            return site.page(request, "gone.html", 404, why=f"There is no shop {domain}.")
        app = platform.app
        live: Mapping[str, int] = await app_proxy.live_numbers(platform, domain) if shop.installed else {}
        stock = stage_stock(platform, domain, live, serving.language_of(request))
        views = [_View("shop", translatable("Shop admin"), f"/{domain}")]
        if stock.packs:
            product = storefront.of_variant(domain, stock.packs[0].variant)
            views.insert(0, _View("storefront", translatable("Storefront"), product))
        if shop.installed:
            views.append(_View("app", app.title, f"/{domain}/admin/apps/{app.handle}"))
        values: dict[str, Any] = {"app": app, "shop": shop, "stock": stock, "views": views}
        return site.page(
            request, "side-by-side.html", frames="'self'", places=pictures.stock_places(stock.shelf), **values
        )

    async def install(request: Request) -> Response:
        domain = request.path_params["shop"]
        try:
            oauth.install(domain, [*FIRST_SCOPES])
        except ShopifyRefusal as refusal:
            return site.page(request, "gone.html", 404, why=str(refusal))
        return serving.to_response(redirect(f"/{domain}/side-by-side"))

    path = "/{shop}/side-by-side"
    return [Route(path, show), Route(path, install, methods=["POST"])]


def stage_stock(
    platform: PlatformState, domain: str, live: Mapping[str, int], language: Language = ENGLISH
) -> StageStock:
    """The stock of the first product. `live`: how many can be sold, by gid, as the app says.

    Without the app, the number of the smallest pack is what was on the shelf, less what was sold of that pack alone; so
    what was sold in other packs is taken from it here. The app takes it from that number itself.
    """
    first = platform.store.select(Variant, domain, RecordQuery(max_count=1))
    variants = [variant for one in first for variant in shops.variants_of(platform, domain, one.product)]
    packs = [
        StagePack(
            variant,
            pictures.picture_of(variant),
            pictures.price_of(variant, language),
            pictures.units_in(variant.title),
            shops.available(platform, domain, variant),
            live.get(variant.gid),
        )
        for variant in variants[:MAX_PACKS]
    ]
    if not packs:
        return StageStock([], 0, 0)
    smallest = min(packs, key=lambda pack: pack.size)
    shelf = (smallest.available if smallest.live is None else smallest.live) * smallest.size
    if not platform.shop(domain).installed:
        shelf -= sum(pack.size * sold_of(platform, domain, pack.variant) for pack in packs if pack is not smallest)
    levels = [level for pack in packs for level in platform.levels.of_item(domain, pack.variant.item)]
    unchanged = platform.now() - max((level.updated for level in levels), default=0)
    return StageStock(packs, shelf, sum(pack.units for pack in packs), unchanged)


def sold_of(platform: PlatformState, domain: str, variant: Variant) -> int:
    """How many of a variant were sold and have not come back."""
    orders = platform.store.select(Order, domain, RecordQuery(reverse=True, max_count=MAX_ORDERS))
    return sum(line.current for order in orders for line in order.lines if line.variant == variant.id)
