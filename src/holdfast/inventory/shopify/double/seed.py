"""What newcomers find in a shop: one thing that is sold one by one, by six and by twelve, and another beside it."""

from holdfast.inventory.shopify.double.model import Variant
from holdfast.inventory.shopify.double.shops import NewVariant, add_product
from holdfast.inventory.shopify.double.world import World

# The ids of honey are those that the pool of the demo shop is made with, so that it fits from the first sale on.
HONEY = (
    NewVariant("Single", "HONEY-1", "6.00", stock=50, id=1001),
    NewVariant("6-pack", "HONEY-6", "33.00", stock=8, id=1006),
    NewVariant("12-pack", "HONEY-12", "60.00", stock=4, id=1012),
)
TEA = (
    NewVariant("100 g", "TEA-100", "7.00", stock=50),
    NewVariant("250 g", "TEA-250", "15.00", stock=20),
)


def fill(world: World, shop: str) -> list[Variant]:
    """Put the products of a newcomer into a shop; the variants of the first are returned."""
    with world.happening():
        made = add_product(world, shop, "Honey jars", HONEY)
        add_product(world, shop, "Green tea", TEA)
        return made
