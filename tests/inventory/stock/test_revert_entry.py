"""Undoing an entry of the history: by its opposite, once, together with what was written with it."""

from typing import Any

import pytest

from tests.helpers.inventory_service import PACKS, SIX_PACK, Inventory, Shop


async def last_entry(shop: Shop, tool: str, **arguments: Any) -> int:
    """The id of the entry that a call writes."""
    return (await shop.call(tool, **arguments))["entries"][-1]["id"]


@pytest.mark.parametrize(
    ("tool", "arguments", "delta"),
    [
        ("adjust_pool_quantity", {"delta": -6}, -6),
        ("adjust_pool_quantity", {"delta": 24, "kind": "restock"}, 24),
        ("set_pool_quantity", {"quantity": 44}, -6),
    ],
    ids=["adjust", "restock", "set"],
)
async def test_an_undone_entry_is_followed_by_its_opposite(
    shop: Shop, tool: str, arguments: dict[str, Any], delta: int
) -> None:
    pool = await shop.create_pool(50)
    id = await last_entry(shop, tool, pool_id=pool["id"], **arguments)

    change = await shop.call("revert_entry", entry_id=id, reason="It was the wrong pool.")

    (entry,) = change["entries"]
    assert (entry["kind"], entry["delta"], entry["balance_after"]) == ("revert", -delta, 50)
    assert (entry["reverts_id"], entry["source_ref"], entry["reason"]) == (id, f"entry {id}", "It was the wrong pool.")
    assert await shop.on_hand(pool["id"]) == 50


async def test_an_undone_entry_leaves_later_changes(shop: Shop) -> None:
    pool = await shop.create_pool(50)
    id = await last_entry(shop, "adjust_pool_quantity", pool_id=pool["id"], delta=-6)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-3)

    await shop.call("revert_entry", entry_id=id)

    assert await shop.on_hand(pool["id"]) == 47


