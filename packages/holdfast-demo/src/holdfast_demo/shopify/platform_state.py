"""The state that every part of the platform uses: shops, levels, the time, the app, and messages about changes."""

import uuid
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import httpx2

from holdfast_demo.shared.store import Clock
from holdfast_demo.shopify.errors import ShopifyRefusal
from holdfast_demo.shopify.levels import Levels
from holdfast_demo.shopify.model import Shop
from holdfast_demo.shopify.store import RecordQuery, Store

SCOPES = frozenset(
    {"read_products", "write_products", "read_inventory", "write_inventory"}
    | {"read_orders", "write_orders", "read_all_orders", "read_locations", "write_app_proxy"}
)
"""The scopes that the double knows."""


@dataclass
class App:
    """The app that shops can install, as its developer has set it up.

    address          the address at which it is served
    redirects        the redirect addresses after an installation; empty: `/auth/install` at its address
    webhook_secret   the secret that signs webhooks; empty: the client secret
    of_shops         whether app and shops are of the same organization: only then it gets tokens by client credentials
    """

    client_id: str
    client_secret: str
    address: str
    title: str = "Holdfast"
    handle: str = "holdfast"
    redirects: tuple[str, ...] = ()
    webhook_secret: str = ""
    of_shops: bool = True

    @property
    def url(self) -> str:
        """The address that the admin of a shop opens."""
        return f"{self.address}/console"

    @property
    def redirect_urls(self) -> tuple[str, ...]:
        return self.redirects or (f"{self.address}/auth/install",)

    @property
    def gid(self) -> str:
        return "gid://shopify/App/1"


class WebhookMessage(NamedTuple):
    """A message of a shop to the subscribers of a topic.

    topic   in the form of webhooks: `orders/create`
    event   the id of the event; several messages can have the same
    """

    shop: str
    topic: str
    event: str
    at: float
    payload: Mapping[str, Any]


class PlatformState:
    """The state of one platform.

    address      where browsers and programs reach it, without a slash at the end
    transport    the transport to the app; None: the network
    """

    def __init__(self, store: Store, address: str, app: App) -> None:
        self.store = store
        self.levels = Levels(store)
        self.clock = Clock()
        self.address = address
        self.app = app
        self.transport: httpx2.AsyncBaseTransport | None = None
        self.on_message: list[Callable[[WebhookMessage], None]] = []
        self._event = ""

    def now(self) -> float:
        return self.clock.time()

    @contextmanager
    def happening(self) -> Generator[None]:
        """Run the block in a transaction; all its messages have the same event id."""
        outer = self._event
        self._event = outer or str(uuid.uuid4())
        try:
            with self.store.change():
                yield
        finally:
            self._event = outer

    def send_message(self, shop: str, topic: str, payload: Mapping[str, Any]) -> None:
        """Send a message about a change. Call it inside `happening`."""
        message = WebhookMessage(shop, topic, self._event, self.now(), payload)
        for listener in self.on_message:
            listener(message)

    def find_shop(self, domain: str) -> Shop | None:
        shops = self.store.select(Shop, domain)
        return shops[0] if shops else None

    def shop(self, domain: str) -> Shop:
        """A shop. Raises `ShopifyRefusal` if there is none."""
        shop = self.find_shop(domain)
        if shop is None:
            raise ShopifyRefusal(f"There is no shop {domain}.")
        return shop

    def shops(self) -> list[Shop]:
        """All shops, oldest first."""
        rows = self.store.db.execute("select shop from things where kind = 'Shop' order by id").fetchall()
        return [self.shop(domain) for (domain,) in rows]

    def at(self, domain: str) -> str:
        """The address of a shop."""
        return f"{self.address}/{domain}"


def matching(*conditions: tuple[str, Any]) -> RecordQuery:
    """The query for all things that meet conditions."""
    return RecordQuery(conditions)
