"""The three signatures of the platform: of storefront requests, of the queries of browsers, and of webhooks.

The app proxy's signature proves that a request came through a shop's storefront (shopify.dev, "Authenticate app
proxies"). The message has no separators, so one signature fits several ways of cutting it into parameters, and a
visitor of a storefront can add parameters. So the platform's own parameters are all required, once, each in its own
shape, and the name of none of them, with its "=", stands in the message again: then each of them has one place, and
only one way of cutting them is left.

The signature of a query proves that the platform sent a merchant's browser to a page of the service (shopify.dev,
"Authorization code grant"). This message has separators, and escapes them in names and values. So one signature fits
one set of parameters. The app proxy signs, with the same secret, parameters that a visitor of a storefront chooses and
that may have separators. Its message always has `path_prefix=`, which is refused here.

The signature of a webhook is Base64 of the HMAC-SHA256 of the unchanged bytes of the body (shopify.dev, "Verify webhook
deliveries"). The headers are not signed: where it matters, the subject of a delivery must be read from its body. The
message of the app proxy is sorted and has parameters whose names begin with letters. So it never begins with a brace,
as a webhook does.
"""

import base64
import hmac
import re
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, urlencode

from holdfast.inventory.problems import INVALID_SIGNATURE
from holdfast.inventory.shopify.domains import DOMAIN

MAX_CLOCK_DIFFERENCE_SECONDS = 90
"""The most seconds by which a signature may be old, or early."""

MAX_QUERY_PARAMETERS = 20
"""The most parameters that a query may have."""

QUERY_SHAPES = {
    "hmac": re.compile(r"[0-9a-f]{64}"),
    "shop": re.compile(DOMAIN),
    "timestamp": re.compile(r"[0-9]{10}"),
}
"""The parameters of every signed query."""


PROXY_PARAMETER = "path_prefix="
"""A parameter of every message of the app proxy, and of no message of this kind."""

PROXY_SHAPES = {
    "logged_in_customer_id": re.compile(r"[0-9]{0,20}"),  # empty when no customer is logged in
    "path_prefix": re.compile(r"/(?:a|apps|community|tools)/[A-Za-z0-9_-]{1,30}"),
    "shop": re.compile(DOMAIN),
    "signature": re.compile(r"[0-9a-f]{64}"),
    "timestamp": re.compile(r"[0-9]{10}"),
}
"""The parameters of every message of the app proxy."""

MAX_PROXY_PARAMETERS = 100
"""The most parameters that a message of the app proxy may have."""


def query_message(parameters: Mapping[str, str]) -> str:
    """The signed message of decoded parameters: `name=value`, sorted, joined by `&`."""
    return "&".join(
        sorted(f"{_escaped(name).replace('=', '%3D')}={_escaped(value)}" for name, value in parameters.items())
    )


def query_signature(parameters: Mapping[str, str], secret: bytes) -> str:
    """The hexadecimal signature of decoded parameters."""
    return hmac.digest(secret, query_message(parameters).encode(), "sha256").hex()


def verify_query(query_string: bytes, secrets: Sequence[bytes], now: float) -> Mapping[str, str]:
    """The parameters of a query that the platform signed. Raises `invalid_signature`.

    `shop` is the domain of a shop. The values of the other parameters are not checked.

    secrets    the app's client secrets, one of which must have signed
    now        seconds since 1970
    """
    pairs = _pairs(query_string, MAX_QUERY_PARAMETERS)
    values = dict(pairs)
    if len(values) != len(pairs):
        raise INVALID_SIGNATURE()
    if not all(shape.fullmatch(values.get(name, "")) for name, shape in QUERY_SHAPES.items()):
        raise INVALID_SIGNATURE()
    claimed = values.pop("hmac").encode()
    if PROXY_PARAMETER in query_message(values):
        raise INVALID_SIGNATURE()
    if not any(hmac.compare_digest(claimed, query_signature(values, secret).encode()) for secret in secrets):
        raise INVALID_SIGNATURE()
    if abs(now - int(values["timestamp"])) > MAX_CLOCK_DIFFERENCE_SECONDS:
        raise INVALID_SIGNATURE()
    return values


