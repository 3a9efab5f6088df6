"""The access scopes that a merchant grants the app."""

from collections.abc import Collection

REQUIRED = ("read_products", "write_inventory", "read_orders", "read_locations")
"""What the service needs of a shop."""

CART_CHECK = "write_products"
"""What the cart check needs besides, which merchants may grant: who writes metafields of variants writes products."""


def missing(granted: Collection[str]) -> list[str]:
    """The required scopes that were not granted. Who may write may also read."""
    held = {*granted, *(f"read_{each.removeprefix('write_')}" for each in granted if each.startswith("write_"))}
    return [each for each in REQUIRED if each not in held]
