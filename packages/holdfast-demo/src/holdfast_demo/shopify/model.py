"""The objects of a shop of the platform. Times are seconds since 1970; ids are numbers, and the API shows gids."""

import datetime as dt
import re
from functools import lru_cache
from typing import ClassVar

from msgspec import Struct, field

FIRST_SCOPES = ("read_products", "write_inventory", "read_orders", "read_locations")

_SHOP_TIME = dt.timezone(dt.timedelta(hours=-5))


class StoredRecord(Struct, kw_only=True):
    """An object with an id. `parent` is the id of the object that it belongs to, `words` the text for searches."""

    kind: ClassVar[str]
    id: int = 0
    created: float = 0
    updated: float = 0

    @property
    def gid(self) -> str:
        return gid(self.kind, self.id)

    @property
    def parent(self) -> int:
        return 0

    @property
    def words(self) -> str:
        return ""


class Shop(StoredRecord):
    """A shop.

    installed   whether it has the app; `scopes` are what the app may do there
    points      the points that the app gets per second there; it can save twenty times as many
    """

    kind = "Shop"
    domain: str
    name: str
    points: float = 100
    installed: bool = False
    scopes: list[str] = field(default_factory=list[str])
    orders: int = 0


class Location(StoredRecord):
    """A place with stock. `service`: a fulfillment service counts its stock."""

    kind = "Location"
    name: str
    active: bool = True
    online: bool = True
    service: bool = False

    @property
    def words(self) -> str:
        return self.name.lower()


class Product(StoredRecord):
    kind = "Product"
    title: str
    status: str = "ACTIVE"

    @property
    def handle(self) -> str:
        return handle(self.title)

    @property
    def words(self) -> str:
        return self.title.lower()


class Variant(StoredRecord):
    """A variant, with the data of its inventory item, whose id is `item`.

    bundle   whether it is put together from others, so that its levels cannot be set
    """

    kind = "ProductVariant"
    product: int
    item: int
    title: str
    product_title: str
    sku: str = ""
    price: str = "10.00"
    position: int = 1
    policy: str = "DENY"
    tracked: bool = True
    bundle: bool = False

    @property
    def parent(self) -> int:
        return self.product

    @property
    def words(self) -> str:
        return f"{self.product_title} {self.title} {self.sku}".lower()


class LineItem(Struct, kw_only=True):
    """A line of an order. `current` is the rest of `quantity` after removals; `fulfilled` units of it were sent."""

    id: int
    variant: int
    title: str
    variant_title: str
    sku: str
    price: str
    quantity: int
    current: int
    location: int
    fulfilled: int = 0


class RefundLineItem(Struct, kw_only=True):
    """The units of a line that were taken back. `restock` is CANCEL, RETURN or NO_RESTOCK."""

    id: int
    line: int
    quantity: int
    restock: str
    location: int | None


class Refund(Struct, kw_only=True):
    id: int
    created: float
    lines: list[RefundLineItem]
    note: str = ""


class Order(StoredRecord):
    """An order. `retail` is the location of the till that it was made at."""

    kind = "Order"
    number: int
    lines: list[LineItem]
    refunds: list[Refund] = field(default_factory=list[Refund])
    cancelled: float | None = None
    cancel_reason: str | None = None
    edited: bool = False
    retail: int | None = None

    @property
    def name(self) -> str:
        return f"#{self.number}"

    @property
    def words(self) -> str:
        return self.name


class Subscription(StoredRecord):
    """A subscription to a topic. `topic` has the form of the API: ORDERS_CREATE."""

    kind = "WebhookSubscription"
    topic: str
    uri: str
    include_fields: list[str] = field(default_factory=list[str])
    filter: str | None = None
    name: str | None = None


class Bulk(StoredRecord):
    """A bulk operation. `file` is the name of its result."""

    kind = "BulkOperation"
    query: str
    grouped: bool
    status: str = "CREATED"
    error: str | None = None
    completed: float | None = None
    objects: int = 0
    roots: int = 0
    size: int | None = None
    file: str = ""


class Metafield(StoredRecord):
    kind = "Metafield"
    owner: str
    namespace: str
    key: str
    type: str
    value: str


class Adjustment(StoredRecord):
    """The changes that one request made to levels: item, location, name, difference, quantity afterwards."""

    kind = "InventoryAdjustmentGroup"
    reason: str
    document: str | None
    changes: list[tuple[int, int, str, int, int]]


def handle(title: str) -> str:
    """The part of an address that is made from a title."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "product"


def gid(kind: str, id: int) -> str:
    """An id in the form of the API."""
    return f"gid://shopify/{kind}/{id}"


def parse_gid(gid: str, kind: str) -> int | None:
    """The number in an id of a kind; None if it is no such id."""
    head, _, tail = gid.partition(f"gid://shopify/{kind}/")
    return int(tail) if not head and tail.isascii() and tail.isdigit() and len(tail) < 19 else None


def format_time(seconds: float) -> str:
    """A time in the form of the API: in whole seconds."""
    return _written(int(seconds))


@lru_cache
def _written(seconds: int) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def shop_time(seconds: float) -> str:
    """A time in the form of webhooks: in whole seconds, in the time zone of the shop."""
    return dt.datetime.fromtimestamp(int(seconds), _SHOP_TIME).isoformat()
