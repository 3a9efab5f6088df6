"""A shop that has the app, with its honey in a pool, and what one does to it at the platform and at the service."""

import contextlib
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from typing import Any

from holdfast.inventory.catalog import importing
from holdfast.inventory.catalog.model import ImportTask
from holdfast.inventory.resources import Steps, Tx
from holdfast.inventory.service import HANDLERS
from holdfast.inventory.sync import levels, operations
from holdfast.inventory.sync.model import LocationPercent, ObservedLevel, OrderLevelChange, Spreading
from holdfast.inventory.sync.shop_sync import SyncWork
from holdfast.kit.operations import steps as kit
from holdfast_demo.shopify import payloads
from holdfast_demo.shopify.application import ShopifyDouble
from holdfast_demo.shopify.model import Location, Variant, gid
from tests.helpers.events_service import eventually
from tests.helpers.inventory_service import Inventory, Shop
from tests.helpers.platform_shop import DOMAIN, SECRET, PlatformScene, PlatformSource, open_platform_scene
from tests.helpers.platform_webhooks import deliver, handle
from tests.helpers.row_work import handle_all

PlatformMessage = tuple[str, Any]

PACKS = {"Single": 1, "6-pack": 6, "12-pack": 12}


class SyncScene:
    """The service, the platform and the shop."""

    def __init__(self, installing: PlatformScene, shop: Shop) -> None:
        self.installing = installing
        self.inventory: Inventory = installing.inventory
        self.platform: ShopifyDouble = installing.platform
        self.shop = shop
        self.steps: Steps = kit.Steps(self.inventory.database, shop.id)
        self.pool_id = 0
        self.variants = {variant.title: variant for variant in self.platform.variants(DOMAIN) if variant.title in PACKS}

    def levels(self) -> tuple[int, ...]:
        """How many singles, 6-packs and 12-packs the platform has."""
        return tuple(self.platform.available(DOMAIN, variant.id) for variant in self.variants.values())

    def count(self, title: str, available: int) -> None:
        """Set a level by hand, as merchants do."""
        self.platform.count(DOMAIN, self.variants[title].id, available)

    def item(self, title: str) -> str:
        return gid("InventoryItem", self.variants[title].item)

    async def link(self) -> None:
        """Link what the shop sells to a pool of 50."""
        members = [
            {"variant_gid": gid("ProductVariant", variant.id), "units_per_sale": PACKS[title]}
            for title, variant in self.variants.items()
        ]
        self.pool_id = (await self.shop.create_pool(50, members=members))["id"]

    async def sync_due(self) -> int:
        """Sync all levels that are due."""
        return await handle_all(SyncWork(self.inventory.database))

    async def end_push_pause(self) -> None:
        """Let the levels have been pushed a while ago, and be due."""
        await self.inventory.sql("update levels set pushed_at = pushed_at - interval '1 second'")
        await self.make_due()

    async def make_due(self) -> None:
        """Let all levels be due."""
        await self.inventory.sql("update syncs set due_at = now()")

    async def end_grace_and_sync(self) -> None:
        """Let the grace of all differences be over, and sync."""
        await self.inventory.sql("update levels set suspect_at = now() where suspect_at is not null")
        await self.end_push_pause()
        await self.sync_due()

    async def adjust(self, delta: int) -> None:
        await self.shop.call("adjust_pool_quantity", pool_id=self.pool_id, delta=delta)

    async def observe_levels(self, *titles: str, available: int | None = None) -> None:
        """Store what the platform reports of levels, as they are or as they are said to be, and have them synced."""
        await self.transact(
            lambda tx: levels.observe(tx, self.shop.id, self.reported_levels(*titles, available=available))
        )
        await self.transact(lambda tx: levels.request_sync(tx, self.shop.id))

    def reported_levels(self, *titles: str, available: int | None = None) -> list[ObservedLevel]:
        """What the platform would say of levels: as they are, or as they are said to be."""
        return [
            level for title in titles or PACKS for level in self.levels_of(self.variants[title], available=available)
        ]

    def levels_of(self, variant: Variant, *, available: int | None = None) -> list[ObservedLevel]:
        """What the platform would say of the levels of a variant."""
        return [
            ObservedLevel(
                gid("InventoryItem", level.item),
                gid("Location", level.location),
                level.gid,
                level.available if available is None else available,
                datetime.fromtimestamp(int(level.updated), UTC),
            )
            for level in self.platform.state.levels.of_item(DOMAIN, variant.item)
        ]

    async def transact(self, work: Callable[[Tx], Any]) -> Any:
        return await self.inventory.database.transact(work, self.shop.id)

    async def row(self, title: str, columns: str) -> tuple[Any, ...]:
        """What is stored of a level."""
        [row] = await self.inventory.sql(
            f"select {columns} from levels where item_gid = %(item)s", item=self.item(title)
        )
        return row

    async def finish_import(self) -> None:
        """Bring the import of the shop to its end."""
        await eventually(self._is_imported)

    async def _is_imported(self) -> bool:
        [(import_id, finished)] = await self.inventory.sql("select import_id, finished_at is not null from catalogs")
        if not finished:
            await importing.advance_import(self.steps, ImportTask(self.shop.id, import_id))
        return finished


