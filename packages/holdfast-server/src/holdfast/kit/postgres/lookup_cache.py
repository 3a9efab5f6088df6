"""Caches results of look-ups for a second, and drops them as soon as a change of them is announced.

Any number of requests for the same row query the database once a second, or once a change. Those that come at the same
moment wait for the same query.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from cachetools import LRUCache

from holdfast.kit.contract.bounds import Bound, cache_bound
from holdfast.kit.contract.client import create_shared_task
from holdfast.kit.postgres.database import Database

K = TypeVar("K")
V = TypeVar("V")

TTL_SECONDS = 1.0
"""Seconds that a result is cached. While the listener reconnects, a change can stay unseen for this time."""

MAX_RESULTS = 10_000
"""The maximum number of cached results."""

CACHED_RESULTS = cache_bound(
    "Results of look-ups", "both", f"{MAX_RESULTS:,} of each kind, for {TTL_SECONDS:g} s", lost="is looked up again"
)


class CachedResult(NamedTuple, Generic[V]):
    """A cached result.

    ends_at          when it is not used any more, by the monotonic clock
    announcements    the number of announcements before it: a further one drops it; None: only one of its key does
    """

    result: V
    ends_at: float
    announcements: int | None


class LookupCache(Generic[K, V]):
    """Looks up results by key, or returns them from the cache.

    bound          what is limited, for the page of all bounds
    channel        the channel of changes; a payload is a key, or empty if anything may have changed
    key_of         returns the key in a payload
    look_up        returns the result for a key; its exceptions are not cached
    changes_alone  whether a result changes only with its own key. If not, every announcement drops it
    max_results    the maximum number of cached results
    wait_context   returns a context that is entered while a caller waits for a look-up
    """

    def __init__(
        self,
        bound: Bound,
        database: Database[Any],
        channel: str,
        key_of: Callable[[str], K],
        look_up: Callable[[K], Awaitable[V]],
        changes_alone: Callable[[V], bool] = lambda _: True,
        max_results: int = MAX_RESULTS,
        wait_context: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self.bound = bound
        self._database = database
        self._channel = channel
        self._key_of = key_of
        self._look_up = look_up
        self._changes_alone = changes_alone
        self._wait_context = wait_context
        self._announcements = 0
        self._results: LRUCache[K, CachedResult[V]] = LRUCache(max_results)
        self._look_ups: dict[tuple[K, int], asyncio.Task[V]] = {}
        """The look-ups in progress, by their key and the number of announcements before them."""

    async def get(self, key: K) -> V:
        """The result for a key, at most `TTL_SECONDS` seconds old and without an announced change.

        Raises the exceptions of `look_up`.
        """
        cached = self._results.get(key)
        if cached and cached.ends_at > time.monotonic() and cached.announcements in (None, self._announcements):
            return cached.result
        # A crowd that asks at the same moment waits for one look-up, which began after every change announced by now.
        look_up = (key, self._announcements)
        task = self._look_ups.get(look_up)
        if task is None:
            task = self._look_ups[look_up] = create_shared_task(self._find(key))
            task.add_done_callback(partial(self._forget_look_up, look_up))
        with self._wait_context():
            return await asyncio.shield(task)

    async def _find(self, key: K) -> V:
        before = self._announcements
        result = await self._look_up(key)
        # If a change was announced during the look-up, its result is used for these requests but not cached.
        if before == self._announcements:
            announcements = None if self._changes_alone(result) else before
            self._results[key] = CachedResult(result, time.monotonic() + TTL_SECONDS, announcements)
        return result

    def _forget_look_up(self, look_up: tuple[K, int], task: asyncio.Task[V]) -> None:
        del self._look_ups[look_up]
        if not task.cancelled():
            task.exception()  # it is raised to the callers that wait, if any are left

    def forgetting(self) -> AbstractContextManager[None]:
        """While the block lasts, drop results as soon as a change of them is announced."""
        return self._database.listen(self._channel, self.forget)

    def forget(self, payload: str) -> None:
        """Drop the result for the key in a payload, or all results if the payload is empty."""
        self._announcements += 1
        if payload:
            self._results.pop(self._key_of(payload), None)
        else:
            self._results.clear()
