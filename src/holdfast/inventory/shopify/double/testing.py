"""What tests can do with a platform in another process, such as `POST /_test/open {"shop": "a.myshopify.com"}`.

What is refused is answered with 409 and the reason.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, structs
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from holdfast.inventory.shopify.double.errors import OAuthRefused, Refused
from holdfast.inventory.shopify.double.faults import Fault, Kind
from holdfast.inventory.shopify.double.orders import Back, Change, Sold
from holdfast.inventory.shopify.double.shops import NewVariant
from holdfast.inventory.shopify.double.webhooks import Chaos, once
from holdfast.inventory.shopify.double.whole import Double
from holdfast.kit.doubles.testing import Advance, Nothing, change, route

C = TypeVar("C", bound=Struct)


class Domain(Struct, forbid_unknown_fields=True):
    """A shop."""

    shop: str


class Open(Struct, forbid_unknown_fields=True):
    """Open a shop."""

    shop: str
    points: float = 100


class AddLocation(Struct, forbid_unknown_fields=True):
    """Give a shop a further location."""

    shop: str
    name: str


class AddProduct(Struct, forbid_unknown_fields=True):
    """Put a product into a shop."""

    shop: str
    title: str
    variants: list[NewVariant]


class Sell(Struct, forbid_unknown_fields=True):
    """Sell variants in one order."""

    shop: str
    lines: list[Sold]
    even_if_sold_out: bool = False
    till: int | None = None


class Edit(Struct, forbid_unknown_fields=True):
    """Change what was ordered."""

    shop: str
    order: int
    lines: list[Change] = []
    added: list[Sold] = []


class TakeBack(Struct, forbid_unknown_fields=True):
    """Take units of an order back."""

    shop: str
    order: int
    lines: list[Back]
    location: int | None = None


class OfOrder(Struct, forbid_unknown_fields=True):
    """Do something with a whole order."""

    shop: str
    order: int
    restock: bool = True


class Count(Struct, forbid_unknown_fields=True):
    """Count a variant by hand."""

    shop: str
    variant: int
    available: int
    location: int | None = None


class Comply(Struct, forbid_unknown_fields=True):
    """Send one of the messages about people's data."""

    shop: str
    topic: str


class Session(Struct, forbid_unknown_fields=True):
    """Give a session token."""

    shop: str
    user: int = 1


class Hooks(Struct, forbid_unknown_fields=True):
    """Change how webhooks are sent; see `Webhooks`. What is not given stays as it is."""

    hold: bool | None = None
    newest_first: bool | None = None
    haste: float | None = None


class Fate(Struct, forbid_unknown_fields=True):
    """Let webhooks be lost, doubled and late at random; see `Chaos`."""

    seed: int = 0
    lost: float = 0
    doubled: float = 0
    late: float = 0


class Plan(Struct, forbid_unknown_fields=True):
    """Let something go wrong; see `Fault`."""

    kind: Kind
    operation: str = ""
    shop: str = ""
    times: int = 1
    seconds: float = 30


def routes(double: Double) -> list[BaseRoute]:
    """The paths of the API of the tests."""

    def fate(asked: Fate) -> None:
        random = Chaos(asked.seed, lost=asked.lost, doubled=asked.doubled, late=asked.late)
        double.webhooks.fate = random if asked != Fate(asked.seed) else once

    def sell(asked: Sell) -> object:
        return double.sell(asked.shop, *asked.lines, even_if_sold_out=asked.even_if_sold_out, till=asked.till)

    def levels(asked: Domain) -> object:
        found = double.world.levels
        return {
            str(each.id): {str(level.location): level.available for level in found.of_item(asked.shop, each.item)}
            for each in double.variants(asked.shop)
        }

    def waiting(_: Nothing) -> int:
        return double.webhooks.waiting() + double.webhooks.on_their_way()

    return [
        _route("advance", Advance, lambda asked: double.clock.advance(asked.seconds)),
        _route("open", Open, lambda asked: double.open(asked.shop, points=asked.points)),
        _route("begin", Domain, lambda asked: double.begin(asked.shop)),
        _route("add-location", AddLocation, lambda asked: double.add_location(asked.shop, asked.name)),
        _route("add-product", AddProduct, lambda asked: double.add_product(asked.shop, asked.title, asked.variants)),
        _route("variants", Domain, lambda asked: double.variants(asked.shop)),
        _route("locations", Domain, lambda asked: double.locations(asked.shop)),
        _route("levels", Domain, levels),
        _route("sets", Domain, lambda asked: double.sets(asked.shop)),
        _route("orders", Domain, lambda asked: double.orders(asked.shop)),
        _route("sell", Sell, sell),
        _route("edit", Edit, lambda asked: double.edit(asked.shop, asked.order, *asked.lines, added=asked.added)),
        _route("send", OfOrder, lambda asked: double.send(asked.shop, asked.order)),
        _route("cancel", OfOrder, lambda asked: double.cancel(asked.shop, asked.order, restock=asked.restock)),
        _route(
            "refund",
            TakeBack,
            lambda asked: double.refund(asked.shop, asked.order, *asked.lines, location=asked.location),
        ),
        _route("count", Count, lambda asked: double.count(asked.shop, asked.variant, asked.available, asked.location)),
        _route("install", Domain, lambda asked: double.install(asked.shop)),
        _route("uninstall", Domain, lambda asked: double.uninstall(asked.shop)),
        _route("comply", Comply, lambda asked: double.comply(asked.shop, asked.topic)),
        _route("session-token", Session, lambda asked: double.oauth.session_token(asked.shop, user=asked.user)),
        _route("webhooks", Hooks, lambda asked: change(double.webhooks, asked)),
        _route("fate", Fate, fate),
        _route("waiting", Nothing, waiting),
        _route("plan", Plan, lambda asked: double.plan(Fault(**structs.asdict(asked)))),
        _route("heal", Nothing, lambda _: double.heal()),
    ]


def _route(name: str, kind: type[C], act: Callable[[C], Any]) -> Route:
    def done(asked: C) -> Response:
        try:
            return Response(msgspec.json.encode(act(asked)), media_type="application/json")
        except (Refused, OAuthRefused) as refused:
            return JSONResponse({"error": str(refused)}, 409)

    return route(name, kind, done)
