"""An order as people see it: what was bought, what it costs and how far it is; and the page that confirms it."""

import datetime as dt
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from holdfast.kit.contract.messages import translatable
from holdfast.kit.pages.language import Language
from holdfast_demo.shared import serving
from holdfast_demo.shopify import orders, pictures, site
from holdfast_demo.shopify.errors import ShopifyRefusal
from holdfast_demo.shopify.model import LineItem, Order
from holdfast_demo.shopify.pictures import Picture
from holdfast_demo.shopify.platform_state import PlatformState


class LineSummary(NamedTuple):
    """A line of an order. `returned`: how many of its units came back."""

    picture: Picture
    title: str
    pack: str
    quantity: int
    returned: int
    total: str


class OrderSummary(NamedTuple):
    """An order.

    status    in English in a word or two, and the kind of its chip
    """

    id: int
    name: str
    placed_at: dt.datetime
    lines: list[LineSummary]
    total: str
    status: str
    status_kind: str
    can_be_sent: bool
    can_be_cancelled: bool
    can_be_returned: bool


def summary_of(order: Order, language: Language) -> OrderSummary:
    """What people see of an order."""
    current_units, sent_units = sum(line.current for line in order.lines), sum(line.fulfilled for line in order.lines)
    is_cancelled = order.cancelled is not None
    status, kind = (
        (translatable("Cancelled"), "")
        if is_cancelled
        else (translatable("Returned"), "")
        if not current_units
        else (translatable("To be sent"), "accent")
        if not sent_units
        else (translatable("Sent"), "good")
        if sent_units == current_units
        else (translatable("Partly sent"), "warning")
    )
    return OrderSummary(
        order.id,
        order.name,
        dt.datetime.fromtimestamp(order.created, dt.UTC),
        [_summary_of_line(line, language) for line in order.lines],
        pictures.total_of([(line, line.quantity) for line in order.lines], language),
        status,
        kind,
        can_be_sent=not is_cancelled and sent_units < current_units,
        can_be_cancelled=not is_cancelled and current_units > 0 and not sent_units,
        can_be_returned=not is_cancelled and current_units > 0,
    )


def _summary_of_line(line: LineItem, language: Language) -> LineSummary:
    picture = pictures.picture_titled(line.title, line.variant_title)
    total = pictures.total_of([(line, line.quantity)], language)
    return LineSummary(picture, line.title, line.variant_title, line.quantity, line.quantity - line.current, total)


def search_text(order: Order, language: Language) -> str:
    """The text in which an order is searched for: its number, its products and their variants, also in a language."""
    titles = [title for line in order.lines for title in (line.title, line.variant_title)]
    return " ".join((order.name, *titles, *(site.local_title(language, title) for title in titles)))


def address_of(domain: str, order: Order) -> str:
    """The path of the page that confirms an order."""
    return f"/{domain}/orders/{order.id}"


def routes(platform: PlatformState) -> list[BaseRoute]:
    """The page that confirms an order."""

    async def show(request: Request) -> Response:
        domain = request.path_params["shop"]
        try:
            shop, order = platform.shop(domain), orders.find(platform, domain, request.path_params["id"])
        except ShopifyRefusal as refusal:
            return site.page(request, "gone.html", 404, why=str(refusal))
        values: dict[str, Any] = {
            "app": platform.app,
            "shop": shop,
            "order": summary_of(order, serving.language_of(request)),
        }
        return site.page(request, "order.html", in_frame=site.is_in_frame(request), scripts=["times.js"], **values)

    return [Route("/{shop}/orders/{id:int}", show)]
