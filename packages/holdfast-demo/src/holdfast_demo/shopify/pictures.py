"""What the pictures of products show: the kind of thing, and how many of it are in a pack."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.kit.pages.language import ENGLISH, Language
from holdfast_demo.shopify.model import Variant

MAX_PICTURED_UNITS = 12
MIN_PLACES, MAX_PLACES = 50, 150
"""How many places the picture of a stock has: one for each unit, and empty ones for what was sold."""

CURRENCY = "EUR"

_KINDS = {"honey": "jar", "tea": "tea", "candle": "candle", "soap": "soap", "mustard": "mustard"}
_PACK = re.compile(r"(\d{1,4})[- ]?pack\b|pack of (\d{1,4})\b|^(\d{1,4}) x ", re.IGNORECASE)


class Picture(NamedTuple):
    """A picture of a pack: `kind` is the name of a drawing in `pictures.html`."""

    kind: str
    units: int


def picture_of(variant: Variant) -> Picture:
    """The picture of a variant, by the words of its titles."""
    # The last word that fits says what it is: honey mustard is mustard.
    kinds = [kind for word, kind in _KINDS.items() if word in variant.product_title.lower()]
    return Picture(kinds[-1] if kinds else "box", min(max(units_in(variant.title), 1), MAX_PICTURED_UNITS))


def units_in(title: str) -> int:
    """How many units a pack with this title has; 1 if the title does not say."""
    if title.lower() == "dozen":
        return 12
    match = _PACK.search(title)
    return int(next(group for group in match.groups() if group)) if match else 1


def stock_places(available: int) -> Sequence[bool]:
    """The places of a stock: whether there is a unit in each."""
    return [place < available for place in range(min(max(MIN_PLACES, available), MAX_PLACES))]


def price_of(variant: Variant, language: Language = ENGLISH) -> str:
    """The price of a variant, for people."""
    units, _, cents = variant.price.partition(".")
    return language.money(int(units) * 100 + int(f"{cents}00"[:2]), CURRENCY)
