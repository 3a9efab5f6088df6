"""The first stock of a pool can be the sum of its variants at the platform."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.helpers.inventory_service import ToolRefusal, set_daily_limit
from tests.helpers.platform_shop import PlatformSource
from tests.inventory.sync.sync_scene import PACKS, SyncScene, open_installed_shop


@pytest.fixture
async def scene(platform_source: PlatformSource) -> AsyncGenerator[SyncScene]:
    """A shop with an empty pool, and 50 singles, 8 6-packs and 4 12-packs at the platform."""
    async with open_installed_shop(platform_source) as scene:
        scene.pool_id = (await scene.shop.create_pool(0))["id"]
        yield scene


async def link(scene: SyncScene, *titles: str, **more: Any) -> Any:
    members = [{"variant_gid": scene.variants[title].gid, "units_per_sale": PACKS[title]} for title in titles]
    arguments = {"pool_id": scene.pool_id, "members": members, "initial": "sum_from_platform", **more}
    return await scene.shop.call("link_variants", **arguments)


async def test_the_first_stock_is_that_of_the_platform_and_the_levels_follow(scene: SyncScene) -> None:
    tried = await link(scene, *PACKS, dry_run=True)
    linked = await link(scene, *PACKS)
    await scene.sync_due()

    assert tried["pool"]["on_hand"] == linked["pool"]["on_hand"] == 50 + 8 * 6 + 4 * 12
    [entry] = await scene.shop.entries()
    assert (entry["kind"], entry["delta"], entry["source"], entry["actor"]) == ("import", 146, "link_variants", "agent")
    assert scene.levels() == (146, 24, 12)
    assert await scene.inventory.ledger_differences() == []


async def test_the_first_stock_counts_against_the_daily_limit_of_the_key(scene: SyncScene) -> None:
    await set_daily_limit(scene.inventory, scene.shop, 145)

    with pytest.raises(ToolRefusal) as refusal:
        await link(scene, *PACKS)

    assert refusal.value.code == "daily_limit_reached"
    assert await scene.shop.on_hand(scene.pool_id) == 0


async def test_a_first_stock_adds_only_newly_linked_variants(scene: SyncScene) -> None:
    await link(scene, "Single")
    await scene.adjust(-10)
    await link(scene, "Single", "6-pack")

    assert await scene.shop.on_hand(scene.pool_id) == 40 + 8 * 6


async def test_a_pool_linked_without_a_first_stock_keeps_its_quantity(scene: SyncScene) -> None:
    await link(scene, *PACKS, initial="keep_pool")

    assert await scene.shop.on_hand(scene.pool_id) == 0
    assert await scene.shop.entries() == []


async def test_a_first_stock_of_unknown_variants_or_of_another_pool_is_refused(scene: SyncScene) -> None:
    other = await scene.shop.create_pool(
        9, name="Other", members=[{"variant_gid": scene.variants["Single"].gid, "units_per_sale": 1}]
    )
    unknown = {"variant_gid": "gid://shopify/ProductVariant/7", "units_per_sale": 1}
    for member, why in (
        ({**unknown, "variant_gid": scene.variants["Single"].gid}, "draws on another pool"),
        (unknown, "is not known"),
    ):
        problem = await scene.shop.refusal(
            "link_variants", pool_id=scene.pool_id, members=[member], initial="sum_from_platform"
        )
        assert why in problem["errors"]["initial"][0]
    assert await scene.shop.on_hand(other["id"]) == 9


async def test_a_first_stock_from_the_platform_needs_the_scope_to_write_quantities(scene: SyncScene) -> None:
    await scene.inventory.regenerate_key(scene.shop, "read_pools", "write_pools")

    member = {"variant_gid": scene.variants["Single"].gid, "units_per_sale": 1}
    arguments = {"pool_id": scene.pool_id, "members": [member]}
    refusal = await scene.shop.send_call("link_variants", {**arguments, "initial": "sum_from_platform"})
    assert (refusal.status_code, refusal.json()["error"]) == (403, "insufficient_scope")
    await scene.shop.call("link_variants", **arguments)
