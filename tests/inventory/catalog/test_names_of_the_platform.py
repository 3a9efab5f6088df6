"""Variants that were linked by their ids alone have the names that the platform gives them, and are found by them."""

from typing import Any

import pytest

from holdfast_demo.shopify import payloads
from holdfast_demo.shopify.orders import SaleLine
from tests.helpers.cases import in_turn
from tests.helpers.platform_shop import DOMAIN, SECRET
from tests.helpers.platform_webhooks import deliver, handle
from tests.inventory.sync.sync_scene import SyncScene

PACK = {"title": "Honey jars · 6-pack", "sku": "HONEY-6"}


@pytest.fixture
async def linked_scene(scene: SyncScene) -> SyncScene:
    """The shop, whose 6-packs draw on a pool; nothing was said of them. Its 12-packs do not."""
    pool = await scene.shop.create_pool(60, name="Jars", members=[{"variant_gid": gid(scene), "units_per_sale": 6}])
    scene.pool_id = pool["id"]
    return scene


def gid(scene: SyncScene) -> str:
    return scene.variants["6-pack"].gid


def names(data: dict[str, Any]) -> dict[str, Any]:
    return {name: data[name] for name in PACK}


@in_turn(
    "known",
    [
        {"sku": "HONEY-6"},
        {"sku": "honey-6"},
        {"text": "6-pa"},
        {"text": "honey"},
        {"text": "Y-6"},
        {"text": PACK["title"]},
    ],
)
async def test_a_variant_is_found_by_the_names_of_the_platform(linked_scene: SyncScene, known: dict[str, str]) -> None:
    [data] = (await linked_scene.shop.call("find_variant", **known))["variants"]

    assert (data["gid"], names(data)) == (gid(linked_scene), PACK)
    assert (data["effective"], [pool["name"] for pool in data["pools"]]) == (10, ["Jars"])


async def test_a_variant_that_was_never_linked_is_not_found(linked_scene: SyncScene) -> None:
    for known in ({"sku": "HONEY-12"}, {"text": "12-pack"}):
        assert (await linked_scene.shop.call("find_variant", **known))["variants"] == []


async def test_a_variant_is_found_by_its_linked_title_and_by_its_title_at_the_platform(linked_scene: SyncScene) -> None:
    members = [{"variant_gid": gid(linked_scene), "units_per_sale": 6, "title": "Half a dozen"}]
    await linked_scene.shop.call("link_variants", pool_id=linked_scene.pool_id, members=members)

    for known in ({"text": "dozen"}, {"text": "6-pack"}, {"sku": "HONEY-6"}, {"gid": gid(linked_scene)}):
        [data] = (await linked_scene.shop.call("find_variant", **known))["variants"]
        assert names(data) == {"title": "Half a dozen", "sku": "HONEY-6"}


async def test_a_pool_names_its_variants(linked_scene: SyncScene) -> None:
    [member] = (await linked_scene.shop.call("get_pool", pool_id=linked_scene.pool_id))["members"]

    assert names(member) == PACK


async def test_an_exported_file_of_variants_imported_again_changes_nothing(linked_scene: SyncScene) -> None:
    exported = (await linked_scene.shop.call("export_csv", kind="members"))["csv"]
    assert exported.splitlines()[1] == f"Jars,{gid(linked_scene)},6,HONEY-6,Honey jars · 6-pack,1"

    again = await linked_scene.shop.call("import_csv", kind="members", text=exported, dry_run=False)
    assert (again["unchanged"], again["updated"]) == (1, 0)
    changed = exported.replace(",6,", ",3,")
    assert (await linked_scene.shop.call("import_csv", kind="members", text=changed, dry_run=False))["updated"] == 1

    assert await linked_scene.inventory.sql("select sku, title from variants") == [(None, None)]


async def test_the_reason_of_an_order_entry_has_names_and_its_data_has_ids(linked_scene: SyncScene) -> None:
    sold = linked_scene.platform.sell(DOMAIN, SaleLine(linked_scene.variants["6-pack"].id, 2))
    await deliver(linked_scene.shop, "orders/create", payloads.order(sold), secret=SECRET.encode())
    await handle(linked_scene.inventory)

    [entry, *_] = await linked_scene.shop.entries()
    assert entry["reason"] == f"Order {sold.name}: 2 of Honey jars · 6-pack sold."
    assert (entry["by_variant"], entry["source_ref"]) == ({gid(linked_scene): 12}, sold.gid)
    exported = (await linked_scene.shop.call("export_csv", kind="history"))["csv"]
    assert f'"{{""{gid(linked_scene)}"":12}}"' in exported
