"""The signature of a query proves that the platform sent a merchant's browser to a page of the service.

Source: shopify.dev, "Authorization code grant". Unlike the message of the app proxy, this one has separators, and
escapes them in names and values. So one signature fits one set of parameters.

The app proxy signs, with the same secret, parameters that a visitor of a storefront chooses and that may have
separators. Its message always has `path_prefix=`, which is refused here.
"""

import hmac
import re
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, urlencode

from holdfast.inventory.problems import INVALID_SIGNATURE
from holdfast.inventory.shopify.domains import DOMAIN

MAX_CLOCK_DIFFERENCE_SECONDS = 90
"""The most seconds by which a signature may be old, or early."""

MAX_PARAMETERS = 20
"""The most parameters that a query may have."""

SHAPES = {
    "hmac": re.compile(r"[0-9a-f]{64}"),
    "shop": re.compile(DOMAIN),
    "timestamp": re.compile(r"[0-9]{10}"),
}
"""The parameters of every signed query."""


PROXY_PARAMETER = "path_prefix="
"""A parameter of every message of the app proxy, and of no message of this kind."""


def message(parameters: Mapping[str, str]) -> str:
    """Return the signed message of decoded parameters: `name=value`, sorted, joined by `&`."""
    return "&".join(
        sorted(f"{_escaped(name).replace('=', '%3D')}={_escaped(value)}" for name, value in parameters.items())
    )


def signature(parameters: Mapping[str, str], secret: bytes) -> str:
    """Return the hexadecimal signature of decoded parameters."""
    return hmac.digest(secret, message(parameters).encode(), "sha256").hex()


def verify(query_string: bytes, secrets: Sequence[bytes], now: float) -> Mapping[str, str]:
    """Return the parameters of a query that the platform signed. Raises `invalid_signature`.

    `shop` is the domain of a shop. The values of the other parameters are not checked.

    secrets    the app's client secrets, one of which must have signed
    now        seconds since 1970
    """
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            max_num_fields=MAX_PARAMETERS,
            errors="strict",
        )
    except ValueError as error:
        raise INVALID_SIGNATURE() from error
    values = dict(pairs)
    if len(values) != len(pairs):
        raise INVALID_SIGNATURE()
    if not all(shape.fullmatch(values.get(name, "")) for name, shape in SHAPES.items()):
        raise INVALID_SIGNATURE()
    claimed = values.pop("hmac").encode()
    if PROXY_PARAMETER in message(values):
        raise INVALID_SIGNATURE()
    if not any(hmac.compare_digest(claimed, signature(values, secret).encode()) for secret in secrets):
        raise INVALID_SIGNATURE()
    if abs(now - int(values["timestamp"])) > MAX_CLOCK_DIFFERENCE_SECONDS:
        raise INVALID_SIGNATURE()
    return values


def sign(parameters: Mapping[str, str], secret: bytes, now: float) -> str:
    """Return the query string that the platform would send with these parameters."""
    values = {**parameters, "timestamp": str(int(now))}
    return urlencode({**values, "hmac": signature(values, secret)})


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("&", "%26")
