"""The platform: its application, its background work, its methods for tests, and its server for `holdfast up`."""

import contextlib
import socket
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Route

from holdfast.kit.http.sockets import address_of
from holdfast.kit.process.serving import ServedService
from holdfast_demo.shared import serving
from holdfast_demo.shared.serving import run_in_background
from holdfast_demo.shared.store import Clock
from holdfast_demo.shared.testing import Faults
from holdfast_demo.shopify import CLIENT_ID, checkout, endpoints, orders, payloads, pictures, seed, shops, site
from holdfast_demo.shopify.admin_api.bulk import Bulks
from holdfast_demo.shopify.admin_api.endpoint import Admin
from holdfast_demo.shopify.errors import Fault
from holdfast_demo.shopify.levels import Level
from holdfast_demo.shopify.model import FIRST_SCOPES, Adjustment, Location, Order, Shop, Variant
from holdfast_demo.shopify.oauth import OAuth
from holdfast_demo.shopify.orders import LineEdit, LineReturn, SaleLine
from holdfast_demo.shopify.pages import cart, merchant_page, order_page, side_by_side, storefront
from holdfast_demo.shopify.platform_state import App, PlatformState
from holdfast_demo.shopify.shops import NewVariant
from holdfast_demo.shopify.store import Store
from holdfast_demo.shopify.webhooks import ShopifyWebhooks


