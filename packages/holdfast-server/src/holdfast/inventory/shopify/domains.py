"""Domains of shops: the name of a shop for the platform, storefronts and operators."""

import re

DOMAIN = r"[a-z0-9][a-z0-9-]{0,59}\.myshopify\.com"
"""The regular expression of a shop's domain."""

_DOMAIN = re.compile(DOMAIN)


def is_domain(text: str) -> bool:
    """Return whether a text is the domain of a shop, in lower case."""
    return _DOMAIN.fullmatch(text) is not None
