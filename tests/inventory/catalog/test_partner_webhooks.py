"""Partner webhooks about products, items, levels and locations keep the catalog up to date."""

from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from holdfast.inventory.catalog import importing, sql
from holdfast.inventory.catalog.model import Location
from holdfast_demo.shopify import shops
from holdfast_demo.shopify.payloads import level as level_payload
from holdfast_demo.shopify.shops import NewVariant
from tests.helpers.platform_shop import DOMAIN, SECRET
from tests.helpers.platform_webhooks import deliver, handle
from tests.inventory.sync.sync_scene import SyncScene


@pytest.fixture
def tells(scene: SyncScene) -> Any:
    """Deliver what the platform would tell, at once and in order."""
    waiting: list[tuple[str, Any]] = []
    scene.platform.state.on_message.append(lambda message: waiting.append((message.topic, message.payload)))

    async def deliver_all() -> None:
        for topic, payload in [*waiting]:
            answer = await deliver(scene.shop, topic, payload, secret=SECRET.encode())
            assert answer.status_code == 200, answer.text
            await handle(scene.inventory)
        waiting.clear()

    return deliver_all


async def test_a_new_product_is_known_with_its_levels(scene: SyncScene, tells: Any) -> None:
    scene.platform.add_product(DOMAIN, "Socks", [NewVariant("Red", "SOCK-R", stock=3)])
    await tells()

    rows = await scene.inventory.sql(
        """select product_title, title, available from catalog_variants join levels using (shop_id, item_gid)
            where sku = 'SOCK-R'"""
    )
    assert rows == [("Socks", "Red", 3)]


async def test_a_changed_variant_gets_its_new_title_and_keeps_whether_it_is_tracked(
    scene: SyncScene, tells: Any
) -> None:
    id = scene.variants["Single"].id
    shops.change_variant(scene.platform.state, DOMAIN, id, title="One jar", sku="H1", tracked=False)
    await tells()
    shops.change_variant(scene.platform.state, DOMAIN, id, title="One jar of honey")
    await tells()

    rows = await scene.inventory.sql("select title, tracked from catalog_variants where sku = 'H1'")
    assert rows == [("One jar of honey", False)]


async def test_an_import_after_a_change_of_the_product_brings_the_words_of_now(scene: SyncScene, tells: Any) -> None:
    """The webhook has the date of the product, which another variant may have changed after this one."""
    single, other = scene.variants["Single"], scene.variants["6-pack"]
    scene.platform.clock.advance(5)
    shops.change_variant(scene.platform.state, DOMAIN, single.id, sku="H1")
    scene.platform.clock.advance(5)
    shops.change_variant(scene.platform.state, DOMAIN, other.id, sku="H6")
    await tells()
    await scene.inventory.sql(f"update catalog_variants set sku = 'lost' where gid = '{single.gid}'")
    await scene.transact(lambda tx: importing.begin(tx, scene.shop.id))
    await scene.finish_import()

    assert await scene.inventory.sql(f"select sku from catalog_variants where gid = '{single.gid}'") == [("H1",)]


async def test_a_variant_deleted_by_a_webhook_is_deleted_from_the_catalog(scene: SyncScene, tells: Any) -> None:
    shops.remove_variant(scene.platform.state, DOMAIN, scene.variants["Single"].id)
    await tells()
    count = "select (select count(*) from catalog_variants), (select count(*) from levels)"
    assert await scene.inventory.sql(count) == [(4, 4)]

    shops.remove_product(scene.platform.state, DOMAIN, scene.variants["6-pack"].product)
    await tells()

    assert await scene.inventory.sql(count) == [(2, 2)]


async def test_a_late_webhook_of_a_level_does_not_replace_a_newer_one(scene: SyncScene, tells: Any) -> None:
    late = level_payload(scene.platform.level(DOMAIN, scene.variants["Single"].id))
    scene.platform.clock.advance(5)
    scene.count("Single", 40)
    await tells()
    await deliver(scene.shop, "inventory_levels/update", late, secret=SECRET.encode())
    await handle(scene.inventory)

    assert await scene.row("Single", "available") == (40,)


async def test_levels_of_many_webhooks_at_once_have_their_latest_quantities(scene: SyncScene) -> None:
    payloads = [level_payload(scene.platform.level(DOMAIN, scene.variants["6-pack"].id))]
    for available in (45, 40):
        scene.platform.clock.advance(5)
        scene.count("Single", available)
        payloads.append(level_payload(scene.platform.level(DOMAIN, scene.variants["Single"].id)))
    for payload in reversed(payloads):
        await deliver(scene.shop, "inventory_levels/update", payload, secret=SECRET.encode())
    await handle(scene.inventory)

    assert [await scene.row(title, "available") for title in ("Single", "6-pack")] == [(40,), (8,)]


async def test_a_late_webhook_of_a_location_does_not_replace_a_newer_import(scene: SyncScene) -> None:
    def message(day: int, *, active: bool) -> Location:
        return Location("gid://shopify/Location/9", "Stall", active, False, datetime(2026, 11, day, tzinfo=UTC))

    from_import = Location("gid://shopify/Location/9", "Stall", False, False)
    for location, import_id in ((message(5, active=False), None), (from_import, 1), (message(1, active=True), None)):
        work = partial(sql.store_locations, shop_id=scene.shop.id, locations=[location], import_id=import_id)
        await scene.transact(work)

    assert await scene.inventory.sql("select active from locations where name = 'Stall'") == [(False,)]


async def test_locations_come_change_and_go(scene: SyncScene, tells: Any) -> None:
    place = scene.platform.add_location(DOMAIN, "Market stall")
    scene.platform.stock(DOMAIN, scene.variants["Single"].id, place.id, 2)
    await tells()
    shops.set_location(scene.platform.state, DOMAIN, place.id, active=False)
    await tells()

    rows = await scene.inventory.sql("select name, active from locations order by name")
    assert rows == [("Market stall", False), ("Warehouse", True)]
    assert await scene.inventory.sql("select count(*) from levels") == [(6,)]

    await deliver(scene.shop, "locations/delete", {"id": place.id}, secret=SECRET.encode())
    await handle(scene.inventory)

    assert await scene.inventory.sql("select name from locations") == [("Warehouse",)]
    assert await scene.inventory.sql("select count(*) from levels") == [(5,)]


async def test_a_level_that_is_not_stocked_any_more_is_forgotten(scene: SyncScene, tells: Any) -> None:
    level = scene.platform.level(DOMAIN, scene.variants["Single"].id)
    shops.stop_stocking(scene.platform.state, DOMAIN, level.item, level.location)
    await tells()

    assert await scene.inventory.sql("select count(*) from levels") == [(4,)]
