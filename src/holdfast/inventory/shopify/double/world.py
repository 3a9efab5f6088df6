"""What every part of the platform uses: shops, levels, the time, the app, and the messages that tell of changes."""

import uuid
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import httpx2

from holdfast.inventory.shopify.double.errors import Refused
from holdfast.inventory.shopify.double.levels import Levels
from holdfast.inventory.shopify.double.model import Shop
from holdfast.inventory.shopify.double.store import Store, Wanted
from holdfast.kit.doubles.clock import Clock

SCOPES = frozenset(
    {"read_products", "write_products", "read_inventory", "write_inventory"}
    | {"read_orders", "write_orders", "read_all_orders", "read_locations", "write_app_proxy"}
)
"""The scopes that the double knows."""


@dataclass
class App:
    """The app that shops can install, as its developer has set it up.

    address          where it is served
    redirects        where the platform may send people who have installed it; empty: `/auth/install` there
    webhook_secret   what webhooks are signed with; empty: the client secret
    """

    client_id: str
    client_secret: str
    address: str
    title: str = "Holdfast"
    handle: str = "holdfast"
    redirects: tuple[str, ...] = ()
    webhook_secret: str = ""

    @property
    def url(self) -> str:
        """Where the admin of a shop opens it."""
        return f"{self.address}/console"

    @property
    def redirect_urls(self) -> tuple[str, ...]:
        return self.redirects or (f"{self.address}/auth/install",)

    @property
    def gid(self) -> str:
        return "gid://shopify/App/1"


class Message(NamedTuple):
    """What a shop tells those who listen.

    topic   as webhooks name it: `orders/create`
    event   what happened; several messages can tell of the same
    """

    shop: str
    topic: str
    event: str
    at: float
    payload: Mapping[str, Any]


class World:
    """The state of one platform.

    address      where browsers and programs reach it, without a slash at the end
    transport    how the app is reached; None: over the network
    """

    def __init__(self, store: Store, address: str, app: App) -> None:
        self.store = store
        self.levels = Levels(store)
        self.clock = Clock()
        self.address = address
        self.app = app
        self.transport: httpx2.AsyncBaseTransport | None = None
        self.on_message: list[Callable[[Message], None]] = []
        self._event = ""

    def now(self) -> float:
        return self.clock.time()

    @contextmanager
    def happening(self) -> Generator[None]:
        """A transaction in which one thing happens: all messages out of it name the same event."""
        outer = self._event
        self._event = outer or str(uuid.uuid4())
        try:
            with self.store.change():
                yield
        finally:
            self._event = outer

    def tell(self, shop: str, topic: str, payload: Mapping[str, Any]) -> None:
        """Tell of a change; it happens inside `happening`."""
        message = Message(shop, topic, self._event, self.now(), payload)
        for each in self.on_message:
            each(message)

    def find_shop(self, domain: str) -> Shop | None:
        found = self.store.some(Shop, domain)
        return found[0] if found else None

    def shop(self, domain: str) -> Shop:
        """A shop. Raises `Refused` if there is none."""
        found = self.find_shop(domain)
        if found is None:
            raise Refused(f"There is no shop {domain}.")
        return found

    def shops(self) -> list[Shop]:
        """All shops, oldest first."""
        rows = self.store.db.execute("select shop from things where kind = 'Shop' order by id").fetchall()
        return [self.shop(domain) for (domain,) in rows]

    def at(self, domain: str) -> str:
        """The address of a shop."""
        return f"{self.address}/{domain}"


def matching(*conditions: tuple[str, Any]) -> Wanted:
    """All things that meet conditions."""
    return Wanted(conditions)
