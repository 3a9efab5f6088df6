"""What each shop has to sell now, kept in the memory of this process.

A `ShopView` is read once, and then brought up to date with what changed since its version. Every change is announced to
all processes, so a view knows when it is out of date. Storefront streams and agents read the changes from its feeds.
Agents are also told that the shop follows the storefront platform differently (`STATUS`), which has no version.
"""

import asyncio
import contextlib
import time
from collections.abc import Generator
from typing import NamedTuple

import msgspec
import structlog
from cachetools import LRUCache

from holdfast.inventory.availability import sql
from holdfast.inventory.availability.model import Delta
from holdfast.inventory.resources import Database, Reader
from holdfast.inventory.shops import status
from holdfast.inventory.shops.model import Shop
from holdfast.inventory.shops.operations import find
from holdfast.inventory.stock.book import CHANGES
from holdfast.kit.caller import Caller
from holdfast.kit.mcp import Change
from holdfast.kit.streams import Feed, event

log = structlog.get_logger()

TTL = 1.0
"""Seconds a view is used without reading: the longest a change could be missed while the listener reconnects."""

CAPACITY = 1000
"""Shops a process keeps in memory, beside those with readers and those used in the last minute."""

IDLE_SECONDS = 60.0
"""Seconds without use after which a view without readers may be removed; also the least time between removals."""

FEED_BYTES = 500_000
"""Messages of a shop kept for storefronts that reconnect. A storefront that missed more gets a snapshot."""

RETRY_SECONDS = 0.5
"""Seconds between attempts to read a shop that has readers."""

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
    """

    def __init__(self, shop_id: int) -> None:
        self.shop_id = shop_id
        self.version = -1
        self.announced = 0
        self.variants: dict[str, int] = {}
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
            self.agents.publish(delta.version * GRAIN, Change(_uris(delta), listed))

    def status_changed(self) -> None:
        """Tell agents that the status has changed, soon, and together with what else changes of it until then."""
        if self.telling is None:
            self.telling = asyncio.get_running_loop().call_later(STATUS_SECONDS, self._tell)

    def _tell(self) -> None:
        self.telling = None
        if self.version >= 0:
            self.agents.publish(self.agents.position + 1, Change([STATUS]))


def _uris(delta: Delta) -> list[str]:
    return [uri for id in sorted(delta.pools) for uri in (f"pool://{id}", f"pool://{id}/history")]


def _event(version: int, changed: dict[str, int | None]) -> bytes:
    body: dict[str, object] = {
        "version": version,
        "variants": {gid: quantity for gid, quantity in changed.items() if quantity is not None},
        "removed": [gid for gid, quantity in changed.items() if quantity is None],
    }
    return event(msgspec.json.encode(body), id=str(version), name="change")


class Live:
    """The views of this process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._views: dict[int, ShopView] = {}
        self._shops: LRUCache[str, Shop] = LRUCache(CAPACITY)
        self._removed_at = 0.0

    async def shop(self, domain: str) -> Shop:
        """The shop with a domain. Raises `not_found`."""
        shop = self._shops.get(domain)
        if shop is None:
            shop = self._shops[domain] = await self._database.read(lambda reader: find(reader, domain))
        return shop

    async def view(self, shop_id: int) -> ShopView:
        """What a shop has to sell, including every change announced to this process."""
        view = self._view(shop_id)
        if not view.is_fresh:
            await self._update(view)
        return view

    async def changes(self, caller: Caller) -> Feed[Change]:
        """The feed of changes of the caller's pools."""
        return (await self.view(caller.tenant)).agents

    async def missed(self, caller: Caller, position: int) -> Change:
        """What changed of the caller's pools after a position, from the database: any process can say so.

        Whether the status changed too is not known; it may have.
        """

        async def read(reader: Reader) -> Delta:
            return await sql.changes_since(reader, caller.tenant, position // GRAIN)

        return Change([*_uris(await self._database.read(read, caller.tenant)), STATUS], listed=True)

    @contextlib.contextmanager
    def listening(self) -> Generator[None]:
        """Update views as changes are announced, while the block lasts."""
        with (
            self._database.listen(CHANGES, self._on_change),
            self._database.listen(status.CHANNEL, self._on_status),
        ):
            yield

    def _on_status(self, payload: str) -> None:
        """Note that the status of a shop has changed, or may have: that of every shop, if the payload is empty."""
        if not payload:
            for view in self._views.values():
                view.status_changed()
        elif view := self._views.get(int(payload)):
            view.status_changed()

    def _view(self, shop_id: int) -> ShopView:
        now = time.monotonic()
        view = self._views.get(shop_id)
        if view is None:
            if len(self._views) >= CAPACITY and now > self._removed_at + IDLE_SECONDS:
                self._removed_at = now
                kept = [each for each in self._views.values() if each.has_readers or now < each.used_at + IDLE_SECONDS]
                self._views = {each.shop_id: each for each in kept}
            view = self._views[shop_id] = ShopView(shop_id)
        view.used_at = now
        return view

    def _on_change(self, payload: str) -> None:
        """Note that a shop has a new version. An empty payload says that announcements may have been missed."""
        if not payload:
            for view in self._views.values():
                view.read_at = 0.0
                self._update_soon(view)
            return
        shop_id, version = map(int, payload.split())
        if view := self._views.get(shop_id):
            view.announced = max(view.announced, version)
            self._update_soon(view)

    def _update_soon(self, view: ShopView) -> None:
        """Update a view that has readers, with as many attempts as it takes."""

        async def work() -> None:
            while view.has_readers and not view.is_fresh:
                try:
                    await self._update(view)
                except Exception as error:
                    log.warning("a shop could not be read; trying again", shop=view.shop_id, error=str(error))
                    await asyncio.sleep(RETRY_SECONDS)

        if view.has_readers and not view.is_fresh and (view.updating is None or view.updating.done()):
            view.updating = asyncio.create_task(work(), name=f"view of shop {view.shop_id}")

    async def _update(self, view: ShopView) -> None:
        async with view.lock:
            if view.is_fresh:
                return
            started, announced = time.monotonic(), view.announced
            delta = await self._database.read(view.read, view.shop_id)
            view.read_at = started
            if delta.version > view.version:
                view.advance(delta)
            if view.announced == announced:
                # A version that was announced and is not there was rolled back.
                view.announced = view.version
