"""The proxy of a storefront: requests that the platform signs and passes on to the app."""

import hmac
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

import httpx2

from holdfast.kit.security.http_client import HttpClient, trusted_certificates
from holdfast_demo.shopify.platform_state import PlatformState

PREFIX, SUBPATH = "apps", "holdfast"
PROXY_TIMEOUT_SECONDS = 10


async def ask_app(
    platform: PlatformState,
    domain: str,
    path: str,
    params: Sequence[tuple[str, str]] = (),
    headers: Mapping[str, str] | None = None,
) -> httpx2.Response:
    """The answer of the app to a request of a storefront. Raises `httpx2.HTTPError` if the app does not answer."""
    url = f"{platform.app.address}/storefront/{path}?{_signed_query(platform, domain, params)}"
    transport = platform.transport
    async with HttpClient(
        timeout=PROXY_TIMEOUT_SECONDS, verify=trusted_certificates(), trust_env=False, transport=transport
    ) as client:
        return await client.get(url, headers=headers)


async def live_numbers(platform: PlatformState, domain: str) -> Mapping[str, int]:
    """How many of each variant can be sold, by its gid, as the app says; empty if the app does not answer.

    A variant that is in no pool is missing.
    """
    try:
        answer = await ask_app(platform, domain, "availability")
    except httpx2.HTTPError:
        return {}
    return answer.json()["variants"] if answer.is_success else {}


def signature(params: Sequence[tuple[str, str]], secret: str) -> str:
    """The signature of a request through a storefront: over the sorted parameters without separators."""
    grouped: dict[str, list[str]] = {}
    for name, value in params:
        grouped.setdefault(name, []).append(value)
    message = "".join(sorted(f"{name}={','.join(values)}" for name, values in grouped.items()))
    return hmac.digest(secret.encode(), message.encode(), "sha256").hex()


def _signed_query(platform: PlatformState, domain: str, params: Sequence[tuple[str, str]]) -> str:
    """A query with the parameters and the signature that the platform adds."""
    parameters = [
        *params,
        ("shop", domain),
        ("logged_in_customer_id", ""),
        ("path_prefix", f"/{PREFIX}/{SUBPATH}"),
        ("timestamp", str(int(platform.now()))),
    ]
    return urlencode([*parameters, ("signature", signature(parameters, platform.app.client_secret))])
