"""Putting a pool away, with everything it has, and bringing it back."""

from typing import Any

import pytest

from tests.helpers.inventory_service import SINGLE, SIX_PACK, TWELVE_PACK, Inventory, Shop


async def test_a_restored_pool_is_as_it_was_before_it_was_archived(shop: Shop) -> None:
    pool = await shop.create_golden_pool()

    archived = await shop.call("archive_pool", pool_id=pool["id"])
    gone = (await shop.read_storefront()).json()["variants"]
    restored = await shop.call("restore_pool", pool_id=pool["id"])

    assert archived["pool"]["status"] == "archived"
    assert gone == {}
    assert restored["pool"]["status"] == "active"
    assert (await shop.read_storefront()).json()["variants"] == {SINGLE: 50, SIX_PACK: 8, TWELVE_PACK: 4}
    assert [entry["delta"] for entry in await shop.entries(pool_id=pool["id"])] == [50]


async def test_a_paused_pool_comes_back_active(shop: Shop) -> None:
    pool = await shop.create_golden_pool()
    await shop.call("pause_pool", pool_id=pool["id"])
    await shop.call("archive_pool", pool_id=pool["id"])

    assert (await shop.call("restore_pool", pool_id=pool["id"]))["pool"]["status"] == "active"


async def test_an_archived_pool_can_release_its_variants(shop: Shop) -> None:
    """They go on being sold from the other pools they draw on."""
    jars = await shop.create_golden_pool()
    await shop.create_pool(5, members=[{"variant_gid": SIX_PACK, "units_per_sale": 1}])

    change = await shop.call("archive_pool", pool_id=jars["id"], release_variants=True)

    assert change["pool"]["members"] == []
    assert change["affected"] == [
        {"variant_gid": SINGLE, "before": 50, "after": None},
        {"variant_gid": TWELVE_PACK, "before": 4, "after": None},
    ]
    assert (await shop.read_storefront()).json()["variants"] == {SIX_PACK: 5}
    assert (await shop.call("restore_pool", pool_id=jars["id"]))["pool"]["members"] == []


async def test_a_pool_with_a_hold_cannot_be_archived(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_golden_pool()
    hold = (await shop.call("hold_quantity", pool_id=pool["id"], quantity=6))["hold"]
    before = await inventory.all_rows()

    refusal = await shop.refusal("archive_pool", pool_id=pool["id"])
    assert refusal["code"] == "pool_has_holds"
    assert await inventory.all_rows() == before
    await shop.call("release_hold", hold_id=hold["id"])

    assert (await shop.call("archive_pool", pool_id=pool["id"]))["pool"]["status"] == "archived"


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("archive_pool", {"pool_id": 1}),
    ("link_variants", {"pool_id": 1, "members": [{"variant_gid": SINGLE, "units_per_sale": 2}]}),
    ("update_member", {"pool_id": 1, "variant_gid": SINGLE, "units_per_sale": 2}),
    ("unlink_variants", {"pool_id": 1, "variant_gids": [SINGLE]}),
    ("adjust_pool_quantity", {"pool_id": 1, "delta": 1}),
    ("bulk_adjust", {"items": [{"pool_id": 2, "delta": 1}, {"pool_id": 1, "delta": 1}]}),
    ("hold_quantity", {"pool_id": 1, "quantity": 1}),
    ("hold_quantity", {"variant_gid": SINGLE, "quantity": 1}),
]


@pytest.mark.parametrize(("tool", "arguments"), CHANGES, ids=[f"{n}-{tool}" for n, (tool, _) in enumerate(CHANGES)])
async def test_an_archived_pool_cannot_be_changed_until_it_is_restored(
    shop: Shop, inventory: Inventory, tool: str, arguments: dict[str, Any]
) -> None:
    await shop.create_golden_pool()
    await shop.create_pool(9)
    await shop.call("archive_pool", pool_id=1)
    before = await inventory.all_rows()

    refusal = await shop.refusal(tool, **arguments)

    assert (refusal["code"], "restore_pool" in refusal["hint"]) == ("pool_not_active", True)
    assert await inventory.all_rows() == before


@pytest.mark.parametrize("paused", [False, True])
async def test_a_pool_that_is_not_archived_cannot_be_restored(shop: Shop, paused: bool) -> None:
    pool = await shop.create_golden_pool()
    if paused:
        await shop.call("pause_pool", pool_id=pool["id"])

    assert (await shop.refusal("restore_pool", pool_id=pool["id"]))["code"] == "pool_not_active"


async def test_a_pool_whose_name_was_taken_meanwhile_cannot_be_restored(shop: Shop) -> None:
    pool = await shop.create_golden_pool()
    await shop.call("archive_pool", pool_id=pool["id"])
    successor = await shop.create_pool(5, name="HONEY jars")

    refusal = await shop.refusal("restore_pool", pool_id=pool["id"])
    assert (refusal["code"], "update_pool" in refusal["hint"]) == ("name_taken", True)
    await shop.call("update_pool", pool_id=successor["id"], name="Honey jars, new")

    assert (await shop.call("restore_pool", pool_id=pool["id"]))["pool"]["name"] == "Honey jars"
