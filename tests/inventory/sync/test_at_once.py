"""Two who change the levels of a shop at once."""

import asyncio
from datetime import UTC, datetime, timedelta

from msgspec import structs

from holdfast.inventory.resources import Tx
from holdfast.inventory.sync import levels
from holdfast.inventory.sync.model import Moved, Observed
from tests.inventory.sync.scene import Scene
from tests.support import eventually


async def test_who_waits_for_a_level_keeps_nobody_from_calling_for_attention(scene: Scene) -> None:
    await scene.adjust(-6)
    tasks: list[asyncio.Task[int]] = []

    async def change(tx: Tx) -> None:
        await tx.run("select from levels for update")
        tasks.append(asyncio.create_task(scene.attend()))
        await eventually(lambda: is_waiting(scene))
        await tx.run("select from syncs for update nowait")
        await levels.call(tx, scene.shop.id)

    await scene.transact(change)
    await asyncio.gather(*tasks)
    assert scene.levels() == (44, 7, 3)


async def test_what_two_say_of_two_locations_at_once_is_all_weighed(scene: Scene) -> None:
    [here] = scene.seen("Single")
    there = structs.replace(here, location_gid="gid://shopify/Location/7", gid="gid://shopify/InventoryLevel/7")

    async def hear(observed: Observed, available: int) -> None:
        said = structs.replace(observed, available=available)
        await scene.transact(lambda tx: levels.observe(tx, scene.shop.id, [said], fresh=True))

    await hear(there, 50)
    await scene.due()
    await scene.attend()
    await hear(here, 51)  # one came back here, and soon one is sold there
    tasks: list[asyncio.Task[None]] = []

    async def count(tx: Tx) -> None:
        now = datetime.now(UTC) + timedelta(seconds=1)
        await levels.explain(tx, scene.shop.id, [Moved(scene.variants["Single"].gid, 1, now)])
        tasks.append(asyncio.create_task(hear(there, 49)))
        await eventually(lambda: is_waiting(scene))

    await scene.transact(count)
    await asyncio.gather(*tasks)
    rows = await scene.inventory.sql(
        "select available, expected from levels where item_gid = %(item)s order by available",
        item=scene.item("Single"),
    )
    assert rows == [(49, 50), (51, 51)]


async def is_waiting(scene: Scene) -> bool:
    """Whether somebody waits for a lock."""
    [(waiting,)] = await scene.inventory.sql(
        "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')"
    )
    return waiting
