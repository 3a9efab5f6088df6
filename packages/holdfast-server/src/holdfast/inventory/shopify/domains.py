"""Shops at the platform: their domains, and the access scopes that merchants grant."""

import re
from collections.abc import Collection

DOMAIN = r"[a-z0-9][a-z0-9-]{0,59}\.myshopify\.com"
"""The regular expression of a shop's domain."""

_DOMAIN = re.compile(DOMAIN)

REQUIRED = ("read_products", "write_inventory", "read_orders", "read_locations")
"""The scopes that the service needs."""

CART_CHECK = "write_products"
"""The optional scope of the cart check: metafields of variants are written with the scope of products."""


def is_domain(text: str) -> bool:
    """Whether a text is the domain of a shop, in lower case."""
    return _DOMAIN.fullmatch(text) is not None


def missing_scopes(granted_scopes: Collection[str]) -> list[str]:
    """The required scopes that were not granted. A write scope includes the read scope."""
    present_scopes = {
        *granted_scopes,
        *(f"read_{scope.removeprefix('write_')}" for scope in granted_scopes if scope.startswith("write_")),
    }
    return [scope for scope in REQUIRED if scope not in present_scopes]