def sign_query(parameters: Mapping[str, str], secret: bytes, now: float) -> str:
    """The query string that the platform would send with these parameters."""
    values = {**parameters, "timestamp": str(int(now))}
    return urlencode({**values, "hmac": query_signature(values, secret)})


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("&", "%26")


def is_webhook_signed(body: bytes, claimed: bytes, secrets: Sequence[bytes]) -> bool:
    """Whether the platform signed a body. `claimed` may be any bytes.

    secrets    the app's client secrets; for an hour after a rotation the platform may sign with the old one
    """
    return body.startswith(b"{") and any(hmac.compare_digest(claimed, sign_webhook(body, secret)) for secret in secrets)


def sign_webhook(body: bytes, secret: bytes) -> bytes:
    """The signature of a body, as in the header `X-Shopify-Hmac-Sha256`."""
    return base64.b64encode(hmac.digest(secret, body, "sha256"))


Pairs = Sequence[tuple[str, str]]


def proxy_signature(parameters: Pairs, secret: bytes) -> str:
    """The hexadecimal signature of decoded parameters: sorted by name, repeated values joined by commas."""
    return hmac.digest(secret, proxy_message(parameters).encode(), "sha256").hex()


def proxy_message(parameters: Pairs) -> str:
    """The text that is signed."""
    grouped: dict[str, list[str]] = {}
    for name, value in parameters:
        grouped.setdefault(name, []).append(value)
    return "".join([f"{name}={','.join(grouped[name])}" for name in sorted(grouped)])


def verify_proxy_query(query_string: bytes, secrets: Sequence[bytes], now: float) -> str:
    """The domain of the shop of a request. Raises `invalid_signature`, without a reason.

    secrets    the app's client secrets, one of which must have signed
    now        seconds since 1970
    """
    parameters = _pairs(query_string, MAX_PROXY_PARAMETERS)
    values = dict(parameters)
    names = [name for name, _ in parameters]
    if not all(names.count(name) == 1 and shape.fullmatch(values[name]) for name, shape in PROXY_SHAPES.items()):
        raise INVALID_SIGNATURE()
    claimed = values["signature"].encode()
    signed = [pair for pair in parameters if pair[0] != "signature"]
    message = proxy_message(signed)
    if not all(message.count(f"{name}=") == 1 for name in PROXY_SHAPES.keys() - {"signature"}):
        raise INVALID_SIGNATURE()
    if not any(hmac.compare_digest(claimed, proxy_signature(signed, secret).encode()) for secret in secrets):
        raise INVALID_SIGNATURE()
    if abs(now - int(values["timestamp"])) > MAX_CLOCK_DIFFERENCE_SECONDS:
        raise INVALID_SIGNATURE()
    return values["shop"]


def sign_proxy_query(
    shop: str, secret: bytes, now: float, *, customer: str = "", prefix: str = "/apps/inventory"
) -> str:
    """The query string that the platform would send for a shop.

    customer    id of the customer who is signed in
    prefix      the path of the proxy in the shop
    """
    parameters = [
        ("shop", shop),
        ("logged_in_customer_id", customer),
        ("path_prefix", prefix),
        ("timestamp", str(int(now))),
    ]
    return urlencode([*parameters, ("signature", proxy_signature(parameters, secret))])


def _pairs(query_string: bytes, max_parameters: int) -> list[tuple[str, str]]:
    """The parameters of a query that must be well-formed. Raises `invalid_signature`."""
    try:
        return parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            max_num_fields=max_parameters,
            errors="strict",
        )
    except ValueError as error:
        raise INVALID_SIGNATURE() from error
