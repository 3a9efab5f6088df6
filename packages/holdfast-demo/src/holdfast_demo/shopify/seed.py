"""The products of a new demo shop: one that is sold in packs of one, six and twelve, and another one; and more of them
for people who try the app.
"""

from collections.abc import Sequence

from holdfast.kit.contract.messages import translatable
from holdfast_demo.shopify.model import Variant
from holdfast_demo.shopify.orders import SaleLine, sell
from holdfast_demo.shopify.platform_state import PlatformState
from holdfast_demo.shopify.shops import NewVariant, add_product

# The pool of the demo shop is made with these ids of honey.
HONEY = (
    NewVariant("Single", "HONEY-1", "6.00", stock=50, id=1001),
    NewVariant("6-pack", "HONEY-6", "33.00", stock=8, id=1006),
    NewVariant("12-pack", "HONEY-12", "60.00", stock=4, id=1012),
)
OVERSOLD_HONEY = tuple(variant._replace(stock=stock) for variant, stock in zip(HONEY, (50, 10, 6), strict=True))
"""Variants of honey in a shop that counts each pack by itself: it promises 182 jars of 50."""

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

PAST = {
    # Its 6-packs are sold out after twelve days, while singles lie there.
    "Chestnut honey": (
        (NewVariant("Single", "CHESTNUT-1", "8.00", stock=84), NewVariant("6-pack", "CHESTNUT-6", "44.00", stock=6)),
        [(2 * day, 1, 1) for day in range(1, 7)] + [(3 * day, 0, 4) for day in range(1, 10)] + [(29, 0, 6)],
    ),
    # 48 bottles, which the shop shows as 48 singles and as 12 4-packs: 54 are sold.
    "Elderflower syrup": (
        (NewVariant("Single", "SYRUP-1", "6.50", stock=48), NewVariant("4-pack", "SYRUP-4", "24.00", stock=12)),
        [(3, 1, 2), (6, 0, 8), (9, 1, 2), (12, 0, 7), (16, 1, 2), (20, 0, 6), (24, 0, 5), (27, 0, 4)],
    ),
}
"""Products with orders of the last 30 days: on which of the days, which of the variants, and how many."""

PAST_DAYS = 30

TITLES = frozenset(
    {
        *(translatable("Honey jars"), translatable("Green tea"), translatable("Beeswax candles")),
        *(translatable("Lavender soap"), translatable("Honey mustard"), translatable("Chestnut honey")),
        *(translatable("Elderflower syrup"), translatable("Single"), translatable("4-pack"), translatable("6-pack")),
        *(translatable("12-pack"), translatable("Pack of 3"), translatable("Dozen")),
        *(translatable("1 x 200 ml"), translatable("6 x 200 ml"), translatable("100 g"), translatable("250 g")),
    }
)
"""The titles of products and packs, which pages say in the language of their visitor."""

DESCRIPTIONS = {
    "Honey jars": translatable("Mild blossom honey from hives at the edge of a forest. 250\u00a0g in each jar."),
    "Green tea": translatable("First harvest, hand-picked. Fresh, with a hint of meadow grass."),
    "Beeswax candles": translatable("Pure beeswax, poured by hand. Each candle burns for about 20 hours."),
    "Lavender soap": translatable("Olive oil and lavender blossom. 100\u00a0g in each bar."),
    "Honey mustard": translatable("Coarse mustard with a spoonful of honey. Good with cheese."),
    "Chestnut honey": translatable("Dark and spicy, from chestnut trees in the south. 250\u00a0g in each jar."),
    "Elderflower syrup": translatable("From blossoms picked in June. One bottle makes four litres of lemonade."),
}
"""What the storefront says about products, by title."""


def fill(platform: PlatformState, shop: str, honey: Sequence[NewVariant] = HONEY) -> list[Variant]:
    """Put the products of a new demo shop into a shop. Returns the variants of the first."""
    with platform.happening():
        product = add_product(platform, shop, "Honey jars", honey)
        add_product(platform, shop, "Green tea", TEA)
        return product


def add_more(platform: PlatformState, shop: str) -> None:
    """Put the other products into a shop."""
    with platform.happening():
        for title, variants in MORE.items():
            add_product(platform, shop, title, variants)


def add_past(platform: PlatformState, shop: str) -> None:
    """Put products into a shop that have been sold for 30 days."""
    variants = {title: add_product(platform, shop, title, variants) for title, (variants, _) in PAST.items()}
    past: Sequence[tuple[float, SaleLine]] = sorted(
        (day, SaleLine(variants[title][variant].id, quantity))
        for title, (_, sales) in PAST.items()
        for day, variant, quantity in sales
    )
    for day, line in past:
        seconds = (PAST_DAYS - day) * 86_400
        platform.clock.advance(-seconds)
        sell(platform, shop, [line], even_if_sold_out=True)
        platform.clock.advance(seconds)
