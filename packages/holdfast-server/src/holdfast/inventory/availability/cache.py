"""The effective quantities of each shop, cached in the memory of this process, and the feeds of their changes.

A `CachedShop` is read once, and then updated with the changes since its version. Every change is announced to all
processes, so a cached shop knows when it is out of date. Storefront streams and agents read the changes from its feeds.
Agents also get a notice when the sync status of the shop changes (`STATUS`), which has no version. A shop that has
uninstalled the app is dropped at once, with all streams that show it.

A notice can be lost: a process may be killed before it sends it, or a listener be cut off. So a poll compares the
versions of all cached shops that have readers with those in the database, by one statement.
"""

import asyncio
import contextlib
import time
from collections.abc import Generator, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
import structlog

from holdfast.inventory.availability import sql
from holdfast.inventory.availability.model import AvailabilityDelta
from holdfast.inventory.resources import Database, Reader
from holdfast.inventory.shops.model import Shop
from holdfast.inventory.shops.operations import ENDED_SHOPS, SYNC_STATUS_CHANNEL, find_active
from holdfast.inventory.stock.shop_versions import STOCK_CHANNEL
from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.client import create_shared_task
from holdfast.kit.contract.problems import NOT_FOUND, SERVICE_UNAVAILABLE, Problem
from holdfast.kit.http.event_streams import Feed, encode_event
from holdfast.kit.mcp import Change
from holdfast.kit.postgres.lookup_cache import MAX_RESULTS, LookupCache

log = structlog.get_logger()

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

MAX_CACHED_SHOPS = 1000
"""The most shops in the cache, not counting those with readers and those used in the last minute."""

IDLE_SECONDS = 60.0
"""Seconds without use after which a shop without readers may be removed; also the least time between removals."""

POLL_SECONDS = 2.0
"""Seconds from one poll of the versions of the cached shops that have readers to the next."""

MAX_STALENESS_SECONDS = POLL_SECONDS + 1.0
"""The greatest age of what a stream or an agent was told, whatever notice was lost: a poll finds a change after
`POLL_SECONDS` at most, and reads it, while the database can be reached.
"""

RETRY_SECONDS = 0.5
"""Seconds between attempts to read a shop that has readers."""

SHOPS_BY_DOMAIN = cache_bound("Shops that were looked up by domain", "inventory", f"{MAX_RESULTS}, for a second")

CACHED_SHOPS = cache_bound(
    "Shops whose availability is in memory",
    "inventory",
    f"{MAX_CACHED_SHOPS}, and those with readers",
    lost="is read again",
)


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
        self.status_timer: asyncio.TimerHandle | None = None
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
        """The changes since the cached version; all rows if it was never read. None: the shop is gone."""
        if self.version < 0:
            return await sql.read_all(reader, self.shop_id)
        return await sql.changes_since(reader, self.shop_id, self.version)

    def encoded(self) -> bytes:
        """The variants as JSON, encoded once for each version."""
        if self._encoded.version != self.version:
            self._encoded = EncodedVariants(self.version, msgspec.json.encode(self.variants))
        return self._encoded.variants

    def snapshot(self) -> bytes:
        """All variants, as the first event of a stream."""
        data = b'{"version":%d,"variants":%s}' % (self.version, self.encoded())
        return encode_event(data, id=str(self.version), name="snapshot")

    def advance(self, delta: AvailabilityDelta) -> None:
        """Apply changes, and publish them to all readers."""
        first, self.version = self.version < 0, delta.version
        changed_variants = {
            gid: quantity for gid, quantity in delta.variants.items() if quantity != self.variants.get(gid)
        }
        # A change of stock alone does not change the list of pools: only statuses and names count.
        list_changed = any(status_and_name != self._pools.get(id) for id, status_and_name in delta.pools.items())
        self._pools |= delta.pools
        for gid, quantity in changed_variants.items():
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
        if changed_variants:
            message = _event(delta.version, changed_variants)
            self.storefront.publish(delta.version, message, len(message))
        if delta.pools:
            self.agents.publish(delta.version * GRAIN, Change(uris(delta), list_changed))

    def end(self) -> None:
        """End all streams of the shop: the shop no longer has the app."""
        self.storefront.end()
        self.agents.end()

    def status_changed(self) -> None:
        """Tell agents soon that the status has changed, once for all changes until then."""
        if self.status_timer is None:
            self.status_timer = asyncio.get_running_loop().call_later(STATUS_SECONDS, self._publish_status)

    def _publish_status(self) -> None:
        self.status_timer = None
        if self.version >= 0:
            self.agents.publish(self.agents.position + 1, Change([STATUS]))


