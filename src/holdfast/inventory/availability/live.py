"""What this process tells of shops right now: kept in memory by version, and true because changes are announced.

A shop's `Shelf` is read once and then brought forward by what changed since its version. Storefront streams and agents
hear of a change from the feeds of the shelf, whichever process made it.
"""

import asyncio
import time
from contextlib import AbstractContextManager
from typing import NamedTuple

import msgspec
import structlog

from holdfast.inventory.availability import sql
from holdfast.inventory.availability.model import Delta
from holdfast.inventory.settings import Database, Tx
from holdfast.inventory.shops.model import Shop
from holdfast.inventory.shops.operations import find
from holdfast.inventory.stock.book import CHANGES
from holdfast.kit.mcp import Change
from holdfast.kit.operation import Caller
from holdfast.kit.streams import Feed, event

log = structlog.get_logger()

TTL = 1.0
"""Seconds a shelf is believed: the longest a change could go unheard while the listener reconnects."""

REMEMBERED = 1000
"""Shops a process keeps in mind before it forgets those nobody has asked for lately."""

LATELY = 60.0
"""Seconds."""

REMEMBERED_BYTES = 500_000
"""Messages of a shop kept for storefronts that were away for a moment. A snapshot serves those away for longer."""

PATIENCE = 0.5
"""Seconds between tries to read a shop that somebody listens to."""


class Encoded(NamedTuple):
    """The variants of a shop as JSON, at one version."""

    version: int
    variants: bytes


class Shelf:
    """What one shop has to sell, and whoever wants to hear of it.

    version     of the shop it shows; -1 before it is first read
    told        the newest version anybody spoke of
    variants    effective quantity by global id
    """

    def __init__(self, shop_id: int) -> None:
        self.shop_id = shop_id
        self.version = -1
        self.told = 0
        self.variants: dict[str, int] = {}
        self.storefront: Feed[bytes] = Feed(room=REMEMBERED_BYTES)
        self.agents: Feed[Change] = Feed()
        self.turn = asyncio.Lock()
        self.following: asyncio.Task[None] | None = None
        self.read_at = 0.0
        self.used_at = 0.0
        self._pools: dict[int, str] = {}
        self._encoded = Encoded(-1, b"")

    @property
    def is_fresh(self) -> bool:
        return 0 <= self.told <= self.version and time.monotonic() < self.read_at + TTL

    @property
    def is_heard(self) -> bool:
        return self.storefront.is_heard or self.agents.is_heard

    async def read(self, tx: Tx) -> Delta:
        """What has changed since its version; everything when it was never read."""
        if self.version < 0:
            return await sql.everything(tx, self.shop_id)
        return await sql.changes_since(tx, self.shop_id, self.version)

    def encoded(self) -> bytes:
        """The variants as JSON, encoded once a version."""
        if self._encoded.version != self.version:
            self._encoded = Encoded(self.version, msgspec.json.encode(self.variants))
        return self._encoded.variants

    def snapshot(self) -> bytes:
        """Everything, as the event a stream starts with."""
        data = b'{"version":%d,"variants":%s}' % (self.version, self.encoded())
        return event(data, id=str(self.version), name="snapshot")

    def advance(self, delta: Delta) -> None:
        """Bring it forward, and tell everyone who listens."""
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
            # Whoever listens already has seen nothing yet, and gets a snapshot.
            self.storefront.restart(delta.version)
            self.agents.restart(delta.version)
            return
        if changed:
            message = _event(delta.version, changed)
            self.storefront.publish(delta.version, message, len(message))
        if delta.pools:
            uris = [uri for id in sorted(delta.pools) for uri in (f"pool://{id}", f"pool://{id}/history")]
            self.agents.publish(delta.version, Change(uris, listed))


def _event(version: int, changed: dict[str, int | None]) -> bytes:
    body: dict[str, object] = {
        "version": version,
        "variants": {gid: quantity for gid, quantity in changed.items() if quantity is not None},
        "removed": [gid for gid, quantity in changed.items() if quantity is None],
    }
    return event(msgspec.json.encode(body), id=str(version), name="change")


class Live:
    """The shelves of this process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._shelves: dict[int, Shelf] = {}
        self._shops: dict[str, Shop] = {}
        self._cleared_at = 0.0

    async def shop(self, domain: str) -> Shop:
        """The shop with a domain. Raises `not_found`."""
        shop = self._shops.get(domain)
        if shop is None:
            shop = await self._database.read(lambda tx: find(tx, domain))
            if len(self._shops) >= REMEMBERED:
                self._shops.clear()
            self._shops[domain] = shop
        return shop

    async def shelf(self, shop_id: int) -> Shelf:
        """What a shop has to sell, at least as of the newest change this process has heard of."""
        shelf = self._shelf(shop_id)
        if not shelf.is_fresh:
            await self._bring_forward(shelf)
        return shelf

    async def changes(self, caller: Caller) -> Feed[Change]:
        """What changes of the caller's pools, from now on."""
        return (await self.shelf(caller.tenant)).agents

    def hearing(self) -> AbstractContextManager[None]:
        """Bring shelves forward as changes are announced, while the block lasts."""
        return self._database.hearing(CHANGES, self._heard)

    def _shelf(self, shop_id: int) -> Shelf:
        now = time.monotonic()
        shelf = self._shelves.get(shop_id)
        if shelf is None:
            if len(self._shelves) >= REMEMBERED and now > self._cleared_at + LATELY:
                self._cleared_at = now
                kept = [each for each in self._shelves.values() if each.is_heard or now < each.used_at + LATELY]
                self._shelves = {each.shop_id: each for each in kept}
            shelf = self._shelves[shop_id] = Shelf(shop_id)
        shelf.used_at = now
        return shelf

    def _heard(self, payload: str) -> None:
        if payload:
            shop_id, version = map(int, payload.split())
            concerned = [shelf] if (shelf := self._shelves.get(shop_id)) else []
        else:
            # Anything may have been missed.
            version, concerned = 0, [*self._shelves.values()]
        for shelf in concerned:
            shelf.told = max(shelf.told, version)
            if not payload:
                shelf.read_at = 0.0
            if shelf.is_heard and not shelf.is_fresh:
                self._soon(shelf)

    def _soon(self, shelf: Shelf) -> None:
        """Bring a shelf forward that somebody listens to, however long it takes."""

        async def work() -> None:
            while shelf.is_heard and not shelf.is_fresh:
                try:
                    await self._bring_forward(shelf)
                except Exception as error:
                    log.warning("a shop could not be read; trying again", shop=shelf.shop_id, error=str(error))
                    await asyncio.sleep(PATIENCE)

        if shelf.following is None or shelf.following.done():
            shelf.following = asyncio.create_task(work(), name=f"shelf {shelf.shop_id}")

    async def _bring_forward(self, shelf: Shelf) -> None:
        async with shelf.turn:
            if shelf.is_fresh:
                return
            started, told = time.monotonic(), shelf.told
            delta = await self._database.read(shelf.read, shelf.shop_id)
            shelf.read_at = started
            if delta.version > shelf.version:
                shelf.advance(delta)
            if shelf.told == told:
                # What was announced and is not there was tried and taken back.
                shelf.told = shelf.version
