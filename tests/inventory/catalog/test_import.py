"""The first import reads everything that the shop has at the platform, also if processes are killed."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from holdfast.inventory.catalog import importing
from holdfast.inventory.catalog.importing import ImportFailed
from holdfast.inventory.catalog.model import ImportTask
from holdfast.inventory.resources import Steps
from holdfast.inventory.shopify.platform_client import Platform
from holdfast_demo.shopify.shops import NewVariant, remove_product
from tests.helpers.platform_shop import DOMAIN
from tests.inventory.sync.platform_rows import withdraw_access
from tests.inventory.sync.sync_scene import SyncScene

COUNTS = (
    "select (select count(*) from catalog_variants), (select count(*) from levels), (select count(*) from locations)"
)


async def test_the_install_imports_variants_locations_and_levels(scene: SyncScene) -> None:
    assert await scene.inventory.sql(COUNTS) == [(5, 5, 1)]
    rows = await scene.inventory.sql(
        """select product_title, title, sku, tracked, available
             from catalog_variants join levels using (shop_id, item_gid)
            order by sku limit 2"""
    )
    assert rows == [("Honey jars", "Single", "HONEY-1", True, 50), ("Honey jars", "12-pack", "HONEY-12", True, 4)]
    [(objects, stored, error)] = await scene.inventory.sql("select objects, stored_lines, error from catalogs")
    assert (objects, stored, error) == (10, 10, None)


async def test_a_variant_deleted_at_the_platform_is_deleted_by_the_next_import(scene: SyncScene) -> None:
    tea = next(variant for variant in scene.platform.variants(DOMAIN) if variant.product_title == "Green tea")
    remove_product(scene.platform.state, DOMAIN, tea.product)
    await import_again(scene)

    assert await scene.inventory.sql(COUNTS) == [(3, 3, 1)]


async def test_an_import_that_is_cut_off_goes_on_behind_what_is_stored(
    scene: SyncScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.platform.add_product(DOMAIN, "Socks", [NewVariant(str(size), stock=1) for size in range(60)])
    monkeypatch.setattr(importing, "BATCH_LINES", 50)
    stored: list[int] = []
    store = importing._store_lines  # pyright: ignore[reportPrivateUsage]

    async def counted(tx: Any, *, task: ImportTask, lines: Any, stored_lines: int) -> None:
        await store(tx, task=task, lines=lines, stored_lines=stored_lines)
        stored.append(len(lines))

    monkeypatch.setattr(importing, "_store_lines", counted)
    all_lines = Platform.lines
    cut = [70]

    async def lines(self: Platform, url: str) -> AsyncGenerator[bytes]:
        number = 0
        async for line in all_lines(self, url):
            number += 1
            if cut and number > cut[0]:
                cut.clear()
                raise ConnectionResetError
            yield line

    monkeypatch.setattr(Platform, "lines", lines)
    with pytest.raises(ConnectionResetError):
        await import_again(scene)
    assert stored == [50]

    await scene.finish_import()

    assert stored == [50, 50, 30]
    assert await scene.inventory.sql(COUNTS) == [(65, 65, 1)]


async def test_an_operation_that_fails_is_begun_again(scene: SyncScene) -> None:
    scene.platform.bulks.break_after = 1
    with pytest.raises(ImportFailed, match="ended as FAILED: INTERNAL_SERVER_ERROR"):
        await import_again(scene)
    [(error,)] = await scene.inventory.sql("select error from catalogs")
    assert "INTERNAL_SERVER_ERROR" in error

    await scene.finish_import()

    assert await scene.inventory.sql("select error, finished_at is not null from catalogs") == [(None, True)]


async def test_an_import_ends_when_the_shop_is_no_longer_connected(scene: SyncScene) -> None:
    await scene.inventory.database.transact(lambda tx: importing.begin(tx, scene.shop.id))
    await withdraw_access(scene.inventory)
    [(import_id,)] = await scene.inventory.sql("select import_id from catalogs")
    await importing.advance_import(scene.steps, ImportTask(scene.shop.id, import_id))

    [(error, finished)] = await scene.inventory.sql("select error, finished_at from catalogs")
    assert finished is None
    assert error
    assert await scene.inventory.sql(COUNTS) == [(5, 5, 1)]


async def test_a_task_of_an_abandoned_import_does_nothing(scene: SyncScene) -> None:
    await scene.inventory.database.transact(lambda tx: importing.begin(tx, scene.shop.id))
    before = await scene.inventory.sql("select * from catalogs")
    await importing.advance_import(scene.steps, ImportTask(scene.shop.id, 1))

    assert await scene.inventory.sql("select * from catalogs") == before


async def test_every_connected_shop_is_imported_again_each_night(scene: SyncScene) -> None:
    assert await importing.import_all(Steps(scene.inventory.database)) == 1
    assert await scene.inventory.sql("select import_id, finished_at from catalogs") == [(2, None)]


async def import_again(scene: SyncScene) -> None:
    await scene.inventory.database.transact(lambda tx: importing.begin(tx, scene.shop.id))
    await scene.finish_import()
