"""What was looked up is kept for a second, and forgotten as soon as a change of it is announced.

So a crowd that asks for the same thing asks the database once a second, or once a change.
"""

import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from cachetools import LRUCache

from holdfast.kit.database import Database

K = TypeVar("K")
V = TypeVar("V")

TTL = 1.0
"""Seconds that a result is kept: so long a change can stay unseen while the listener reconnects."""

KEPT = 10_000
"""The most results that are kept."""


class Lookups(Generic[K, V]):
    """Looks something up by its key, or finds it among what was looked up in the last second.

    channel     announcements of changes; their payload is a key, or empty: anything may have changed
    key_of      the key in a payload
    look_up     returns the result for a key. What it raises is not kept
    by_itself   whether a result changes only with its own key. If not, it is forgotten at every announcement
    """

    def __init__(
        self,
        database: Database[Any],
        channel: str,
        key_of: Callable[[str], K],
        look_up: Callable[[K], Awaitable[V]],
        by_itself: Callable[[V], bool] = lambda _: True,
    ) -> None:
        self._database = database
        self._channel = channel
        self._key_of = key_of
        self._look_up = look_up
        self._by_itself = by_itself
        self._announcements = 0
        self._kept: LRUCache[K, tuple[V, float, int | None]] = LRUCache(KEPT)

    async def get(self, key: K) -> V:
        """The result for a key: at most `TTL` seconds old, and without a change that was announced. Raises what
        `look_up` does."""
        kept = self._kept.get(key)
        if kept and kept[1] > time.monotonic() and kept[2] in (None, self._announcements):
            return kept[0]
        before = self._announcements
        found = await self._look_up(key)
        # If a change was announced during the look-up, its result is used for this request but not kept.
        if before == self._announcements:
            self._kept[key] = found, time.monotonic() + TTL, None if self._by_itself(found) else before
        return found

    def forgetting(self) -> AbstractContextManager[None]:
        """While the block lasts, forget results as soon as a change of them is announced."""
        return self._database.listen(self._channel, self.forget)

    def forget(self, payload: str) -> None:
        """Forget the result for the key in a payload, or every result if that is empty."""
        self._announcements += 1
        if payload:
            self._kept.pop(self._key_of(payload), None)
        else:
            self._kept.clear()