class ShopifyDouble:
    """A storefront platform with several shops, for tests and demonstrations.

    Serve `app`. A shop is at `{address}/{domain}`: that is where an app calls it, and where people find its pages. The
    other methods are for the thread and the event loop in which it is served.

    address    where browsers and programs reach it, without a slash at the end
    app        the app that shops can install
    path       the file in which it keeps everything; None: in memory, until it is closed
    """

    def __init__(self, address: str, app: App, *, path: Path | None = None) -> None:
        self._store = Store(path)
        self.state = PlatformState(self._store, address, app)
        self.faults: Faults[Fault] = Faults()
        self.oauth = OAuth(self.state)
        self.webhooks = ShopifyWebhooks(self.state)
        self.bulks = Bulks(self.state, path and path.with_suffix(".bulk"))
        self.admin = Admin(self.state, self.oauth, self.bulks, self.faults)
        routes = [
            *endpoints.routes(self.state, self.oauth, self.bulks),
            Route("/{shop}/admin/api/{version}/graphql.json", self.admin.answer, methods=["POST"]),
            *site.routes(self.state, self.oauth),
            *cart.routes(self.state),
            *order_page.routes(self.state),
            *site.admin_routes(self.state, self.oauth),
            *side_by_side.routes(self.state, self.oauth),
            *merchant_page.routes(self.state, self.oauth, self.webhooks),
            *storefront.routes(self.state),
            *pictures.routes(self.state),
        ]
        self.app = Starlette(routes=routes, lifespan=self._lifespan)

    @property
    def address(self) -> str:
        return self.state.address

    @property
    def clock(self) -> Clock:
        return self.state.clock

    # Shops

    def open(self, domain: str, *, points: float = 100) -> Shop:
        """A new shop with one location. Raises `ShopifyRefusal`."""
        return shops.open_shop(self.state, domain, points=points)

    def begin(self, domain: str, *, with_more: bool = False) -> None:
        """Open a shop with the products for newcomers, unless it exists. Raises `ShopifyRefusal`.

        with_more    with the products for people who try the app, too, and honey that promises more than there is
        """
        if self.state.find_shop(domain) is None:
            self.open(domain)
            seed.fill(self.state, domain, seed.OVERSOLD_HONEY if with_more else seed.HONEY)
            if with_more:
                seed.add_more(self.state, domain)
                seed.add_past(self.state, domain)

    def shop(self, domain: str) -> Shop:
        """A shop. Raises `ShopifyRefusal`."""
        return self.state.shop(domain)

    def add_location(self, domain: str, name: str, *, online: bool = True, service: bool = False) -> Location:
        return shops.add_location(self.state, domain, name, online=online, service=service)

    def locations(self, domain: str) -> list[Location]:
        """The locations of a shop, oldest first."""
        return self._store.select(Location, domain)

    def add_product(self, domain: str, title: str, variants: Sequence[NewVariant]) -> list[Variant]:
        """A new product with its variants, which are returned."""
        return shops.add_product(self.state, domain, title, variants)

    def variants(self, domain: str) -> list[Variant]:
        """The variants of a shop, oldest first."""
        return self._store.select(Variant, domain)

    def remove_variant(self, domain: str, variant: int) -> None:
        shops.remove_variant(self.state, domain, variant)

    def level(self, domain: str, variant: int, location: int | None = None) -> Level:
        """The level of a variant; without a location at the first. Raises `ShopifyRefusal`."""
        stored_variant = shops.find_variant(self.state, domain, variant)
        where = self.locations(domain)[0].id if location is None else location
        level = self.state.levels.find(domain, stored_variant.item, where)
        assert level, f"the variant {variant} is not stocked at {where}"
        return level

    def available(self, domain: str, variant: int) -> int:
        """How many units of a variant are available, all locations together."""
        return shops.available(self.state, domain, shops.find_variant(self.state, domain, variant))

    def count(self, domain: str, variant: int, available: int, location: int | None = None) -> Level:
        """Set a level by hand, as merchants do. Raises `ShopifyRefusal`."""
        level = self.level(domain, variant, location)
        return shops.count(self.state, domain, level.item, level.location, available)

    def stock(self, domain: str, variant: int, location: int, available: int = 0) -> Level:
        """Stock a variant at a further location. Raises `ShopifyRefusal`."""
        return shops.stock(
            self.state, domain, shops.find_variant(self.state, domain, variant).item, location, available
        )

    def sets(self, domain: str) -> list[Adjustment]:
        """The changes that the app made to levels, a group for each call that changed any, oldest first."""
        return self._store.select(Adjustment, domain)

    # Orders

    def sell(self, domain: str, *sold: SaleLine, even_if_sold_out: bool = False, till: int | None = None) -> Order:
        """A new order; see `orders.sell`. Raises `ShopifyRefusal`."""
        return orders.sell(self.state, domain, sold, even_if_sold_out=even_if_sold_out, till=till)

    async def buy(self, domain: str, *sold: SaleLine, language: str = "EN") -> Order:
        """Pay for a cart, after the app's function has checked it. Raises `CheckoutStopped` and `ShopifyRefusal`."""
        return await checkout.buy(self.state, domain, sold, language=language)

    def edit(self, domain: str, order: int, *lines: LineEdit, added: Sequence[SaleLine] = ()) -> Order:
        """Change what was ordered. Raises `ShopifyRefusal`."""
        return orders.edit(self.state, domain, order, lines=lines, added=added)

    def send(self, domain: str, order: int) -> Order:
        """Send all unsent units of an order. Raises `ShopifyRefusal`."""
        return orders.send(self.state, domain, order)

    def refund(self, domain: str, order: int, *back: LineReturn, location: int | None = None) -> None:
        """Take units back, sent or not. Raises `ShopifyRefusal`."""
        orders.refund(self.state, domain, order, back, location=location)

    def cancel(self, domain: str, order: int, *, restock: bool = True) -> Order:
        """Cancel an order. Raises `ShopifyRefusal`."""
        return orders.cancel(self.state, domain, order, restock=restock)

    def delete_order(self, domain: str, order: int) -> None:
        """Delete an order that was cancelled. Raises `ShopifyRefusal`."""
        orders.delete(self.state, domain, order)

    def orders(self, domain: str) -> list[Order]:
        """The orders of a shop, oldest first."""
        return self._store.select(Order, domain)

    # The app

    def install(self, domain: str, scopes: Sequence[str] = FIRST_SCOPES) -> None:
        """Install the app without a request to its pages, as the platform itself can."""
        self.oauth.install(domain, list(scopes))

    def token(self, domain: str) -> str:
        """A token of a shop that has the app, for tests that call the Admin API themselves."""
        app = self.state.app
        parameters: Mapping[str, Any] = {
            "client_id": app.client_id,
            "client_secret": app.client_secret,
            "grant_type": "client_credentials",
        }
        return self.oauth.answer(domain, parameters)["access_token"]

    def uninstall(self, domain: str) -> None:
        """Remove the app from a shop. Raises `ShopifyRefusal`."""
        self.oauth.uninstall(domain)

    def comply(self, domain: str, topic: str) -> None:
        """Send one of the three messages about personal data, for one customer or the whole shop."""
        shop = self.state.shop(domain)
        payload: dict[str, Any] = {"shop_id": shop.id, "shop_domain": domain}
        if topic != "shop/redact":
            payload["customer"] = {name: payloads.SAMPLE_CUSTOMER[name] for name in ("id", "email", "phone")}
            payload["orders_requested" if topic == "customers/data_request" else "orders_to_redact"] = []
        self.webhooks.comply(domain, topic, payload)

    def plan(self, fault: Fault) -> None:
        """Plan a fault of a future request."""
        self.faults.plan(fault)

    def heal(self) -> None:
        """Remove all planned faults."""
        self.faults.clear()

    def close(self) -> None:
        """Close the store. Data in memory is lost."""
        self.bulks.close()
        self._store.close()

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncGenerator[None]:
        async with run_in_background(self.webhooks.run(), self.bulks.run()):
            yield


DATABASE_FILE = "demo-shops.sqlite"
"""The database of the platform, in the data directory."""


def platform_server(
    listener: socket.socket, inventory_url: str, secret: str, data_dir: Path, domain: str
) -> ServedService:
    """A server for the platform on a socket.

    inventory_url    the address of the service that its shops can install
    secret           the client secret of that service
    domain           the shop that exists from the start
    """
    double = ShopifyDouble(address_of(listener), App(CLIENT_ID, secret, inventory_url), path=data_dir / DATABASE_FILE)
    double.begin(domain, with_more=True)
    return serving.guarded_server(double.app, listener)
