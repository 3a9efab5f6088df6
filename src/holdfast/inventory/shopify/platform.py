"""Requests to the storefront platform: one client for all shops, with bounded times and bounded answers."""

import asyncio
import math
import re
import ssl
from collections.abc import AsyncGenerator, Mapping
from functools import cache, cached_property
from typing import Any, NamedTuple

import httpx2
import msgspec

SECONDS = 30.0
"""How long a call may take as a whole."""

LARGEST = 16 * 1_048_576
"""The most bytes of an answer."""

LONGEST_WAIT = 300.0
"""The most seconds that the platform may make us wait at once."""


class Unreachable(Exception):
    """The platform did not answer, or not with an answer to this call. It may have acted.

    retry_after    seconds after which the platform wants to be asked again, if it said so
    """

    def __init__(self, why: str, retry_after: float | None = None) -> None:
        super().__init__(why)
        self.retry_after = retry_after


class Refused(Exception):
    """The platform will not do this. The message says why, in its own words.

    code    the platform's code for it, such as `invalid_grant` or `ACCESS_DENIED`; empty if it gave none
    """

    def __init__(self, why: str, code: str = "") -> None:
        super().__init__(why)
        self.code = code


class TokenDead(Refused):
    """The platform no longer accepts the access token."""


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def retry_after(self) -> float | None:
        """The seconds in the header Retry-After, bounded; None if there is none that can be read."""
        text = self.headers.get("retry-after", "")
        # It is written 2.0 in this platform's answers.
        return min(float(text), LONGEST_WAIT) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) else None


class Platform:
    """The storefront platform.

    address    the address of a shop, with `{shop}` where its domain stands
    version    the version of its API, such as `2026-10`
    """

    def __init__(self, address: str, version: str, *, seconds: float = SECONDS) -> None:
        self._address = address
        self.version = version
        self._seconds = seconds

    @cached_property
    def _client(self) -> httpx2.AsyncClient:
        limits = httpx2.Limits(max_connections=64, max_keepalive_connections=32, keepalive_expiry=30)
        return httpx2.AsyncClient(timeout=self._seconds, limits=limits, verify=_trust(), trust_env=False)

    def at(self, shop: str, path: str) -> str:
        """The address of a path of a shop."""
        return f"{self._address.replace('{shop}', shop)}{path}"

    async def post(self, url: str, body: Any, headers: Mapping[str, str] | None = None) -> Answer:
        """Send JSON, and return the whole answer whatever its status is. Raises `Unreachable`."""
        sent = {"content-type": "application/json", "accept": "application/json", **(headers or {})}
        try:
            async with (
                asyncio.timeout(self._seconds),
                self._client.stream("POST", url, content=msgspec.json.encode(body), headers=sent) as response,
            ):
                content = bytearray()
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > LARGEST:
                        raise Unreachable(f"The answer of the platform has more than {LARGEST} bytes.")
                return Answer(response.status_code, dict(response.headers), bytes(content))
        except TimeoutError as error:
            raise Unreachable(f"The platform took longer than {math.ceil(self._seconds)} seconds.") from error
        except httpx2.RequestError as error:
            raise Unreachable(f"The platform cannot be reached: {str(error) or type(error).__name__}") from error

    async def lines(self, url: str) -> AsyncGenerator[bytes]:
        """The lines of a large file of the platform, one after the other. Raises `Unreachable`."""
        rest = b""
        try:
            async with self._client.stream("GET", url) as response:
                if response.status_code != 200:
                    raise Unreachable(f"The file of the platform is answered with status {response.status_code}.")
                async for chunk in response.aiter_bytes():
                    *whole, rest = (rest + chunk).split(b"\n")
                    for line in whole:
                        yield line
                    if len(rest) > LARGEST:
                        raise Unreachable(f"A line of the platform's file has more than {LARGEST} bytes.")
        except httpx2.RequestError as error:
            raise Unreachable(f"The platform cannot be reached: {str(error) or type(error).__name__}") from error
        if rest:
            yield rest

    async def close(self) -> None:
        """Close its connections, if there are any."""
        if "_client" in self.__dict__:
            await self._client.aclose()


def failed(answer: Answer) -> Unreachable | None:
    """What an answer means that is none to the call: the platform is busy, or has a fault. None for any other."""
    if answer.status == 429:
        return Unreachable("The platform is called too often.", answer.retry_after or 1.0)
    if answer.status == 408 or answer.status >= 500:
        return Unreachable(f"The platform answered with status {answer.status}.", answer.retry_after)
    return None


@cache
def _trust() -> ssl.SSLContext:
    """The certificate authorities that are trusted: read once, since that takes as long as many calls."""
    return httpx2.create_ssl_context()
