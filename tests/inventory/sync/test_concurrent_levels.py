"""Two writers change the levels of a shop at the same time."""

import asyncio
from datetime import UTC, datetime, timedelta

from msgspec import structs

from holdfast.inventory.resources import Tx
from holdfast.inventory.sync import levels
from holdfast.inventory.sync.model import ObservedLevel, OrderLevelChange
from holdfast.inventory.sync.planning import plan
from tests.helpers.locked_rows import wait_for_lock_waiters
from tests.inventory.sync.sync_scene import SyncScene


async def test_a_sync_that_waits_for_a_level_does_not_block_requests_for_a_sync(scene: SyncScene) -> None:
    await scene.adjust(-6)
    tasks: list[asyncio.Task[int]] = []

    async def change(tx: Tx) -> None:
        await tx.tuples("select from levels for update")
        tasks.append(asyncio.create_task(scene.sync_due()))
        await wait_for_lock_waiters(scene.inventory.sql)
        await tx.run("select from syncs for update nowait")
        await levels.request_sync(tx, scene.shop.id)

    await scene.transact(change)
    await asyncio.gather(*tasks)
    assert scene.levels() == (44, 7, 3)


async def test_observations_of_two_locations_at_once_are_both_considered(scene: SyncScene) -> None:
    [here] = scene.reported_levels("Single")
    second = structs.replace(here, location_gid="gid://shopify/Location/7", gid="gid://shopify/InventoryLevel/7")

    async def observe(observed: ObservedLevel, available: int) -> None:
        level = structs.replace(observed, available=available)
        await scene.transact(lambda tx: levels.observe(tx, scene.shop.id, [level], is_just_read=True))

    await observe(second, 50)
    await scene.make_due()
    await scene.sync_due()
    await observe(here, 51)  # one came back here, and soon one is sold there
    tasks: list[asyncio.Task[None]] = []

    async def count(tx: Tx) -> None:
        now = datetime.now(UTC) + timedelta(seconds=1)
        await levels.explain(tx, scene.shop.id, [OrderLevelChange(scene.variants["Single"].gid, 1, now)])
        await tx.value("select true")  # what was explained is sent before another process hears
        tasks.append(asyncio.create_task(observe(second, 49)))
        await wait_for_lock_waiters(scene.inventory.sql)

    await scene.transact(count)
    await asyncio.gather(*tasks)
    rows = await scene.inventory.sql(
        "select available, expected from levels where item_gid = %(item)s order by available",
        item=scene.item("Single"),
    )
    assert rows == [(49, 50), (51, 51)]


ITEMS = 200
WRITERS = 8
ROUNDS = 12


async def test_many_concurrent_changes_of_the_same_levels_wait_for_each_other_and_all_succeed(scene: SyncScene) -> None:
    """What observes levels, and what computes them, run once: nothing is retried here."""
    seen = await many_levels(scene)
    database, shop_id = scene.inventory.database, scene.shop.id

    async def observe(writer: int) -> None:
        for number in range(ROUNDS):
            levels_of_webhook = [structs.replace(level, available=writer + number) for level in seen]
            async with database.transaction(shop_id) as tx:
                await levels.observe(tx, shop_id, levels_of_webhook, is_just_read=True)

    async def compute() -> None:
        for _ in range(ROUNDS):
            await scene.adjust(1)
            async with database.transaction(shop_id) as tx:
                await plan(tx, shop_id)

    async with asyncio.timeout(60):
        await asyncio.gather(*map(observe, range(WRITERS)), *(compute() for _ in range(WRITERS)))

    on_hand = await scene.shop.on_hand(scene.pool_id)
    targets = await scene.inventory.sql("select distinct target from levels where gid like '%%/many-%%'")
    assert targets == [(on_hand,)]


async def many_levels(scene: SyncScene) -> list[ObservedLevel]:
    """Levels of as many variants that draw on the pool; what is stored first comes last in the order of locks."""
    numbers = [*reversed(range(9_000, 9_000 + ITEMS))]
    gids = [f"gid://shopify/ProductVariant/{number}" for number in numbers]
    items = [f"gid://shopify/InventoryItem/{number}" for number in numbers]
    for start in range(0, ITEMS, 100):
        members = [{"variant_gid": gid, "units_per_sale": 1} for gid in gids[start : start + 100]]
        await scene.shop.call("link_variants", pool_id=scene.pool_id, members=members)
    await scene.inventory.sql(
        """
        insert into catalog_variants (shop_id, gid, product_gid, product_title, title, item_gid, tracked)
        select %(shop_id)s, gid, 'gid://shopify/Product/7', 'Honey', gid, item, true
          from unnest(%(gids)s::text[], %(items)s::text[]) as variant (gid, item)
        """,
        shop_id=scene.shop.id,
        gids=gids,
        items=items,
    )
    [known] = scene.reported_levels("Single")
    seen = [
        structs.replace(known, item_gid=item, gid=f"gid://shopify/InventoryLevel/many-{number}")
        for number, item in zip(numbers, items, strict=True)
    ]
    await scene.inventory.sql(
        """
        insert into levels (shop_id, item_gid, location_gid, gid, available, seen_at)
        select %(shop_id)s, item, %(location_gid)s, 'gid://shopify/InventoryLevel/many-' || item, 0, now()
          from unnest(%(items)s::text[]) as item
        """,
        shop_id=scene.shop.id,
        items=items,
        location_gid=known.location_gid,
    )
    await scene.inventory.sql("analyze")
    return seen
