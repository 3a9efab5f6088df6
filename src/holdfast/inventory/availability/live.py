"""What each shop has to sell now, kept in the memory of this process.

A `ShopView` is read once, and then brought up to date with what changed since its version. Every change is announced to
all processes, so a view knows when it is out of date. Storefront streams and agents read the changes from its feeds.
Agents are also told that the shop follows the storefront platform differently (`STATUS`), which has no version.

An announcement can be lost: a process may be killed before it sends it, or a listener be cut off. So a patrol compares
the versions of all views that have readers with those in the database, by one statement.
"""

import asyncio
import contextlib
import time
from collections.abc import Generator, Sequence

import structlog
from cachetools import LRUCache

from holdfast.inventory.availability import sql
from holdfast.inventory.availability.model import Delta
from holdfast.inventory.availability.view import GRAIN, STATUS, ShopView, uris
from holdfast.inventory.resources import Database, Reader
from holdfast.inventory.shops import status
from holdfast.inventory.shops.model import Shop
from holdfast.inventory.shops.operations import find
from holdfast.inventory.stock.book import CHANGES
from holdfast.kit.caller import Caller
from holdfast.kit.mcp import Change
from holdfast.kit.problems import SERVICE_UNAVAILABLE, Problem
from holdfast.kit.streams import Feed

log = structlog.get_logger()

CAPACITY = 1000
"""Shops a process keeps in memory, beside those with readers and those used in the last minute."""

IDLE_SECONDS = 60.0
"""Seconds without use after which a view without readers may be removed; also the least time between removals."""

PATROL_SECONDS = 2.0
"""Seconds between two looks at the versions of the views that have readers."""

STALE_SECONDS = PATROL_SECONDS + 1.0
"""What a stream or an agent was told is never older than this, whatever announcement was lost, while the database can
be reached: a change is found after `PATROL_SECONDS` at most, and then read."""

RETRY_SECONDS = 0.5
"""Seconds between attempts to read a shop that has readers."""


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
        view = await self.view(caller.tenant)
        if not view.status:
            await self._look([view])
        return view.agents

    async def missed(self, caller: Caller, position: int) -> Change:
        """What changed of the caller's pools after a position, from the database: any process can say so.

        Whether the status changed too is not known; it may have.
        """

        async def read(reader: Reader) -> Delta:
            return await sql.changes_since(reader, caller.tenant, position // GRAIN)

        return Change([*uris(await self._database.read(read, caller.tenant)), STATUS], listed=True)

    @contextlib.contextmanager
    def listening(self) -> Generator[None]:
        """Update views as changes are announced, or found on patrol, while the block lasts."""
        patrol = asyncio.create_task(self._patrol(), name="patrol of streams")
        try:
            with (
                self._database.listen(CHANGES, self._on_change),
                self._database.listen(status.CHANNEL, self._on_status),
            ):
                yield
        finally:
            patrol.cancel()

    async def _patrol(self) -> None:
        while True:
            await asyncio.sleep(PATROL_SECONDS)
            followed = [each for each in self._views.values() if each.has_readers]
            try:
                await self._look(followed)
            except Exception as error:
                # The database logs when it is away.
                if not (isinstance(error, Problem) and error.type is SERVICE_UNAVAILABLE):
                    log.error("the versions of shops could not be read; trying again", exc_info=error)

    async def _look(self, views: Sequence[ShopView]) -> None:
        """Look whether there is something newer than views show."""
        if not views:
            return
        ids = [each.shop_id for each in views]
        rows = await self._database.read(lambda reader: sql.present(reader, ids))
        present = {shop_id: (version, status) for shop_id, version, status in rows}
        for view in views:
            version, status = present.get(view.shop_id, (-1, ""))
            if view.status and view.status != status:
                view.status_changed()
            view.status = status
            if version > view.version:
                self._announced(view, version)

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
            self._announced(view, version)

    def _announced(self, view: ShopView, version: int) -> None:
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
