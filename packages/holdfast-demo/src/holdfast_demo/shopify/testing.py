"""The API of the platform for tests in another process, such as `POST /_test/open {"shop": "a.myshopify.com"}`.

A refusal is answered with 409 and the reason.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, structs
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from holdfast_demo.shared.testing import AdvanceClock, EmptyCommand, change_webhooks, route
from holdfast_demo.shopify.application import ShopifyDouble
from holdfast_demo.shopify.errors import Fault, Kind, OAuthRefusal, ShopifyRefusal
from holdfast_demo.shopify.orders import LineEdit, LineReturn, SaleLine
from holdfast_demo.shopify.shops import NewVariant
from holdfast_demo.shopify.webhooks import RandomDelivery, single_delivery

C = TypeVar("C", bound=Struct)


class ShopCommand(Struct, forbid_unknown_fields=True):
    """A shop."""

    shop: str


class OpenShop(Struct, forbid_unknown_fields=True):
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


class SellVariants(Struct, forbid_unknown_fields=True):
    """Sell variants in one order."""

    shop: str
    lines: list[SaleLine]
    even_if_sold_out: bool = False
    till: int | None = None


class EditOrder(Struct, forbid_unknown_fields=True):
    """Change what was ordered."""

    shop: str
    order: int
    lines: list[LineEdit] = []
    added: list[SaleLine] = []


class TakeUnitsBack(Struct, forbid_unknown_fields=True):
    """Take units of an order back."""

    shop: str
    order: int
    lines: list[LineReturn]
    location: int | None = None


class OrderCommand(Struct, forbid_unknown_fields=True):
    """Do something with a whole order."""

    shop: str
    order: int
    restock: bool = True


class CountVariant(Struct, forbid_unknown_fields=True):
    """Count a variant by hand."""

    shop: str
    variant: int
    available: int
    location: int | None = None


class SendComplianceMessage(Struct, forbid_unknown_fields=True):
    """Send one of the messages about personal data."""

    shop: str
    topic: str


class IssueSessionToken(Struct, forbid_unknown_fields=True):
    """Give a session token."""

    shop: str
    user: int = 1


class ChangeShopifyWebhooks(Struct, forbid_unknown_fields=True):
    """Change how webhooks are sent; see `ShopifyWebhooks`. A missing field changes nothing."""

    hold: bool | None = None
    newest_first: bool | None = None
    haste: float | None = None


class DisturbWebhooks(Struct, forbid_unknown_fields=True):
    """Lose, double and delay webhooks at random; see `RandomDelivery`."""

    seed: int = 0
    lost: float = 0
    doubled: float = 0
    late: float = 0


class PlanShopifyFault(Struct, forbid_unknown_fields=True):
    """Plan a fault; see `Fault`."""

    kind: Kind
    operation: str = ""
    shop: str = ""
    times: int = 1
    seconds: float = 30


def routes(double: ShopifyDouble) -> list[BaseRoute]:
    """The routes of the API for tests."""

    def set_delays(command: DisturbWebhooks) -> None:
        random = RandomDelivery(command.seed, lost=command.lost, doubled=command.doubled, late=command.late)
        double.webhooks.delays_of = random if command != DisturbWebhooks(command.seed) else single_delivery

    def sell(command: SellVariants) -> object:
        return double.sell(command.shop, *command.lines, even_if_sold_out=command.even_if_sold_out, till=command.till)

    def levels(command: ShopCommand) -> object:
        stored_levels = double.state.levels
        return {
            str(variant.id): {
                str(level.location): level.available for level in stored_levels.of_item(command.shop, variant.item)
            }
            for variant in double.variants(command.shop)
        }

    def waiting(_: EmptyCommand) -> int:
        return double.webhooks.waiting() + double.webhooks.on_their_way()

    return [
        _route("advance", AdvanceClock, lambda command: double.clock.advance(command.seconds)),
        _route("open", OpenShop, lambda command: double.open(command.shop, points=command.points)),
        _route("begin", ShopCommand, lambda command: double.begin(command.shop)),
        _route("add-location", AddLocation, lambda command: double.add_location(command.shop, command.name)),
        _route(
            "add-product", AddProduct, lambda command: double.add_product(command.shop, command.title, command.variants)
        ),
        _route("variants", ShopCommand, lambda command: double.variants(command.shop)),
        _route("locations", ShopCommand, lambda command: double.locations(command.shop)),
        _route("levels", ShopCommand, levels),
        _route("sets", ShopCommand, lambda command: double.sets(command.shop)),
        _route("orders", ShopCommand, lambda command: double.orders(command.shop)),
        _route("sell", SellVariants, sell),
        _route(
            "edit",
            EditOrder,
            lambda command: double.edit(command.shop, command.order, *command.lines, added=command.added),
        ),
        _route("send", OrderCommand, lambda command: double.send(command.shop, command.order)),
        _route(
            "cancel", OrderCommand, lambda command: double.cancel(command.shop, command.order, restock=command.restock)
        ),
        _route(
            "refund",
            TakeUnitsBack,
            lambda command: double.refund(command.shop, command.order, *command.lines, location=command.location),
        ),
        _route(
            "count",
            CountVariant,
            lambda command: double.count(command.shop, command.variant, command.available, command.location),
        ),
        _route("install", ShopCommand, lambda command: double.install(command.shop)),
        _route("uninstall", ShopCommand, lambda command: double.uninstall(command.shop)),
        _route("comply", SendComplianceMessage, lambda command: double.comply(command.shop, command.topic)),
        _route(
            "session-token",
            IssueSessionToken,
            lambda command: double.oauth.session_token(command.shop, user=command.user),
        ),
        _route("webhooks", ChangeShopifyWebhooks, lambda command: change_webhooks(double.webhooks, command)),
        _route("webhook_delays", DisturbWebhooks, set_delays),
        _route("waiting", EmptyCommand, waiting),
        _route("plan", PlanShopifyFault, lambda command: double.plan(Fault(**structs.asdict(command)))),
        _route("heal", EmptyCommand, lambda _: double.heal()),
    ]


def _route(name: str, kind: type[C], action: Callable[[C], Any]) -> Route:
    def done(command: C) -> Response:
        try:
            return Response(msgspec.json.encode(action(command)), media_type="application/json")
        except (ShopifyRefusal, OAuthRefusal) as refusal:
            return JSONResponse({"error": str(refusal)}, 409)

    return route(name, kind, done)
