"""The effective quantities of one shop, as a process caches them, and the feeds of their changes."""

import asyncio
import time
from typing import NamedTuple

import msgspec

from holdfast.inventory.availability import sql
from holdfast.inventory.availability.model import AvailabilityDelta
from holdfast.inventory.resources import Reader
from holdfast.kit.http.event_streams import Feed, encode_event
from holdfast.kit.mcp import Change

TTL_SECONDS = 1.0
"""Seconds for which a cached shop is used without a read: a change is missed for at most this long on a reconnect."""

FEED_BYTES = 500_000
"""The most bytes of messages kept for storefronts that reconnect. If more was missed, they get a snapshot."""

STATUS = "sync://status"
"""The resource by which agents read the sync status of the shop."""

STATUS_SECONDS = 0.5
"""Seconds for which changes of the status are collected before one notice."""

GRAIN = 2**24
"""The distance between two versions in the feed for agents. Changes of the status get positions between them."""


class EncodedVariants(NamedTuple):
    """The variants of a shop as JSON, at one version."""

    version: int
    variants: bytes


class CachedShop:
    """The effective quantities of one shop, and the feeds of their changes.

    version      that is cached; -1 before it is first read
    announced    the newest announced version
    variants     effective quantity by global id
    status       a text that changes with the status; empty before it was first read
    """

    def __init__(self, shop_id: int) -> None:
        self.shop_id = shop_id
        self.version = -1
        self.announced = 0
        self.variants: dict[str, int] = {}
        self.status = ""
        self.storefront: Feed[bytes] = Feed(room=FEED_BYTES)
        self.agents: Feed[Change] = Feed(grain=GRAIN)
        self.reading: asyncio.Task[None] | None = None
        self.updating: asyncio.Task[None] | None = None
        self.telling: asyncio.TimerHandle | None = None
        self.read_at = 0.0
        self.used_at = 0.0
        self._pools: dict[int, str] = {}
        self._encoded = EncodedVariants(-1, b"")

    @property
    def is_fresh(self) -> bool:
        return 0 <= self.announced <= self.version and time.monotonic() < self.read_at + TTL_SECONDS

    @property
    def has_ended(self) -> bool:
        """Whether the shop no longer has the app."""
        return self.storefront.has_ended

    @property
    def has_readers(self) -> bool:
        return self.storefront.has_readers or self.agents.has_readers

    async def read(self, reader: Reader) -> AvailabilityDelta | None:
        """Return the changes since the cached version; all rows if it was never read. None: the shop is gone."""
        if self.version < 0:
            return await sql.read_all(reader, self.shop_id)
        return await sql.changes_since(reader, self.shop_id, self.version)

    def encoded(self) -> bytes:
        """Return the variants as JSON, encoded once for each version."""
        if self._encoded.version != self.version:
            self._encoded = EncodedVariants(self.version, msgspec.json.encode(self.variants))
        return self._encoded.variants

    def snapshot(self) -> bytes:
        """Return all variants, as the first event of a stream."""
        data = b'{"version":%d,"variants":%s}' % (self.version, self.encoded())
        return encode_event(data, id=str(self.version), name="snapshot")

    def advance(self, delta: AvailabilityDelta) -> None:
        """Apply changes, and publish them to all readers."""
        first, self.version = self.version < 0, delta.version
        changed = {gid: quantity for gid, quantity in delta.variants.items() if quantity != self.variants.get(gid)}
        # A change of stock alone does not change the list of pools: only statuses and names count.
        list_changed = any(status_and_name != self._pools.get(id) for id, status_and_name in delta.pools.items())
        self._pools |= delta.pools
        for gid, quantity in changed.items():
            if quantity is None:
                del self.variants[gid]
            else:
                self.variants[gid] = quantity
        if first:
            # Readers that already wait have seen nothing yet, and get a snapshot.
            self.storefront.restart(delta.version)
            # The status may have changed before this process first read it: readers that come from another process
            # missed that.
            self.agents.restart(delta.version * GRAIN + 1)
            return
        if changed:
            message = _event(delta.version, changed)
            self.storefront.publish(delta.version, message, len(message))
        if delta.pools:
            self.agents.publish(delta.version * GRAIN, Change(uris(delta), list_changed))

    def end(self) -> None:
        """End all streams of the shop: the shop no longer has the app."""
        self.storefront.end()
        self.agents.end()

    def status_changed(self) -> None:
        """Tell agents soon that the status has changed, once for all changes until then."""
        if self.telling is None:
            self.telling = asyncio.get_running_loop().call_later(STATUS_SECONDS, self._tell)

    def _tell(self) -> None:
        self.telling = None
        if self.version >= 0:
            self.agents.publish(self.agents.position + 1, Change([STATUS]))


def uris(delta: AvailabilityDelta) -> list[str]:
    return [uri for id in sorted(delta.pools) for uri in (f"pool://{id}", f"pool://{id}/history")]


def _event(version: int, changed: dict[str, int | None]) -> bytes:
    body: dict[str, object] = {
        "version": version,
        "variants": {gid: quantity for gid, quantity in changed.items() if quantity is not None},
        "removed": [gid for gid, quantity in changed.items() if quantity is None],
    }
    return encode_event(msgspec.json.encode(body), id=str(version), name="change")
