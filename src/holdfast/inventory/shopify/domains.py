"""Domains of shops: the one name by which the platform, storefronts and operators call a shop."""

import re

DOMAIN = r"[a-z0-9][a-z0-9-]{0,59}\.myshopify\.com"
"""The whole of a shop's domain, as a regular expression."""

_DOMAIN = re.compile(DOMAIN)


def is_domain(text: str) -> bool:
    """Whether a text is the domain of a shop, as a whole and in lower case."""
    return _DOMAIN.fullmatch(text) is not None