@contextlib.asynccontextmanager
async def open_installed_shop(platform_source: PlatformSource) -> AsyncGenerator[SyncScene]:
    """A shop that has the app, whose levels are known, and that has no pool yet."""
    async with open_platform_scene(platform_source) as installing:
        scopes = ("read_inventory", "write_inventory", "read_pools", "write_pools")
        scene = SyncScene(installing, await installing.install_shop(*scopes))
        await scene.finish_import()
        yield scene


@contextlib.asynccontextmanager
async def open_pooled_shop(platform_source: PlatformSource, policy: str = "adopt") -> AsyncGenerator[SyncScene]:
    """The same with a pool of 50, and levels that agree with it."""
    async with open_installed_shop(platform_source) as scene:
        await scene.link()
        if policy != "adopt":
            await scene.shop.call("update_pool", pool_id=scene.pool_id, policy=policy)
        await scene.sync_due()
        await scene.end_push_pause()
        yield scene


async def deliver_message(scene: SyncScene, message: tuple[str, Any, str]) -> None:
    topic, payload, id = message
    if topic in HANDLERS:
        answer = await deliver(scene.shop, topic, payload, secret=SECRET.encode(), webhook_id=id)
        assert answer.status_code == 200


def count_level_calls(scene: SyncScene) -> int:
    """How many calls have changed levels of the shop."""
    return scene.platform.state.store.db.execute(
        "select count(*) from things where kind = 'InventoryAdjustmentGroup' and shop = ?", (DOMAIN,)
    ).fetchone()[0]


def sale_of(scene: SyncScene, title: str, change: int) -> OrderLevelChange:
    """A sale of this moment."""
    return OrderLevelChange(scene.variants[title].gid, change, datetime.now(UTC))


async def add_location(scene: SyncScene, name: str, *, service: bool = False, heard: bool = True) -> Location:
    """Add a location that stocks singles and has none yet. `heard`: the platform tells of the location too."""
    location = scene.platform.add_location(DOMAIN, name, service=service)
    level = scene.platform.stock(DOMAIN, scene.variants["Single"].id, location.id, 0)
    if heard:
        await deliver(scene.shop, "locations/create", payloads.location(location), secret=SECRET.encode())
    await deliver(scene.shop, "inventory_levels/connect", payloads.level(level), secret=SECRET.encode())
    await handle(scene.inventory)
    return location


async def singles_by_location(scene: SyncScene) -> tuple[int, ...]:
    """How many singles the platform has at each location, after all levels were attended to."""
    await scene.end_push_pause()
    await scene.sync_due()
    single, locations = scene.variants["Single"], scene.platform.locations(DOMAIN)
    return tuple(scene.platform.level(DOMAIN, single.id, location.id).available for location in locations)


async def spread_shares(scene: SyncScene, *shares: LocationPercent) -> Spreading:
    return await scene.transact(lambda tx: operations.spread(tx, scene.shop.id, shares))


def listen_to_platform(scene: SyncScene) -> list[PlatformMessage]:
    """A list to which everything is added that the platform tells from now on."""
    messages: list[PlatformMessage] = []

    def add(message: Any) -> None:
        if message.topic in HANDLERS:
            messages.append((message.topic, message.payload))

    scene.platform.state.on_message.append(add)
    return messages


async def deliver_and_sync(scene: SyncScene, *messages: PlatformMessage) -> None:
    """Deliver messages one after the other, and sync after each."""
    for topic, payload in messages:
        assert (await deliver(scene.shop, topic, payload, secret=SECRET.encode())).status_code == 200
        await handle(scene.inventory)
        await scene.end_push_pause()
        await scene.sync_due()
