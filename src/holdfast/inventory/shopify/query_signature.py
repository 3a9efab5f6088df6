"""The signature of a query: how the platform proves that it sent a merchant's browser to the service's own pages.

Source: shopify.dev, "Authorization code grant". Unlike the message of the app proxy, this one has separators, and what
could pass for a separator is escaped. So one signature fits one set of parameters.
"""

import hmac
import re
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, urlencode

from holdfast.inventory.problems import INVALID_SIGNATURE
from holdfast.inventory.shopify.domains import DOMAIN

WINDOW = 90
"""Seconds by which a signature may be old, or early."""

MOST = 20
"""The most parameters that a query may have."""

SHAPES = {
    "hmac": re.compile(r"[0-9a-f]{64}"),
    "shop": re.compile(DOMAIN),
    "timestamp": re.compile(r"[0-9]{10}"),
}
"""What every signed query has."""


def signature(parameters: Mapping[str, str], secret: bytes) -> str:
    """The signature of decoded parameters, hexadecimal: `name=value`, sorted, with `&` between them."""
    pairs = sorted(f"{_escaped(name).replace('=', '%3D')}={_escaped(value)}" for name, value in parameters.items())
    return hmac.digest(secret, "&".join(pairs).encode(), "sha256").hex()


def verify(query_string: bytes, secrets: Sequence[bytes], now: float) -> Mapping[str, str]:
    """The parameters of a query that the platform signed. Raises `invalid_signature`.

    `shop` among them is the domain of a shop. The other parameters have no shape yet.

    secrets    the app's client secrets, any of which may have signed
    now        seconds since 1970
    """
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            max_num_fields=MOST,
            errors="strict",
        )
    except ValueError as error:
        raise INVALID_SIGNATURE("The query string cannot be read.") from error
    given = dict(pairs)
    if len(given) != len(pairs):
        raise INVALID_SIGNATURE("A parameter is given more than once.")
    if not all(shape.fullmatch(given.get(name, "")) for name, shape in SHAPES.items()):
        raise INVALID_SIGNATURE("A parameter of the storefront platform is missing or malformed.")
    claimed = given.pop("hmac").encode()
    if not any(hmac.compare_digest(claimed, signature(given, secret).encode()) for secret in secrets):
        raise INVALID_SIGNATURE()
    if abs(now - int(given["timestamp"])) > WINDOW:
        raise INVALID_SIGNATURE("The signature is too old, or from the future.")
    return given


def sign(parameters: Mapping[str, str], secret: bytes, now: float) -> str:
    """The query string the platform would send with these parameters."""
    given = {**parameters, "timestamp": str(int(now))}
    return urlencode({**given, "hmac": signature(given, secret)})


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("&", "%26")
