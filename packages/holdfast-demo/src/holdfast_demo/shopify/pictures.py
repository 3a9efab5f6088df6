"""The pictures of products: what they show, and the files that the servers of the platform have."""

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from holdfast.kit.pages.language import Language
from holdfast_demo.shopify.model import LineItem, Product, Variant
from holdfast_demo.shopify.platform_state import PlatformState

MAX_PICTURED_UNITS = 12
MIN_PLACES, MAX_PLACES = 50, 150
"""How many places the picture of a stock has: one for each unit, and empty ones for what was sold."""

CURRENCY = "EUR"

_KINDS = {
    "honey": "jar",
    "chestnut": "chestnut",
    "syrup": "bottle",
    "tea": "tea",
    "candle": "candle",
    "soap": "soap",
    "mustard": "mustard",
}
_PACK = re.compile(r"(\d{1,4})[- ]?pack\b|pack of (\d{1,4})\b|^(\d{1,4}) x ", re.IGNORECASE)
_MEASURE = re.compile(r"(\d{1,5}) (g|ml)")

PRICED_MEASURE = 100
"""How many grams or millilitres a price for comparison is of."""


class Picture(NamedTuple):
    """A picture of a pack: `kind` is the id of a drawing in `drawings.svg`."""

    kind: str
    units: int


def picture_of(variant: Variant) -> Picture:
    """The picture of a variant, by the words of its titles."""
    return picture_titled(variant.product_title, variant.title)


def picture_titled(product_title: str, title: str) -> Picture:
    """The picture of a pack with these titles."""
    return Picture(_kind_of(product_title), min(max(units_in(title), 1), MAX_PICTURED_UNITS))


def _kind_of(title: str) -> str:
    # The last word that fits says what it is: honey mustard is mustard.
    kinds = [kind for word, kind in _KINDS.items() if word in title.lower()]
    return kinds[-1] if kinds else "box"


def units_in(title: str) -> int:
    """How many units a pack with this title has; 1 if the title does not say."""
    if title.lower() == "dozen":
        return 12
    match = _PACK.search(title)
    return int(next(group for group in match.groups() if group)) if match else 1


def amount_in(title: str) -> tuple[int, str]:
    """How much a pack with this title has, and of which measure: `g` or `ml`; empty: of units."""
    match = _MEASURE.fullmatch(title)
    return (int(match[1]), match[2]) if match else (units_in(title), "")


def stock_places(available: int) -> Sequence[bool]:
    """The places of a stock: whether there is a unit in each."""
    return [place < available for place in range(min(max(MIN_PLACES, available), MAX_PLACES))]


def price_of(variant: Variant, language: Language) -> str:
    """The price of a variant, for people."""
    return language.money(cents_of(variant), CURRENCY)


class Saving(NamedTuple):
    """What a pack costs less than as much of the same in the smallest pack, for people.

    unit_price    the price of one unit, or of `measure`
    measure       such as `100 g`; empty: packs are counted in units
    """

    unit_price: str
    less: str
    measure: str = ""


def savings_of(variants: Sequence[Variant], language: Language) -> dict[int, Saving]:
    """The savings of the larger packs of a product against its smallest one, by the ids of the packs.

    Packs of which none is a single unit are not compared, unless all of them have a measure.
    """
    amounts = {variant.id: amount_in(variant.title) for variant in variants}
    smallest = min(variants, key=lambda variant: amounts[variant.id])
    least, measure = amounts[smallest.id]
    is_comparable = least > 0 if measure else least == 1
    if not is_comparable or len({measure for _, measure in amounts.values()}) > 1:
        return {}
    priced = PRICED_MEASURE if measure else 1
    savings: dict[int, Saving] = {}
    for variant in variants:
        amount, cents = amounts[variant.id][0], cents_of(variant)
        less = round(cents_of(smallest) * amount / least) - cents
        if amount > least and less > 0:
            unit_price = language.money(round(cents * priced / amount), CURRENCY)
            savings[variant.id] = Saving(
                unit_price, language.money(less, CURRENCY), f"{priced}\N{NO-BREAK SPACE}{measure}" if measure else ""
            )
    return savings


def cents_of(pack: Variant | LineItem) -> int:
    """The price of a pack in cents."""
    units, _, cents = pack.price.partition(".")
    return int(units) * 100 + int(f"{cents}00"[:2])


def total_of(quantities: Sequence[tuple[Variant | LineItem, int]], language: Language) -> str:
    """The price of packs together, by the quantity of each, as people read it."""
    return language.money(sum(cents_of(pack) * quantity for pack, quantity in quantities), CURRENCY)


FOLDER = "files/products"

DRAWINGS = Path(__file__).parent / "templates" / "drawings.svg"

_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="-6 -4 24 24" width="240" height="240">
<rect x="-6" y="-4" width="24" height="24" fill="#f3ead7"/>
{}
</svg>
"""


@lru_cache(maxsize=1_000)
def svg_of(title: str) -> str:
    """The picture of a product with this title, as a file."""
    drawings = DRAWINGS.read_text(encoding="utf-8")
    [drawing] = [line for line in drawings.splitlines() if line.startswith(f'<g id="{_kind_of(title)}">')]
    return _SVG.format(drawing)


def address(platform: PlatformState, shop: str, product: Product) -> str:
    """The address of the picture of a product."""
    return f"{platform.at(shop)}/{FOLDER}/{product.id}.svg"


def routes(platform: PlatformState) -> list[BaseRoute]:
    """The route of the pictures."""

    async def picture(request: Request) -> Response:
        product = platform.store.find(Product, request.path_params["shop"], request.path_params["id"])
        if product is None:
            return PlainTextResponse("Not found", 404)
        return Response(svg_of(product.title), media_type="image/svg+xml", headers={"cache-control": "max-age=3600"})

    return [Route(f"/{{shop}}/{FOLDER}/{{id:int}}.svg", picture)]
