"""The platform as a whole: its application, what it does in the background, and what tests can do with it."""

import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Route

from holdfast.inventory.shopify.double import (
    checkout,
    desk,
    doors,
    framing,
    orders,
    pages,
    payloads,
    seed,
    shops,
    storefront,
)
from holdfast.inventory.shopify.double.admin import Admin
from holdfast.inventory.shopify.double.bulk import Bulks
from holdfast.inventory.shopify.double.faults import Fault
from holdfast.inventory.shopify.double.levels import Level
from holdfast.inventory.shopify.double.model import FIRST_SCOPES, Adjustment, Location, Order, Shop, Variant
from holdfast.inventory.shopify.double.oauth import OAuth
from holdfast.inventory.shopify.double.orders import Back, Change, Sold
from holdfast.inventory.shopify.double.shops import NewVariant
from holdfast.inventory.shopify.double.store import Store
from holdfast.inventory.shopify.double.webhooks import Webhooks
from holdfast.inventory.shopify.double.world import App, World
from holdfast.kit.doubles.clock import Clock
from holdfast.kit.doubles.faults import Faults
from holdfast.kit.doubles.serving import at_work


class Double:
    """A storefront platform with several shops, for tests and demonstrations.

    Serve `app`. A shop is at `{address}/{domain}`: that is where an app calls it, and where people find its pages. The
    other methods are for the thread and the event loop in which it is served.

    address    where browsers and programs reach it, without a slash at the end
    app        the app that shops can install
    path       the file in which it keeps everything; None: in memory, until it is closed
    """

    def __init__(self, address: str, app: App, *, path: Path | None = None) -> None:
        self._store = Store(path)
        self.world = World(self._store, address, app)
        self.faults: Faults[Fault] = Faults()
        self.oauth = OAuth(self.world)
        self.webhooks = Webhooks(self.world)
        self.bulks = Bulks(self.world, path and path.with_suffix(".bulk"))
        self.admin = Admin(self.world, self.oauth, self.bulks, self.faults)
        routes = [
            *doors.routes(self.world, self.oauth, self.bulks),
            Route("/{shop}/admin/api/{version}/graphql.json", self.admin.answer, methods=["POST"]),
            *pages.routes(self.world, self.oauth),
            *checkout.routes(self.world),
            *framing.routes(self.world, self.oauth),
            *desk.routes(self.world, self.oauth, self.webhooks),
            *storefront.routes(self.world),
        ]
        self.app = Starlette(routes=routes, lifespan=self._lifespan)

    @property
    def address(self) -> str:
        return self.world.address

    @property
    def clock(self) -> Clock:
        return self.world.clock

    # Shops

    def open(self, domain: str, *, points: float = 100) -> Shop:
        """A new shop with one location. Raises `Refused`."""
        return shops.open_shop(self.world, domain, points=points)

    def begin(self, domain: str) -> None:
        """See to it that a shop is there, with what newcomers find in one. Raises `Refused`."""
        if self.world.find_shop(domain) is None:
            self.open(domain)
            seed.fill(self.world, domain)

    def shop(self, domain: str) -> Shop:
        """A shop. Raises `Refused`."""
        return self.world.shop(domain)

    def add_location(self, domain: str, name: str, *, online: bool = True) -> Location:
        return shops.add_location(self.world, domain, name, online=online)

    def locations(self, domain: str) -> list[Location]:
        """The locations of a shop, oldest first."""
        return self._store.some(Location, domain)

    def add_product(self, domain: str, title: str, variants: Sequence[NewVariant]) -> list[Variant]:
        """A new product with its variants, which are returned."""
        return shops.add_product(self.world, domain, title, variants)

    def variants(self, domain: str) -> list[Variant]:
        """The variants of a shop, oldest first."""
        return self._store.some(Variant, domain)

    def remove_variant(self, domain: str, variant: int) -> None:
        shops.remove_variant(self.world, domain, variant)

    def level(self, domain: str, variant: int, location: int | None = None) -> Level:
        """The level of a variant; without a location at the first. Raises `Refused`."""
        found = shops.find_variant(self.world, domain, variant)
        where = self.locations(domain)[0].id if location is None else location
        level = self.world.levels.find(domain, found.item, where)
        assert level, f"the variant {variant} is not stocked at {where}"
        return level

    def available(self, domain: str, variant: int) -> int:
        """How many units of a variant are available, all locations together."""
        item = shops.find_variant(self.world, domain, variant).item
        return sum(each.available for each in self.world.levels.of_item(domain, item))

    def count(self, domain: str, variant: int, available: int, location: int | None = None) -> Level:
        """Set a level by hand, as merchants do. Raises `Refused`."""
        level = self.level(domain, variant, location)
        return shops.count(self.world, domain, level.item, level.location, available)

    def stock(self, domain: str, variant: int, location: int, available: int = 0) -> Level:
        """Stock a variant at a further location. Raises `Refused`."""
        return shops.stock(
            self.world, domain, shops.find_variant(self.world, domain, variant).item, location, available
        )

    def sets(self, domain: str) -> list[Adjustment]:
        """The changes that the app made to levels, a group for each call that changed any, oldest first."""
        return self._store.some(Adjustment, domain)

    # Orders

    def sell(self, domain: str, *sold: Sold, even_if_sold_out: bool = False, till: int | None = None) -> Order:
        """A new order; see `orders.sell`. Raises `Refused`."""
        return orders.sell(self.world, domain, sold, even_if_sold_out=even_if_sold_out, till=till)

    async def buy(self, domain: str, *sold: Sold, language: str = "EN") -> Order:
        """Pay for a cart, at which the app's function looks first. Raises `Stopped` and `Refused`."""
        return await checkout.buy(self.world, domain, sold, language=language)

    def edit(self, domain: str, order: int, *lines: Change, added: Sequence[Sold] = ()) -> Order:
        """Change what was ordered. Raises `Refused`."""
        return orders.edit(self.world, domain, order, lines=lines, added=added)

    def send(self, domain: str, order: int) -> Order:
        """Send everything that is left of an order. Raises `Refused`."""
        return orders.send(self.world, domain, order)

    def refund(self, domain: str, order: int, *back: Back, location: int | None = None) -> None:
        """Take units back, sent or not. Raises `Refused`."""
        orders.refund(self.world, domain, order, back, location=location)

    def cancel(self, domain: str, order: int, *, restock: bool = True) -> Order:
        """Cancel an order. Raises `Refused`."""
        return orders.cancel(self.world, domain, order, restock=restock)

    def delete_order(self, domain: str, order: int) -> None:
        """Delete an order that was cancelled. Raises `Refused`."""
        orders.delete(self.world, domain, order)

    def orders(self, domain: str) -> list[Order]:
        """The orders of a shop, oldest first."""
        return self._store.some(Order, domain)

    # The app

    def install(self, domain: str, scopes: Sequence[str] = FIRST_SCOPES) -> None:
        """Install the app without its pages being asked, as the platform can by itself."""
        self.oauth.install(domain, list(scopes))

    def token(self, domain: str) -> str:
        """A token of a shop that has the app, for tests that ask the Admin API themselves."""
        app = self.world.app
        asked: Mapping[str, Any] = {
            "client_id": app.client_id,
            "client_secret": app.client_secret,
            "grant_type": "client_credentials",
        }
        return self.oauth.answer(domain, asked)["access_token"]

    def uninstall(self, domain: str) -> None:
        """Remove the app from a shop. Raises `Refused`."""
        self.oauth.uninstall(domain)

    def comply(self, domain: str, topic: str) -> None:
        """Send one of the three messages about people's data, about somebody or the whole shop."""
        shop = self.world.shop(domain)
        payload: dict[str, Any] = {"shop_id": shop.id, "shop_domain": domain}
        if topic != "shop/redact":
            payload["customer"] = {name: payloads.SOMEBODY[name] for name in ("id", "email", "phone")}
            payload["orders_requested" if topic == "customers/data_request" else "orders_to_redact"] = []
        self.webhooks.comply(domain, topic, payload)

    def plan(self, fault: Fault) -> None:
        """Let something go wrong with a request to come."""
        self.faults.plan(fault)

    def heal(self) -> None:
        """Let nothing go wrong any more."""
        self.faults.clear()

    def close(self) -> None:
        """Give up what it holds. What is in memory is lost."""
        self.bulks.close()
        self._store.close()

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncGenerator[None]:
        async with at_work(self.webhooks.run(), self.bulks.run()):
            yield
