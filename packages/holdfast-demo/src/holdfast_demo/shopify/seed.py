"""The products of a new demo shop: one that is sold in packs of one, six and twelve, and another one; and more of them
for people who try the app.
"""

from holdfast_demo.shopify.model import Variant
from holdfast_demo.shopify.platform_state import PlatformState
from holdfast_demo.shopify.shops import NewVariant, add_product

# The pool of the demo shop is made with these ids of honey, so that it matches from the first sale on.
HONEY = (
    NewVariant("Single", "HONEY-1", "6.00", stock=50, id=1001),
    NewVariant("6-pack", "HONEY-6", "33.00", stock=8, id=1006),
    NewVariant("12-pack", "HONEY-12", "60.00", stock=4, id=1012),
)
TEA = (
    NewVariant("100 g", "TEA-100", "7.00", stock=50),
    NewVariant("250 g", "TEA-250", "15.00", stock=20),
)
MORE = {
    "Beeswax candles": (
        NewVariant("Single", "CANDLE-1", "9.00", stock=72),
        NewVariant("Pack of 3", "CANDLE-3", "25.00", stock=24),
    ),
    "Lavender soap": (
        NewVariant("Single", "SOAP-1", "5.00", stock=60),
        NewVariant("4-pack", "SOAP-4", "18.00", stock=5),
        NewVariant("Dozen", "SOAP-12", "50.00", stock=2),
    ),
    "Honey mustard": (
        NewVariant("1 x 200 ml", "MUSTARD-1", "4.50", stock=36),
        NewVariant("6 x 200 ml", "MUSTARD-6", "24.00", stock=6),
    ),
}
"""Products for which the app can suggest pools."""


def fill(world: PlatformState, shop: str) -> list[Variant]:
    """Put the products of a new demo shop into a shop. Returns the variants of the first."""
    with world.happening():
        product = add_product(world, shop, "Honey jars", HONEY)
        add_product(world, shop, "Green tea", TEA)
        return product


def add_more(world: PlatformState, shop: str) -> None:
    """Put the other products into a shop."""
    with world.happening():
        for title, variants in MORE.items():
            add_product(world, shop, title, variants)
