"""The documents of an authorization server: metadata (RFC 8414 or OpenID Connect Discovery) and keys (RFC 7517)."""

import asyncio
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec
import structlog
from msgspec import Struct

from holdfast.kit.security.http_client import HttpClient, trusted_certificates
from holdfast.kit.security.public_keys import PublicKey, usable_keys

READ_TIMEOUT_SECONDS = 5.0
"""Seconds that reading the metadata and the keys may take together."""

MAX_DOCUMENT_BYTES = 262_144
"""The most bytes of one document."""

MAX_KEYS = 10
"""The most keys of a set that are used: a token without a key id is tried with each of them."""

T = TypeVar("T")

log = structlog.get_logger()


class _Metadata(Struct):
    issuer: str
    jwks_uri: str


class _KeySet(Struct):
    keys: list[dict[str, Any]]


async def read(issuer: str) -> list[PublicKey]:
    """The keys with which an issuer signs now. Raises `TimeoutError`, `ValueError`, or an error of the HTTP client."""
    async with asyncio.timeout(READ_TIMEOUT_SECONDS), await _client() as http:
        address = await _find_jwks_uri(http, issuer)
        keys = [*islice(usable_keys((await _get(http, address, _KeySet)).keys), MAX_KEYS + 1)]
    if len(keys) > MAX_KEYS:
        log.warning("the authorization server has more keys than are used", issuer=issuer, used=MAX_KEYS)
    return keys[:MAX_KEYS]


async def _client() -> httpx2.AsyncClient:
    """An HTTP client for one reading."""
    # Compressed answers are not accepted: they could be far larger than the counted bytes.
    headers = {"accept": "application/json", "accept-encoding": "identity"}
    trusted = await asyncio.to_thread(trusted_certificates)
    return HttpClient(headers=headers, timeout=READ_TIMEOUT_SECONDS, verify=trusted, follow_redirects=False)


async def _find_jwks_uri(http: httpx2.AsyncClient, issuer: str) -> str:
    """The address at which an issuer publishes its keys."""
    failures: list[str] = []
    for address in addresses(issuer):
        try:
            metadata = await _get(http, address, _Metadata)
        except ValueError as error:
            failures.append(f"{address}: {error}")
            continue
        if metadata.issuer != issuer:
            failures.append(f"{address}: it is the metadata of {metadata.issuer[:200]!r}")
        elif issuer.startswith("https:") and not metadata.jwks_uri.startswith("https:"):
            failures.append(f"{address}: its jwks_uri is not https")
        else:
            return metadata.jwks_uri
    raise ValueError("; ".join(failures))


def addresses(issuer: str) -> list[str]:
    """The addresses at which the metadata of an issuer may be, in the order in which they are tried."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.removesuffix("/")
    return [
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}/.well-known/openid-configuration{path}",
        *([f"{origin}{path}/.well-known/openid-configuration"] if path else []),
    ]


async def _get(http: httpx2.AsyncClient, address: str, kind: type[T]) -> T:
    """The document at an address. Raises `ValueError` if it does not exist or cannot be decoded."""
    content = bytearray()
    async with http.stream("GET", address) as response:
        if response.status_code != 200:
            raise ValueError(f"the answer is {response.status_code}")
        async for piece in response.aiter_raw():
            content += piece
            if len(content) > MAX_DOCUMENT_BYTES:
                raise ValueError(f"the answer is longer than {MAX_DOCUMENT_BYTES} bytes")
    return msgspec.json.decode(content, type=kind)  # msgspec's errors are ValueErrors
