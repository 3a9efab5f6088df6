"""The app proxy's signature proves that a request came through a shop's storefront.

Source: shopify.dev, "Authenticate app proxies". The message has no separators, so one signature fits several ways of
cutting it into parameters, and a visitor of a storefront can add parameters. So the platform's own parameters are all
required, once, each in its own shape, and the name of none of them, with its "=", stands in the message again: then
each of them has one place, and only one way of cutting them is left.
"""

import hmac
import re
from collections.abc import Sequence
from urllib.parse import parse_qsl, urlencode

from holdfast.inventory.problems import INVALID_SIGNATURE
from holdfast.inventory.shopify.domains import DOMAIN

MAX_CLOCK_DIFFERENCE_SECONDS = 90
"""The most seconds by which a signature may be old, or early."""

SHAPES = {
    "logged_in_customer_id": re.compile(r"[0-9]{0,20}"),  # empty when nobody is logged in
    "path_prefix": re.compile(r"/(?:a|apps|community|tools)/[A-Za-z0-9_-]{1,30}"),
    "shop": re.compile(DOMAIN),
    "signature": re.compile(r"[0-9a-f]{64}"),
    "timestamp": re.compile(r"[0-9]{10}"),
}

MAX_PARAMETERS = 100

Pairs = Sequence[tuple[str, str]]


def signature(parameters: Pairs, secret: bytes) -> str:
    """Return the hexadecimal signature of decoded parameters: sorted by name, repeated values joined by commas."""
    return hmac.digest(secret, signed_text(parameters).encode(), "sha256").hex()


def signed_text(parameters: Pairs) -> str:
    """The text that is signed."""
    grouped: dict[str, list[str]] = {}
    for name, value in parameters:
        grouped.setdefault(name, []).append(value)
    return "".join([f"{name}={','.join(grouped[name])}" for name in sorted(grouped)])


def verify(query_string: bytes, secrets: Sequence[bytes], now: float) -> str:
    """Return the domain of the shop of a request. Raises `invalid_signature`, without a reason.

    secrets    the app's client secrets, one of which must have signed
    now        seconds since 1970
    """
    try:
        parameters = parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            max_num_fields=MAX_PARAMETERS,
            errors="strict",
        )
    except ValueError as error:
        raise INVALID_SIGNATURE() from error
    values = dict(parameters)
    names = [name for name, _ in parameters]
    if not all(names.count(name) == 1 and shape.fullmatch(values[name]) for name, shape in SHAPES.items()):
        raise INVALID_SIGNATURE()
    claimed = values["signature"].encode()
    signed = [pair for pair in parameters if pair[0] != "signature"]
    message = signed_text(signed)
    if not all(message.count(f"{name}=") == 1 for name in SHAPES.keys() - {"signature"}):
        raise INVALID_SIGNATURE()
    if not any(hmac.compare_digest(claimed, signature(signed, secret).encode()) for secret in secrets):
        raise INVALID_SIGNATURE()
    if abs(now - int(values["timestamp"])) > MAX_CLOCK_DIFFERENCE_SECONDS:
        raise INVALID_SIGNATURE()
    return values["shop"]


def sign(shop: str, secret: bytes, now: float, *, customer: str = "", prefix: str = "/apps/inventory") -> str:
    """Return the query string that the platform would send for a shop.

    customer    id of the customer who is signed in
    prefix      the path of the proxy in the shop
    """
    parameters = [
        ("shop", shop),
        ("logged_in_customer_id", customer),
        ("path_prefix", prefix),
        ("timestamp", str(int(now))),
    ]
    return urlencode([*parameters, ("signature", signature(parameters, secret))])