def uris(delta: AvailabilityDelta) -> list[str]:
    return [uri for id in sorted(delta.pools) for uri in (f"pool://{id}", f"pool://{id}/history")]


def _event(version: int, changed_variants: dict[str, int | None]) -> bytes:
    body: dict[str, object] = {
        "version": version,
        "variants": {gid: quantity for gid, quantity in changed_variants.items() if quantity is not None},
        "removed": [gid for gid, quantity in changed_variants.items() if quantity is None],
    }
    return encode_event(msgspec.json.encode(body), id=str(version), name="change")


class AvailabilityCache:
    """The cached shops of this process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cached_shops: dict[int, CachedShop] = {}
        self._shops = LookupCache(SHOPS_BY_DOMAIN, database, ENDED_SHOPS, _domain_in, self._find_shop)
        self._removed_at = 0.0

    async def shop(self, domain: str) -> Shop:
        """The shop with a domain. Raises `not_found`, also for a shop that has uninstalled the app."""
        return await self._shops.get(domain)

    async def _find_shop(self, domain: str) -> Shop:
        if shop := await self._database.read(lambda reader: find_active(reader, domain)):
            return shop
        raise _unknown()

    async def cached_shop(self, shop_id: int) -> CachedShop:
        """A cached shop, with every change announced to this process. Raises `not_found`."""
        cached_shop = self._find_or_add_shop(shop_id)
        if not cached_shop.is_fresh:
            await self._update(cached_shop)
        return cached_shop

    async def changes(self, caller: Caller) -> Feed[Change]:
        """The feed of changes of the caller's pools."""
        cached_shop = await self.cached_shop(caller.tenant)
        if not cached_shop.status:
            await self._check_versions([cached_shop])
        return cached_shop.agents

    async def missed(self, caller: Caller, position: int) -> Change:
        """What changed of the caller's pools after a position, from the database, in any process.

        It is not known whether the status changed too, so it is named.
        """

        async def read(reader: Reader) -> AvailabilityDelta | None:
            return await sql.changes_since(reader, caller.tenant, position // GRAIN)

        delta = await self._database.read(read, caller.tenant)
        return Change([*(uris(delta) if delta else ()), STATUS], listed=True)

    @contextlib.contextmanager
    def listening(self) -> Generator[None]:
        """Update cached shops as changes are announced, or found by a poll, while the block lasts."""
        poll = asyncio.create_task(self._poll(), name="poll of cached shops")
        try:
            with (
                self._shops.forgetting(),
                self._database.listen(ENDED_SHOPS, self._on_end),
                self._database.listen(STOCK_CHANNEL, self._on_change),
                self._database.listen(SYNC_STATUS_CHANNEL, self._on_status),
            ):
                yield
        finally:
            poll.cancel()

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            followed = [cached_shop for cached_shop in self._cached_shops.values() if cached_shop.has_readers]
            try:
                await self._check_versions(followed)
            except Exception as error:
                # The database logs when it is unreachable.
                if not (isinstance(error, Problem) and error.type is SERVICE_UNAVAILABLE):
                    log.error("the versions of shops could not be read; trying again", exc_info=error)

    async def _check_versions(self, cached_shops: Sequence[CachedShop]) -> None:
        """Compare the versions of cached shops with the database."""
        if not cached_shops:
            return
        ids = [cached_shop.shop_id for cached_shop in cached_shops]
        rows = await self._database.read(lambda reader: sql.current_versions(reader, ids))
        present = {shop_id: (version, status) for shop_id, version, status in rows}
        for cached_shop in cached_shops:
            if cached_shop.shop_id not in present:
                self._end(cached_shop)
                continue
            version, status = present[cached_shop.shop_id]
            if cached_shop.status and cached_shop.status != status:
                cached_shop.status_changed()
            cached_shop.status = status
            if version > cached_shop.version:
                self._on_version(cached_shop, version)

    def _on_status(self, payload: str) -> None:
        """Note that the status of a shop has changed, or may have: that of every shop, if the payload is empty."""
        if not payload:
            for cached_shop in self._cached_shops.values():
                cached_shop.status_changed()
        elif cached_shop := self._cached_shops.get(int(payload)):
            cached_shop.status_changed()

    def _on_end(self, payload: str) -> None:
        """Drop a shop that has ended. After an empty payload, the poll finds ended shops."""
        if payload and (cached_shop := self._cached_shops.get(int(payload.split(maxsplit=1)[0]))):
            self._end(cached_shop)

    def _end(self, cached_shop: CachedShop) -> None:
        self._cached_shops.pop(cached_shop.shop_id, None)
        cached_shop.end()

    def _find_or_add_shop(self, shop_id: int) -> CachedShop:
        now = time.monotonic()
        cached_shop = self._cached_shops.get(shop_id)
        if cached_shop is None:
            if len(self._cached_shops) >= MAX_CACHED_SHOPS and now > self._removed_at + IDLE_SECONDS:
                self._removed_at = now
                used_shops = [
                    other
                    for other in self._cached_shops.values()
                    if other.has_readers or now < other.used_at + IDLE_SECONDS
                ]
                self._cached_shops = {other.shop_id: other for other in used_shops}
            cached_shop = self._cached_shops[shop_id] = CachedShop(shop_id)
        cached_shop.used_at = now
        return cached_shop

    def _on_change(self, payload: str) -> None:
        """Note that a shop has a new version. An empty payload says that announcements may have been missed."""
        if not payload:
            for cached_shop in self._cached_shops.values():
                cached_shop.read_at = 0.0
                self._update_soon(cached_shop)
            return
        shop_id, version = map(int, payload.split())
        if cached_shop := self._cached_shops.get(shop_id):
            self._on_version(cached_shop, version)

    def _on_version(self, cached_shop: CachedShop, version: int) -> None:
        cached_shop.announced = max(cached_shop.announced, version)
        self._update_soon(cached_shop)

    def _update_soon(self, cached_shop: CachedShop) -> None:
        """Update a cached shop that has readers, and retry until it succeeds."""

        async def work() -> None:
            while cached_shop.has_readers and not cached_shop.is_fresh and not cached_shop.has_ended:
                try:
                    await self._update(cached_shop)
                except Exception as error:
                    log.warning("a shop could not be read; trying again", shop=cached_shop.shop_id, error=str(error))
                    await asyncio.sleep(RETRY_SECONDS)

        if (
            cached_shop.has_readers
            and not cached_shop.is_fresh
            and (cached_shop.updating is None or cached_shop.updating.done())
        ):
            cached_shop.updating = create_shared_task(work(), name=f"update of shop {cached_shop.shop_id}")

    async def _update(self, cached_shop: CachedShop) -> None:
        """Read the changes of a shop that have been announced by now. A crowd that waits for them shares a read."""
        began_before = cached_shop.reading is not None
        await self._shared_read(cached_shop)
        if began_before and not cached_shop.is_fresh:
            # That read may have missed a change. This one has begun after the call.
            await self._shared_read(cached_shop)

    async def _shared_read(self, cached_shop: CachedShop) -> None:
        if cached_shop.reading is None:
            cached_shop.reading = create_shared_task(self._read(cached_shop))
            cached_shop.reading.add_done_callback(partial(_finish, cached_shop))
        await asyncio.shield(cached_shop.reading)

    async def _read(self, cached_shop: CachedShop) -> None:
        started_at, announced = time.monotonic(), cached_shop.announced
        delta = await self._database.read(cached_shop.read, cached_shop.shop_id)
        if delta is None:
            self._end(cached_shop)
            raise _unknown()
        cached_shop.read_at = started_at
        if delta.version > cached_shop.version:
            cached_shop.advance(delta)
        if cached_shop.announced == announced:
            # The announced version was read, or its transaction was rolled back.
            cached_shop.announced = cached_shop.version


def _finish(cached_shop: CachedShop, reading: asyncio.Task[None]) -> None:
    cached_shop.reading = None
    if not reading.cancelled():
        reading.exception()  # it is raised to the callers that wait, if any are left


def _domain_in(payload: str) -> str:
    """The domain in the announcement of an ended shop."""
    return payload.split()[1]


def _unknown() -> Problem:
    """The problem of a shop that does not have the app. It does not repeat the request."""
    return NOT_FOUND("The shop does not have the app.", hint="Install the app at the shop.")
