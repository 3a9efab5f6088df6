"""Moving a quantity from one pool to another."""

from typing import Any

import pytest

from tests.helpers.inventory_service import SINGLE, SIX_PACK, Inventory, Shop


async def test_a_transfer_takes_from_one_pool_what_it_adds_to_the_other(shop: Shop) -> None:
    giving, taking = await shop.create_pool(50), await shop.create_pool(10)

    change = await shop.call(
        "transfer_quantity", from_pool_id=giving["id"], to_pool_id=taking["id"], quantity=20, reason="Second shelf."
    )

    assert [(entry["pool_id"], entry["kind"], entry["delta"], entry["reason"]) for entry in change["entries"]] == [
        (giving["id"], "transfer", -20, "Second shelf."),
        (taking["id"], "transfer", 20, "Second shelf."),
    ]
    assert await shop.on_hand(giving["id"]) == await shop.on_hand(taking["id"]) == 30


async def test_a_transfer_can_go_to_the_older_pool(shop: Shop) -> None:
    taking, giving = await shop.create_pool(10), await shop.create_pool(50)

    await shop.call("transfer_quantity", from_pool_id=giving["id"], to_pool_id=taking["id"], quantity=50)

    assert (await shop.on_hand(giving["id"]), await shop.on_hand(taking["id"])) == (0, 60)


async def test_a_transfer_lists_the_variants_of_both_pools(shop: Shop) -> None:
    giving = await shop.create_pool(50, members=[{"variant_gid": SINGLE, "units_per_sale": 1}])
    taking = await shop.create_pool(0, members=[{"variant_gid": SIX_PACK, "units_per_sale": 6}])

    change = await shop.call("transfer_quantity", from_pool_id=giving["id"], to_pool_id=taking["id"], quantity=20)

    assert change["affected"] == [
        {"variant_gid": SINGLE, "before": 50, "after": 30},
        {"variant_gid": SIX_PACK, "before": 0, "after": 3},
    ]


async def test_a_transfer_of_more_than_is_available_moves_nothing(shop: Shop, inventory: Inventory) -> None:
    giving, taking = await shop.create_pool(50), await shop.create_pool(10)
    await shop.call("hold_quantity", pool_id=giving["id"], quantity=45)
    before = await inventory.all_rows()

    refusal = await shop.refusal("transfer_quantity", from_pool_id=giving["id"], to_pool_id=taking["id"], quantity=6)

    assert (refusal["code"], refusal["pool_id"], refusal["available"]) == ("not_enough_stock", giving["id"], 5)
    assert await inventory.all_rows() == before


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"to_pool_id": 1}, "validation_failed"),
        ({"to_pool_id": 3}, "validation_failed"),
        ({"to_pool_id": 4}, "pool_not_active"),
        ({"to_pool_id": 5}, "not_found"),
        ({"to_pool_id": 99}, "not_found"),
        ({"quantity": 0}, "validation_failed"),
        ({"quantity": -5}, "validation_failed"),
        ({"expected_quantity": 49}, "stale"),
    ],
    ids=["to itself", "of another unit", "archived", "another shop's", "unknown", "nothing", "backwards", "stale"],
)
async def test_an_invalid_transfer_moves_nothing(
    shop: Shop, inventory: Inventory, arguments: dict[str, Any], code: str
) -> None:
    ids = [
        (await shop.create_pool(quantity, unit=unit))["id"]
        for quantity, unit in ((50, "g"), (9, "g"), (9, "ml"), (9, "g"))
    ]
    ids.append((await (await inventory.create_shop()).create_pool(9, unit="g"))["id"])
    assert ids == [1, 2, 3, 4, 5]
    await shop.call("archive_pool", pool_id=4)
    before = await inventory.all_rows()

    refusal = await shop.refusal(
        "transfer_quantity", **{"from_pool_id": 1, "to_pool_id": 2, "quantity": 5, **arguments}
    )

    assert refusal["code"] == code
    assert await inventory.all_rows() == before


async def test_a_transfer_is_undone_as_a_whole(shop: Shop) -> None:
    giving, taking = await shop.create_pool(50), await shop.create_pool(10)
    change = await shop.call("transfer_quantity", from_pool_id=giving["id"], to_pool_id=taking["id"], quantity=20)

    await shop.call("revert_entry", entry_id=change["entries"][1]["id"])

    assert (await shop.on_hand(giving["id"]), await shop.on_hand(taking["id"])) == (50, 10)
