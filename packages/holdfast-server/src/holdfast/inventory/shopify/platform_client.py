"""Requests to the storefront platform: one client for all shops, with bounded times and bounded answers."""

import asyncio
import math
import re
from collections.abc import AsyncGenerator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import httpx2
import msgspec

from holdfast.kit.contract.bounds import bound_without_strangers
from holdfast.kit.security.http_client import HttpClient, trusted_certificates

CALL_TIMEOUT_SECONDS = 30.0
"""The most seconds that a call may take."""

MAX_ANSWER_BYTES = 16 * 1_048_576
"""The most bytes of an answer."""

MAX_CONCURRENT_CALLS = 64
"""Connections of one process to the platform."""

PLATFORM_CALLS = bound_without_strangers(
    name="Calls of the storefront platform",
    service="inventory",
    total=f"{MAX_CONCURRENT_CALLS}",
    tenant="none; the platform limits each shop",
)

MAX_RETRY_AFTER_SECONDS = 300.0
"""The longest wait that the platform may ask for."""

MAX_CHARACTERS = 300
"""The most characters of a text that are kept."""

_UNSTORABLE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")

_ESCAPE = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.", re.DOTALL)
"""An escape of JSON; the two halves of one character are one."""


class PlatformUnreachable(Exception):
    """The platform did not answer, or not with an answer to this call. It may have acted.

    retry_after    seconds after which the platform asks to be called again, if it said so
    """

    def __init__(self, why: str, retry_after: float | None = None) -> None:
        super().__init__(why)
        self.retry_after = retry_after


class PlatformRefusal(Exception):
    """The platform refused a call. The message has the platform's own words.

    code    the platform's code for it, such as `invalid_grant` or `ACCESS_DENIED`; empty if it gave none
    """

    def __init__(self, why: str, code: str = "") -> None:
        super().__init__(why)
        self.code = code


class TokenRefusal(PlatformRefusal):
    """The platform no longer accepts the access token."""


class PlatformAnswer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def retry_after(self) -> float | None:
        """The seconds in the header Retry-After, bounded; None if there is no readable one."""
        text = self.headers.get("retry-after", "")
        # This platform writes it as 2.0.
        return min(float(text), MAX_RETRY_AFTER_SECONDS) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) else None


class Platform:
    """The storefront platform.

    address    the address of a shop, with `{shop}` in place of its domain
    version    the version of its API, such as `2026-10`
    """

    def __init__(self, address: str, version: str, *, seconds: float = CALL_TIMEOUT_SECONDS) -> None:
        self._address = address
        self.version = version
        self._seconds = seconds

    @cached_property
    def _client(self) -> httpx2.AsyncClient:
        limits = httpx2.Limits(max_connections=MAX_CONCURRENT_CALLS, max_keepalive_connections=32, keepalive_expiry=30)
        return HttpClient(timeout=self._seconds, limits=limits, verify=trusted_certificates(), trust_env=False)

    def at(self, shop: str, path: str) -> str:
        """The address of a path of a shop."""
        return f"{self._address.replace('{shop}', shop)}{path}"

    async def post(self, url: str, body: Any, headers: Mapping[str, str] | None = None) -> PlatformAnswer:
        """Send JSON, and return the answer, whatever its status. Raises `PlatformUnreachable`."""
        request_headers = {"content-type": "application/json", "accept": "application/json", **(headers or {})}
        try:
            async with (
                asyncio.timeout(self._seconds),
                self._client.stream(
                    "POST", url, content=msgspec.json.encode(body), headers=request_headers
                ) as response,
            ):
                content = bytearray()
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > MAX_ANSWER_BYTES:
                        raise PlatformUnreachable(f"The answer of the platform has more than {MAX_ANSWER_BYTES} bytes.")
                return PlatformAnswer(response.status_code, dict(response.headers), bytes(content))
        except TimeoutError as error:
            raise PlatformUnreachable(f"The platform took longer than {math.ceil(self._seconds)} seconds.") from error
        except httpx2.RequestError as error:
            raise PlatformUnreachable(
                f"The platform cannot be reached: {str(error) or type(error).__name__}"
            ) from error

    async def lines(self, url: str) -> AsyncGenerator[bytes]:
        """Yield the lines of a large file of the platform. Raises `PlatformUnreachable`."""
        rest = b""
        try:
            async with self._client.stream("GET", url) as response:
                if response.status_code != 200:
                    raise PlatformUnreachable(
                        f"The file of the platform is answered with status {response.status_code}."
                    )
                async for chunk in response.aiter_bytes():
                    *complete_lines, rest = (rest + chunk).split(b"\n")
                    for line in complete_lines:
                        yield line
                    if len(rest) > MAX_ANSWER_BYTES:
                        raise PlatformUnreachable(
                            f"A line of the platform's file has more than {MAX_ANSWER_BYTES} bytes."
                        )
        except httpx2.RequestError as error:
            raise PlatformUnreachable(
                f"The platform cannot be reached: {str(error) or type(error).__name__}"
            ) from error
        if rest:
            yield rest

    async def close(self) -> None:
        """Close the connections, if there are any."""
        if "_client" in self.__dict__:
            await self._client.aclose()


def failure_of(answer: PlatformAnswer) -> PlatformUnreachable | None:
    """The error of an answer if the platform is busy or has a fault; None for any other answer."""
    if answer.status == 429:
        return PlatformUnreachable("The platform is called too often.", answer.retry_after or 1.0)
    if answer.status == 408 or answer.status >= 500:
        return PlatformUnreachable(f"The platform answered with status {answer.status}.", answer.retry_after)
    return None


def storable_json(content: bytes) -> bytes:
    r"""JSON whose strings can be stored: `\u0000` and halves of characters become U+FFFD."""
    return _ESCAPE.sub(_storable_escape, content) if _UNSTORABLE.search(content) else content


def _storable_escape(escape: re.Match[bytes]) -> bytes:
    text = escape[0]
    return b"\\ufffd" if len(text) == 6 and _UNSTORABLE.match(text) else text


def display_text(value: Any) -> str:
    """A decoded value as a text of at most `MAX_CHARACTERS` characters; "" for null, a list or an object."""
    match value:
        case str():
            return value[:MAX_CHARACTERS]
        case bool() | int() | float():
            return str(value)[:MAX_CHARACTERS]
        case _:
            return ""
