"""The public keys of clients that sign. They are in the metadata of a client, or at the address that this names.

They are kept in this process for as long as their headers say. If an assertion names another key, they are read again:
a client may have changed its keys.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from cachetools import LRUCache
from msgspec import Struct

from holdfast.events.oauth_server.cache_headers import cache_seconds
from holdfast.events.oauth_server.client_assertions import ClientAssertion
from holdfast.events.oauth_server.model import Client
from holdfast.events.oauth_server.oauth_problems import INVALID_CLIENT
from holdfast.events.oauth_settings import DOCUMENTS
from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.contract.client import create_shared_task
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.outbound.refusals import FetchRefusal
from holdfast.kit.outbound.requests import OutboundClient
from holdfast.kit.security.signed_tokens import PublicKey, has_signed, usable_keys

MAX_KEY_SET_BYTES = 65_536
"""The maximum size of the keys of a client."""

MAX_KEYS = 20
"""The most keys of a client that are used."""

MIN_CACHE_SECONDS = 10
"""Seconds within which the keys of a client are not read again, whatever an assertion names."""

MAX_CACHED_CLIENTS = 1_000

CACHED_KEYS = cache_bound(
    "Key sets of clients at their own addresses", "both", f"{MAX_CACHED_CLIENTS:,} clients", lost="is read again"
)


class KeySet(Struct):
    """A set of public keys (RFC 7517)."""

    keys: list[dict[str, Any]]


class _CachedKeys(NamedTuple):
    """Keys that were read at the time `read_at` of this process, and the time until which they are fresh."""

    keys: Sequence[PublicKey]
    read_at: float
    fresh_until: float


class ClientKeys:
    """Finds the keys of clients."""

    def __init__(self, outbound: OutboundClient, limits: Limits) -> None:
        self._outbound = outbound
        self._limits = limits
        self._cached: LRUCache[str, _CachedKeys] = LRUCache(MAX_CACHED_CLIENTS)
        self._readings: dict[str, asyncio.Task[_CachedKeys]] = {}

    async def have_signed(self, client: Client, assertion: ClientAssertion, account_id: int) -> bool:
        """Whether one of a client's keys signed an assertion.

        Raises `invalid_client` if the client has no keys that can be used, `rate_limited`, and `service_unavailable`
        if they cannot be read now.

        account_id    the account for which the client acts
        """
        if client.jwks is not None:
            return _has_signed(list(usable_keys(client.jwks))[:MAX_KEYS], assertion)
        if client.jwks_uri is None:
            return False
        cached_keys, now = self._cached.get(client.jwks_uri), time.monotonic()
        if cached_keys and now < cached_keys.fresh_until and _has_signed(cached_keys.keys, assertion):
            return True
        if cached_keys and now < cached_keys.read_at + MIN_CACHE_SECONDS:
            return _has_signed(cached_keys.keys, assertion)
        return _has_signed((await self._newest(client.jwks_uri, account_id)).keys, assertion)

    async def _newest(self, address: str, account_id: int) -> _CachedKeys:
        """The keys at an address, which is read once for all that wait for it."""
        reading = self._readings.get(address)
        if reading is None:
            await self._limits.hit(DOCUMENTS, f"account {account_id}")
            reading = self._readings.get(address)
        if reading is None:
            reading = create_shared_task(self._read(address, account_id), name="keys of a client")
            self._readings[address] = reading
            reading.add_done_callback(lambda task: self._finish(address, task))
        await asyncio.wait([reading])  # the reading goes on if this request is cancelled
        return reading.result()

    def _finish(self, address: str, reading: asyncio.Task[_CachedKeys]) -> None:
        del self._readings[address]
        if not reading.cancelled():
            reading.exception()  # if every request that waited has gone, this is the only reader

    async def _read(self, address: str, account_id: int) -> _CachedKeys:
        try:
            answer = await self._outbound.get(
                address,
                owner=("accounts", account_id),
                limit=MAX_KEY_SET_BYTES,
                accept="application/jwk-set+json, application/json",
                redirects=0,
            )
        except FetchRefusal as refusal:
            message = f"The address of the client's keys {refusal}."
            raise SERVICE_UNAVAILABLE(message, retry_after=MIN_CACHE_SECONDS) from refusal
        try:
            keys = msgspec.json.decode(answer.content, type=KeySet).keys
        except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
            raise INVALID_CLIENT("The address of the client's keys has no key set (RFC 7517).") from error
        now = time.monotonic()
        newest = _CachedKeys([*usable_keys(keys)][:MAX_KEYS], now, now + cache_seconds(answer.headers))
        self._cached[address] = newest
        return newest


def _has_signed(keys: Sequence[PublicKey], assertion: ClientAssertion) -> bool:
    candidate_keys = [key for key in keys if assertion.key_id is None or key.kid == assertion.key_id]
    return any(has_signed(key, assertion.parts) for key in candidate_keys)
