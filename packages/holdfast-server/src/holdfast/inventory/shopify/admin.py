"""The Admin API of shops: GraphQL over HTTP, with typed answers. An answer with errors is refused.

Every call of a shop costs points, which come back at a rate. They are counted as the platform counts them, so a call
waits here for its points instead of being refused there; one that is throttled all the same is repeated. Each answer of
the platform has the present points, so processes that do not know of each other share them.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
from cachetools import LRUCache
from msgspec import Struct
from prometheus_client import Counter

from holdfast.inventory.shopify.platform_client import (
    Platform,
    PlatformAnswer,
    PlatformRefusal,
    PlatformUnreachable,
    TokenRefusal,
    failure_of,
    storable_json,
)
from holdfast.kit.contract.bounds import cache_bound

T = TypeVar("T")

DEFAULT_MAX_POINTS = 1_000.0
DEFAULT_RATE = 50.0
"""The points and the rate per second of a shop before its first answer: less than any plan gives."""

MIN_WAIT_SECONDS = 0.05
"""The least seconds to wait after the platform has throttled a call."""


MAX_ATTEMPTS = 6
"""The most attempts for a call that the platform throttles."""

MAX_WAIT_SECONDS = 60.0
"""The most seconds that a call waits for its points."""

MAX_CACHED_SHOPS = 10_000
"""The most shops whose points are cached."""

PASSING_CODES = frozenset({"INTERNAL_SERVER_ERROR", "TIMEOUT", "SERVICE_UNAVAILABLE"})
"""Codes of the platform's own faults: the same call may succeed later."""

CALLS = Counter("holdfast_platform_calls", "Calls of the storefront platform's Admin API.", ["query", "how"])


class PointBucket:
    """The points of one shop. Times are in seconds of any clock that does not go back."""

    def __init__(self, now: float) -> None:
        self._maximum = DEFAULT_MAX_POINTS
        self._rate = DEFAULT_RATE
        self._points = DEFAULT_MAX_POINTS
        self._at = now
        self._cost_in_progress = 0.0

    def take(self, cost: float, now: float, *, is_background: bool = False) -> float:
        """Take points. Returns the seconds until they are available; the call may not be made earlier.

        is_background    leave half of all points to other calls, or as many as the shop has beside this call
        """
        self._flow(now)
        self._points -= cost
        self._cost_in_progress += cost
        reserved = min(self._maximum / 2, max(0.0, self._maximum - cost)) if is_background else 0.0
        return max(0.0, (reserved - self._points) / self._rate)

    def give_back(self, cost: float) -> None:
        """Give back the points of a call that is not made."""
        self._points += cost
        self._cost_in_progress -= cost

    def lose(self, cost: float) -> None:
        """End a call whose cost the platform did not tell."""
        self._cost_in_progress -= cost

    def learn(self, cost: float, now: float, *, maximum: float, available: float, rate: float) -> None:
        """End a call, and store the present points that the platform has told."""
        self._cost_in_progress -= cost
        self._maximum = max(maximum, 1.0)
        self._rate = max(rate, 1.0)
        # The answer does not include the calls that are still under way.
        self._points = min(available, maximum) - self._cost_in_progress
        self._at = now

    def pause(self, cost: float) -> float:
        """The seconds after which a throttled call may be made again."""
        return max(MIN_WAIT_SECONDS, (cost - self._points) / self._rate)

    def _flow(self, now: float) -> None:
        self._points = min(self._maximum, self._points + (now - self._at) * self._rate)
        self._at = now


@dataclass(frozen=True)
class Query(Generic[T]):
    """A query or a mutation.

    name             in metrics and logs
    into             the type of `data`
    cost             the points that the platform requires before it runs it
    is_background    whether it waits until half of the points are left to other calls
    """

    name: str
    text: str
    into: type[T]
    cost: float = 10
    is_background: bool = False


class _Extensions(Struct):
    code: str = ""


class _GraphqlError(Struct):
    message: str = ""
    extensions: _Extensions = msgspec.field(default_factory=_Extensions)


class _ThrottleStatus(Struct, rename="camel"):
    maximum_available: float
    currently_available: float
    restore_rate: float


class _Cost(Struct, rename="camel"):
    throttle_status: _ThrottleStatus
    requested_query_cost: float | None = None


class _AnswerExtensions(Struct):
    cost: _Cost | None = None


class _GraphqlAnswer(Struct):
    data: msgspec.Raw = msgspec.Raw(b"null")
    errors: Sequence[_GraphqlError] = ()
    extensions: _AnswerExtensions = msgspec.field(default_factory=_AnswerExtensions)


POINT_BUCKETS = cache_bound(
    "Shops whose calls of the Admin API are counted",
    "inventory",
    f"{MAX_CACHED_SHOPS}",
    lost="is counted again",
)


