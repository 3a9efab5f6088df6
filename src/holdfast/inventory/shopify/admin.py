"""The Admin API of shops: GraphQL over HTTP, with typed answers.

A call waits until the shop has the points for it, and is made again when the platform says that it came too early. An
answer with errors is no answer, also if there is data beside them.
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

from holdfast.inventory.shopify.platform import Answer, Platform, Refused, TokenDead, Unreachable, failed
from holdfast.inventory.shopify.throttle import Bucket

T = TypeVar("T")

ATTEMPTS = 6
"""How often a call is made at most that the platform refuses because it came too early."""

PATIENCE = 60.0
"""The most seconds that a call waits for its points."""

SHOPS = 10_000
"""The most shops whose points are known at once."""

PASSING = frozenset({"INTERNAL_SERVER_ERROR", "TIMEOUT", "SERVICE_UNAVAILABLE"})
"""Codes of errors that are the platform's own: the same call may succeed later."""

CALLS = Counter("holdfast_platform_calls", "Calls of the storefront platform's Admin API.", ["query", "how"])


@dataclass(frozen=True)
class Query(Generic[T]):
    """A query or a mutation.

    name    in figures and logs
    into    the type of `data`
    cost    the points that the platform asks for before it does it
    """

    name: str
    text: str
    into: type[T]
    cost: float = 10


class _Extensions(Struct):
    code: str = ""


class _Error(Struct):
    message: str = ""
    extensions: _Extensions = msgspec.field(default_factory=_Extensions)


class _ThrottleStatus(Struct, rename="camel"):
    maximum_available: float
    currently_available: float
    restore_rate: float


class _Cost(Struct, rename="camel"):
    throttle_status: _ThrottleStatus
    requested_query_cost: float | None = None


class _Meta(Struct):
    cost: _Cost | None = None


class _Answered(Struct):
    data: msgspec.Raw = msgspec.Raw(b"null")
    errors: Sequence[_Error] = ()
    extensions: _Meta = msgspec.field(default_factory=_Meta)


class Admin:
    """Asks the Admin API, for all shops.

    Raises `Unreachable`, `TokenDead` for a token that the shop does not accept, and `Refused` with the code of the
    first error.
    """

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._path = f"/admin/api/{platform.version}/graphql.json"
        self._buckets: LRUCache[str, Bucket] = LRUCache(SHOPS)

    async def ask(self, shop: str, token: str, query: Query[T], variables: Mapping[str, Any] | None = None) -> T:
        """What the platform answers to a query."""
        try:
            answer = await self._ask(shop, token, query, variables or {})
        except (Unreachable, Refused) as error:
            CALLS.labels(query.name, "unreachable" if isinstance(error, Unreachable) else "refused").inc()
            raise
        CALLS.labels(query.name, "done").inc()
        return answer

    async def _ask(self, shop: str, token: str, query: Query[T], variables: Mapping[str, Any]) -> T:
        bucket = self._buckets.get(shop)
        if bucket is None:
            bucket = self._buckets[shop] = Bucket(time.monotonic())
        pause = 0.0
        for _ in range(ATTEMPTS):
            await asyncio.sleep(pause)
            await self._turn(bucket, query.cost)
            answered = await self._send(shop, token, query, variables, bucket)
            if isinstance(answered, _Answered):
                return _data(answered, query.into)
            CALLS.labels(query.name, "too early").inc()
            pause = min(answered, PATIENCE)
        raise Unreachable("The platform is called too often.", pause)

    async def _turn(self, bucket: Bucket, cost: float) -> None:
        """Wait until there are points for a call."""
        wait = bucket.take(cost, time.monotonic())
        try:
            if wait > PATIENCE:
                raise Unreachable("Too many calls of the shop wait already.", wait)
            if wait:
                await asyncio.sleep(wait)
        except BaseException:
            bucket.give_back(cost)
            raise

    async def _send(
        self, shop: str, token: str, query: Query[Any], variables: Mapping[str, Any], bucket: Bucket
    ) -> _Answered | float:
        """The answer, or the seconds to wait if the call came too early."""
        told: _Cost | None = None
        try:
            answer = await self._platform.post(
                self._platform.at(shop, self._path),
                {"query": query.text, "variables": variables},
                {"x-shopify-access-token": token},
            )
            answered = _read(answer)
            told = answered.extensions.cost if answered else None
        finally:
            if told:
                status = told.throttle_status
                bucket.learn(
                    query.cost,
                    time.monotonic(),
                    maximum=status.maximum_available,
                    available=status.currently_available,
                    rate=status.restore_rate,
                )
            else:
                bucket.lose(query.cost)
        if answered is None:
            return answer.retry_after or 1.0
        if any(error.extensions.code == "THROTTLED" for error in answered.errors):
            return bucket.pause((told.requested_query_cost if told else None) or query.cost)
        return answered


def _read(answer: Answer) -> _Answered | None:
    """The answer; None if the platform refused it as too early without saying more."""
    try:
        answered = msgspec.json.decode(answer.content, type=_Answered) if answer.status in (200, 429) else None
    except msgspec.DecodeError as error:
        if answer.status == 200:
            raise Unreachable(f"The answer of the platform cannot be read: {error}") from error
        answered = None
    if answered or answer.status == 429:
        return answered
    if failure := failed(answer):
        raise failure
    why = f"The platform answered with status {answer.status}: {answer.content[:300].decode('utf-8', 'replace')}"
    raise TokenDead(why) if answer.status == 401 else Refused(why, str(answer.status))


def _data(answered: _Answered, into: type[T]) -> T:
    if answered.errors:
        first = answered.errors[0]
        why = "; ".join(error.message for error in answered.errors)[:1000]
        if any(error.extensions.code in PASSING for error in answered.errors):
            raise Unreachable(f"The platform failed: {why}")
        raise Refused(why, first.extensions.code)
    try:
        return msgspec.json.decode(answered.data, type=into)
    except msgspec.DecodeError as error:
        raise Unreachable(f"The answer of the platform cannot be read: {error}") from error
