"""The stock of a pool at a past moment."""

from datetime import datetime, timedelta
from typing import Any

from tests.helpers.inventory_service import Inventory, Shop


def before(entry: dict[str, Any]) -> str:
    """A moment just before an entry."""
    return (datetime.fromisoformat(entry["created_at"]) - timedelta(microseconds=1)).isoformat()


async def test_the_stock_at_a_moment_is_that_of_the_last_entry_before_it(shop: Shop) -> None:
    pool = await shop.create_pool(50)
    sold = (await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-6))["entries"][0]
    held = (await shop.call("hold_quantity", pool_id=pool["id"], quantity=4))["entries"][0]
    moments = [before(sold), sold["created_at"], before(held), held["created_at"]]

    answers = [await shop.call("get_stock_at", pool_id=pool["id"], at=at) for at in moments]

    assert [(answer["on_hand"], answer["held"], answer["last_entry_id"]) for answer in answers] == [
        (50, 0, sold["id"] - 1),
        (44, 0, sold["id"]),
        (44, 0, sold["id"]),
        (44, 4, held["id"]),
    ]


async def test_the_stock_before_the_first_entry_is_zero(shop: Shop) -> None:
    pool = await shop.create_pool(50)

    answer = await shop.call("get_stock_at", pool_id=pool["id"], at="2001-01-01T00:00:00Z")

    assert answer == {
        "pool_id": pool["id"],
        "at": "2001-01-01T00:00:00Z",
        "on_hand": 0,
        "held": 0,
        "last_entry_id": None,
    }


async def test_the_stock_at_a_future_moment_is_the_present_one(shop: Shop) -> None:
    pool = await shop.create_pool(50)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-6)

    answer = await shop.call("get_stock_at", pool_id=pool["id"], at="2999-01-01T00:00:00Z")

    assert answer["on_hand"] == 44


async def test_a_moment_with_any_offset_is_answered_in_utc(shop: Shop) -> None:
    pool = await shop.create_pool(50)

    answer = await shop.call("get_stock_at", pool_id=pool["id"], at="2999-01-01T01:00:00+02:00")

    assert answer["at"] == "2998-12-31T23:00:00Z"


async def test_an_entry_of_another_pool_is_not_counted(shop: Shop) -> None:
    one, two = await shop.create_pool(50), await shop.create_pool(20)
    change = await shop.call("transfer_quantity", from_pool_id=one["id"], to_pool_id=two["id"], quantity=5)

    answer = await shop.call("get_stock_at", pool_id=one["id"], at=change["entries"][0]["created_at"])

    assert (answer["on_hand"], answer["last_entry_id"]) == (45, change["entries"][0]["id"])


async def test_an_archived_pool_still_has_its_stock_at_past_moments(shop: Shop) -> None:
    pool = await shop.create_pool(50)
    await shop.call("archive_pool", pool_id=pool["id"])

    assert (await shop.call("get_stock_at", pool_id=pool["id"], at="2999-01-01T00:00:00Z"))["on_hand"] == 50


async def test_a_pool_of_another_shop_has_no_stock_at_a_past_moment(shop: Shop, inventory: Inventory) -> None:
    theirs = await (await inventory.create_shop()).create_pool(50)

    refusal = await shop.refusal("get_stock_at", pool_id=theirs["id"], at="2999-01-01T00:00:00Z")

    assert refusal["code"] == "not_found"


async def test_an_invalid_moment_is_refused(shop: Shop) -> None:
    pool = await shop.create_pool(50)

    for at in ("yesterday", "2026-13-01T00:00:00Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z", 1763640000, None):
        refusal = await shop.refusal("get_stock_at", pool_id=pool["id"], at=at)
        assert (refusal["code"], list(refusal["errors"])) == ("validation_failed", ["at"])
