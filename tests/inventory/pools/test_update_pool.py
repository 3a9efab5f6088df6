"""Changing a pool's name, unit, buffer, threshold, and whether it may go below zero."""

from typing import Any

import pytest

from tests.helpers.inventory_service import SINGLE, SIX_PACK, TWELVE_PACK, Inventory, Shop


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "Honey"},
        {"name": "HONEY JARS"},
        {"unit": "g"},
        {"buffer": 7},
        {"low_stock_at": 5},
        {"low_stock_at": None},
        {"allow_negative": True},
        {"name": "Honey", "unit": "g", "buffer": 0, "low_stock_at": 0, "allow_negative": False},
    ],
    ids=str,
)
async def test_an_update_of_a_pool_changes_the_given_fields_only(shop: Shop, fields: dict[str, Any]) -> None:
    pool = await shop.create_pool(50, name="Honey jars", buffer=3, low_stock_at=12)

    change = await shop.call("update_pool", pool_id=pool["id"], **fields)

    settled = {"name", "unit", "buffer", "low_stock_at", "allow_negative", "on_hand", "status"}
    expected = {**pool, **fields}
    assert {name: change["pool"][name] for name in settled} == {name: expected[name] for name in settled}
    assert change["pool"] == await shop.call("get_pool", pool_id=pool["id"])
    assert change["version"] == change["pool"]["version"] > pool["version"]


async def test_a_buffer_is_kept_back_from_what_is_offered(shop: Shop) -> None:
    pool = await shop.create_golden_pool()

    change = await shop.call("update_pool", pool_id=pool["id"], buffer=6)

    assert change["affected"] == [
        {"variant_gid": SINGLE, "before": 50, "after": 44},
        {"variant_gid": SIX_PACK, "before": 8, "after": 7},
        {"variant_gid": TWELVE_PACK, "before": 4, "after": 3},
    ]
    assert (await shop.read_storefront()).json()["variants"] == {SINGLE: 44, SIX_PACK: 7, TWELVE_PACK: 3}


async def test_a_buffer_above_what_is_there_offers_nothing(shop: Shop) -> None:
    pool = await shop.create_golden_pool()

    change = await shop.call("update_pool", pool_id=pool["id"], buffer=51)

    assert change["pool"]["available"] == 0
    assert [member["effective"] for member in change["pool"]["members"]] == [0, 0, 0]


async def test_an_update_without_changes_is_refused(shop: Shop) -> None:
    pool = await shop.create_pool(50)

    assert (await shop.refusal("update_pool", pool_id=pool["id"]))["code"] == "validation_failed"


@pytest.mark.parametrize(
    "fields",
    [{"name": None}, {"name": " "}, {"unit": None}, {"unit": ""}, {"buffer": None}, {"buffer": -1}, {"quantity": 5}],
    ids=str,
)
async def test_an_invalid_field_of_an_update_is_named(shop: Shop, fields: dict[str, Any]) -> None:
    pool = await shop.create_pool(50)

    refusal = await shop.refusal("update_pool", pool_id=pool["id"], **fields)

    assert (refusal["code"], list(refusal["errors"])) == ("validation_failed", list(fields))


async def test_a_name_of_another_pool_is_refused_as_taken(shop: Shop) -> None:
    pool = await shop.create_pool(50)
    await shop.create_pool(9, name="Honey")

    assert (await shop.refusal("update_pool", pool_id=pool["id"], name="honey"))["code"] == "name_taken"


async def test_an_archived_pool_cannot_be_updated(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(50)
    await shop.call("archive_pool", pool_id=pool["id"])
    before = await inventory.all_rows()

    assert (await shop.refusal("update_pool", pool_id=pool["id"], buffer=1))["code"] == "pool_not_active"
    assert await inventory.all_rows() == before


async def test_a_pool_of_another_shop_cannot_be_updated(shop: Shop, inventory: Inventory) -> None:
    other = await inventory.create_shop()
    theirs = await other.create_pool(50, name="Theirs")

    assert (await shop.refusal("update_pool", pool_id=theirs["id"], name="Mine"))["code"] == "not_found"
    assert (await other.call("get_pool", pool_id=theirs["id"]))["name"] == "Theirs"