class AdminApi:
    """Calls the Admin API, for all shops.

    Raises `PlatformUnreachable`, `TokenRefusal` for a token that the shop does not accept, and `PlatformRefusal` with
    the code of the first error.
    """

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._path = f"/admin/api/{platform.version}/graphql.json"
        self._buckets: LRUCache[str, PointBucket] = LRUCache(MAX_CACHED_SHOPS)

    async def call(self, shop: str, token: str, query: Query[T], variables: Mapping[str, Any] | None = None) -> T:
        """The platform's answer to a query or mutation."""
        try:
            answer = await self._call_with_retries(shop, token, query, variables or {})
        except (PlatformUnreachable, PlatformRefusal) as error:
            CALLS.labels(query.name, "unreachable" if isinstance(error, PlatformUnreachable) else "refused").inc()
            raise
        CALLS.labels(query.name, "done").inc()
        return answer

    async def _call_with_retries(self, shop: str, token: str, query: Query[T], variables: Mapping[str, Any]) -> T:
        bucket = self._buckets.get(shop)
        if bucket is None:
            bucket = self._buckets[shop] = PointBucket(time.monotonic())
        pause = 0.0
        for _ in range(MAX_ATTEMPTS):
            await asyncio.sleep(pause)
            await self._turn(bucket, query)
            decoded = await self._send(shop, token, query, variables, bucket)
            if isinstance(decoded, _GraphqlAnswer):
                return _data(decoded, query.into)
            CALLS.labels(query.name, "too early").inc()
            pause = min(decoded, MAX_WAIT_SECONDS)
        raise PlatformUnreachable("The platform is called too often.", pause)

    async def _turn(self, bucket: PointBucket, query: Query[Any]) -> None:
        """Wait until there are points for a call."""
        wait = bucket.take(query.cost, time.monotonic(), is_background=query.is_background)
        try:
            if wait > MAX_WAIT_SECONDS:
                raise PlatformUnreachable("Too many calls of the shop wait already.", wait)
            if wait:
                await asyncio.sleep(wait)
        except BaseException:
            bucket.give_back(query.cost)
            raise

    async def _send(
        self, shop: str, token: str, query: Query[Any], variables: Mapping[str, Any], bucket: PointBucket
    ) -> _GraphqlAnswer | float:
        """The answer, or the seconds to wait if the call was throttled."""
        cost: _Cost | None = None
        try:
            answer = await self._platform.post(
                self._platform.at(shop, self._path),
                {"query": query.text, "variables": variables},
                {"x-shopify-access-token": token},
            )
            decoded = _read(answer)
            cost = decoded.extensions.cost if decoded else None
        finally:
            if cost:
                status = cost.throttle_status
                bucket.learn(
                    query.cost,
                    time.monotonic(),
                    maximum=status.maximum_available,
                    available=status.currently_available,
                    rate=status.restore_rate,
                )
            else:
                bucket.lose(query.cost)
        if decoded is None:
            return answer.retry_after or 1.0
        if any(error.extensions.code == "THROTTLED" for error in decoded.errors):
            return bucket.pause((cost.requested_query_cost if cost else None) or query.cost)
        return decoded


def _read(answer: PlatformAnswer) -> _GraphqlAnswer | None:
    """The answer; None if the platform throttled the call without details."""
    try:
        decoded = (
            msgspec.json.decode(storable_json(answer.content), type=_GraphqlAnswer)
            if answer.status in (200, 429)
            else None
        )
    except msgspec.DecodeError as error:
        if answer.status == 200:
            raise PlatformUnreachable(f"The answer of the platform cannot be read: {error}") from error
        decoded = None
    if decoded or answer.status == 429:
        return decoded
    if failure := failure_of(answer):
        raise failure
    why = f"The platform answered with status {answer.status}: {_excerpt(answer.content)}"
    raise TokenRefusal(why) if answer.status == 401 else PlatformRefusal(why, str(answer.status))


def _excerpt(content: bytes) -> str:
    """The beginning of an answer as a text that can be stored."""
    return content[:300].decode("utf-8", "replace").replace("\0", "\ufffd")


def _data(decoded: _GraphqlAnswer, into: type[T]) -> T:
    if decoded.errors:
        first = decoded.errors[0]
        why = "; ".join(error.message for error in decoded.errors)[:1000]
        if any(error.extensions.code in PASSING_CODES for error in decoded.errors):
            raise PlatformUnreachable(f"The platform failed: {why}")
        raise PlatformRefusal(why, first.extensions.code)
    try:
        return msgspec.json.decode(decoded.data, type=into, strict=False)
    except msgspec.DecodeError as error:
        raise PlatformUnreachable(f"The answer of the platform cannot be read: {error}") from error
