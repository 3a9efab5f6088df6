"""The access scopes that a merchant grants the app."""

from collections.abc import Collection

REQUIRED = ("read_products", "write_inventory", "read_orders", "read_locations")
"""The scopes that the service needs."""

CART_CHECK = "write_products"
"""The optional scope of the cart check: metafields of variants are written with the scope of products."""


def missing_scopes(granted: Collection[str]) -> list[str]:
    """Return the required scopes that were not granted. A write scope includes the read scope."""
    held = {*granted, *(f"read_{scope.removeprefix('write_')}" for scope in granted if scope.startswith("write_"))}
    return [scope for scope in REQUIRED if scope not in held]
