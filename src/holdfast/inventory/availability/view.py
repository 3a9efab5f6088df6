"""What one shop has to sell, as a process knows it, and the feeds of its changes."""

import asyncio
import time
from typing import NamedTuple

import msgspec

from holdfast.inventory.availability import sql
from holdfast.inventory.availability.model import Delta
from holdfast.inventory.resources import Reader
from holdfast.kit.mcp import Change
from holdfast.kit.streams import Feed, event

TTL = 1.0
"""Seconds a view is used without reading: the longest a change could be missed while the listener reconnects."""

FEED_BYTES = 500_000
"""Messages of a shop kept for storefronts that reconnect. A storefront that missed more gets a snapshot."""

STATUS = "sync://status"
"""The address at which agents read how the shop follows the storefront platform."""

STATUS_SECONDS = 0.5
"""Seconds for which changes of it are collected and then told once."""

GRAIN = 2**24
"""Positions that agents are told lie so far apart for two versions. Between them is room for changes of the status."""


class Encoded(NamedTuple):
    """The variants of a shop as JSON, at one version."""

    version: int
    variants: bytes


class ShopView:
    """What one shop has to sell, and the feeds of its changes.

    version      of the shop as the view shows it; -1 before it is first read
    announced    the newest version that was announced
    variants     effective quantity by global id
    status       a text that is another one when the status has changed; empty before it was looked at
    """

    def __init__(self, shop_id: int) -> None:
        self.shop_id = shop_id
        self.version = -1
        self.announced = 0
        self.variants: dict[str, int] = {}
        self.status = ""
        self.storefront: Feed[bytes] = Feed(room=FEED_BYTES)
        self.agents: Feed[Change] = Feed(grain=GRAIN)
        self.lock = asyncio.Lock()
        self.updating: asyncio.Task[None] | None = None
        self.telling: asyncio.TimerHandle | None = None
        self.read_at = 0.0
        self.used_at = 0.0
        self._pools: dict[int, str] = {}
        self._encoded = Encoded(-1, b"")

    @property
    def is_fresh(self) -> bool:
        return 0 <= self.announced <= self.version and time.monotonic() < self.read_at + TTL

    @property
    def has_readers(self) -> bool:
        return self.storefront.has_readers or self.agents.has_readers

    async def read(self, reader: Reader) -> Delta:
        """What has changed since its version; everything when it was never read."""
        if self.version < 0:
            return await sql.everything(reader, self.shop_id)
        return await sql.changes_since(reader, self.shop_id, self.version)

    def encoded(self) -> bytes:
        """The variants as JSON, encoded once a version."""
        if self._encoded.version != self.version:
            self._encoded = Encoded(self.version, msgspec.json.encode(self.variants))
        return self._encoded.variants

    def snapshot(self) -> bytes:
        """All variants, as the first event of a stream."""
        data = b'{"version":%d,"variants":%s}' % (self.version, self.encoded())
        return event(data, id=str(self.version), name="snapshot")

    def advance(self, delta: Delta) -> None:
        """Apply changes, and publish them to all readers."""
        first, self.version = self.version < 0, delta.version
        changed = {gid: quantity for gid, quantity in delta.variants.items() if quantity != self.variants.get(gid)}
        listed = any(text != self._pools.get(id) for id, text in delta.pools.items())
        self._pools |= delta.pools
        for gid, quantity in changed.items():
            if quantity is None:
                del self.variants[gid]
            else:
                self.variants[gid] = quantity
        if first:
            # Readers that wait already have seen nothing yet, and get a snapshot.
            self.storefront.restart(delta.version)
            # The status may have changed before this process looked: whoever comes from elsewhere has missed that.
            self.agents.restart(delta.version * GRAIN + 1)
            return
        if changed:
            message = _event(delta.version, changed)
            self.storefront.publish(delta.version, message, len(message))
        if delta.pools:
            self.agents.publish(delta.version * GRAIN, Change(uris(delta), listed))

    def status_changed(self) -> None:
        """Tell agents that the status has changed, soon, and together with what else changes of it until then."""
        if self.telling is None:
            self.telling = asyncio.get_running_loop().call_later(STATUS_SECONDS, self._tell)

    def _tell(self) -> None:
        self.telling = None
        if self.version >= 0:
            self.agents.publish(self.agents.position + 1, Change([STATUS]))


def uris(delta: Delta) -> list[str]:
    return [uri for id in sorted(delta.pools) for uri in (f"pool://{id}", f"pool://{id}/history")]


def _event(version: int, changed: dict[str, int | None]) -> bytes:
    body: dict[str, object] = {
        "version": version,
        "variants": {gid: quantity for gid, quantity in changed.items() if quantity is not None},
        "removed": [gid for gid, quantity in changed.items() if quantity is None],
    }
    return event(msgspec.json.encode(body), id=str(version), name="change")