async def test_an_entry_is_undone_once(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(50)
    id = await last_entry(shop, "adjust_pool_quantity", pool_id=pool["id"], delta=-6)
    undone = await last_entry(shop, "revert_entry", entry_id=id)
    before = await inventory.all_rows()

    refusal = await shop.refusal("revert_entry", entry_id=id)

    assert (refusal["code"], refusal["reverted_by"]) == ("already_reverted", undone)
    assert await inventory.all_rows() == before


async def test_entries_written_together_are_undone_together_whichever_is_named(shop: Shop) -> None:
    one, two = await shop.create_pool(10), await shop.create_pool(20)
    change = await shop.call(
        "bulk_adjust", items=[{"pool_id": one["id"], "delta": -3}, {"pool_id": two["id"], "delta": 5}]
    )
    first, second = (entry["id"] for entry in change["entries"])

    undone = await shop.call("revert_entry", entry_id=second)

    assert [(entry["pool_id"], entry["delta"], entry["reverts_id"]) for entry in undone["entries"]] == [
        (one["id"], 3, first),
        (two["id"], -5, second),
    ]
    assert (await shop.refusal("revert_entry", entry_id=first))["code"] == "already_reverted"
    assert (await shop.on_hand(one["id"]), await shop.on_hand(two["id"])) == (10, 20)


async def test_the_first_quantity_of_a_pool_can_be_undone(shop: Shop) -> None:
    pool = await shop.create_pool(50)
    (entry,) = await shop.entries(pool_id=pool["id"])

    await shop.call("revert_entry", entry_id=entry["id"])

    assert await shop.on_hand(pool["id"]) == 0


async def test_an_import_is_undone_as_a_whole(shop: Shop) -> None:
    pools = [await shop.create_pool(quantity, name=name) for quantity, name in ((10, "Jars"), (20, "Lids"))]
    text = "name,quantity\nJars,11\nLids,0\n"
    await shop.call("import_csv", kind="pools", text=text, dry_run=False)

    await shop.call("revert_entry", entry_id=(await shop.entries())[0]["id"])

    assert [await shop.on_hand(pool["id"]) for pool in pools] == [10, 20]


async def test_an_import_of_two_thousand_pools_is_undone_as_a_whole(shop: Shop, inventory: Inventory) -> None:
    text = "name,quantity\n" + "".join(f"Pool no. {number},{number}\n" for number in range(1, 2_001))
    await shop.call("import_csv", kind="pools", text=text, dry_run=False)

    change = await shop.call("revert_entry", entry_id=700)

    assert len(change["entries"]) == 2_000
    assert await inventory.sql("select count(*) from pools where on_hand <> 0") == [(0,)]


async def test_an_addition_whose_units_are_gone_cannot_be_undone(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(0)
    id = await last_entry(shop, "adjust_pool_quantity", pool_id=pool["id"], delta=24, kind="restock")
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-20)
    before = await inventory.all_rows()

    refusal = await shop.refusal("revert_entry", entry_id=id)

    assert (refusal["code"], refusal["available"], refusal["requested"]) == ("not_enough_stock", 4, 24)
    assert await inventory.all_rows() == before


async def test_a_transfer_whose_units_are_gone_at_one_end_cannot_be_undone(shop: Shop) -> None:
    giving, taking = await shop.create_pool(50), await shop.create_pool(0)
    id = await last_entry(shop, "transfer_quantity", from_pool_id=giving["id"], to_pool_id=taking["id"], quantity=20)
    await shop.call("adjust_pool_quantity", pool_id=taking["id"], delta=-1)

    assert (await shop.refusal("revert_entry", entry_id=id))["code"] == "not_enough_stock"
    assert (await shop.on_hand(giving["id"]), await shop.on_hand(taking["id"])) == (30, 19)


@pytest.mark.parametrize("kind", ["hold", "release", "revert"])
async def test_a_hold_a_release_and_an_undoing_are_not_undone_by_an_opposite(shop: Shop, kind: str) -> None:
    pool = await shop.create_pool(50)
    hold = await last_entry(shop, "hold_quantity", pool_id=pool["id"], quantity=6)
    release = await last_entry(shop, "release_hold", hold_id=hold)
    adjusted = await last_entry(shop, "adjust_pool_quantity", pool_id=pool["id"], delta=-6)
    revert = await last_entry(shop, "revert_entry", entry_id=adjusted)

    refusal = await shop.refusal("revert_entry", entry_id={"hold": hold, "release": release, "revert": revert}[kind])

    assert refusal["code"] == "not_revertible"
    assert kind in refusal["message"]


async def test_an_entry_of_an_archived_pool_cannot_be_undone(shop: Shop) -> None:
    pool = await shop.create_pool(50)
    id = await last_entry(shop, "adjust_pool_quantity", pool_id=pool["id"], delta=-6)
    await shop.call("archive_pool", pool_id=pool["id"])

    assert (await shop.refusal("revert_entry", entry_id=id))["code"] == "pool_not_active"


async def test_an_entry_of_another_shop_cannot_be_undone(shop: Shop, inventory: Inventory) -> None:
    other = await inventory.create_shop()
    pool = await other.create_pool(50)
    id = await last_entry(other, "adjust_pool_quantity", pool_id=pool["id"], delta=-6)

    assert (await shop.refusal("revert_entry", entry_id=id))["code"] == "not_found"
    assert await other.on_hand(pool["id"]) == 44


async def test_a_recorded_sale_is_undone_in_each_pool_and_no_longer_counts_as_taken(
    shop: Shop, inventory: Inventory
) -> None:
    jars = await shop.create_pool(50, name="Jars", members=PACKS)
    boxes = await shop.create_pool(9, name="Boxes")
    await shop.call("link_variants", pool_id=boxes["id"], members=[{"variant_gid": SIX_PACK, "units_per_sale": 1}])
    id = await last_entry(shop, "record_sale", variant_gid=SIX_PACK, quantity=2)

    undone = await shop.call("revert_entry", entry_id=id)

    assert sorted((entry["pool_id"], entry["delta"]) for entry in undone["entries"]) == [
        (jars["id"], 12),
        (boxes["id"], 2),
    ]
    assert (await shop.on_hand(jars["id"]), await shop.on_hand(boxes["id"])) == (50, 9)
    counted = "select pool_id, source, variant_gid, taken, returned from drawn order by pool_id"
    assert await inventory.sql(counted) == [
        (jars["id"], "record_sale", SIX_PACK, 12, 12),
        (boxes["id"], "record_sale", SIX_PACK, 2, 2),
    ]
    assert (await shop.refusal("revert_entry", entry_id=id))["code"] == "already_reverted"


async def test_an_undone_sale_of_a_hold_gives_its_units_back_without_the_hold(shop: Shop) -> None:
    pool = await shop.create_pool(50)
    hold = await shop.call("hold_quantity", pool_id=pool["id"], quantity=6)
    id = await last_entry(shop, "record_sale", pool_id=pool["id"], quantity=6, hold_id=hold["hold"]["id"])

    await shop.call("revert_entry", entry_id=id)

    [now] = (await shop.call("list_pools"))["pools"]
    assert (now["on_hand"], now["held"], now["available"]) == (50, 0, 50)
