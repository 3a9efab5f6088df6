"""Listing the holds that have not ended, the newest first."""

from typing import Any

import pytest

from tests.helpers.inventory_service import SIX_PACK, Inventory, Shop

pytestmark = pytest.mark.usefixtures("inventory")  # Its pools have the ids 1, 2 and so on.


@pytest.fixture
async def shop_with_holds(shop: Shop) -> Shop:
    """Pools 1 and 2, and the holds 3 (pool 1), 4 (pool 2), 5 (a kit of both) and 7 (pool 1)."""
    await shop.create_pool(50, members=[{"variant_gid": SIX_PACK, "units_per_sale": 6}])
    await shop.create_pool(20, members=[{"variant_gid": SIX_PACK, "units_per_sale": 1}])
    await shop.call("hold_quantity", pool_id=1, quantity=1, reference="cart 7")
    await shop.call("hold_quantity", pool_id=2, quantity=2, reference="cart 8")
    await shop.call("hold_quantity", variant_gid=SIX_PACK, quantity=3, reference="cart 7")
    await shop.call("hold_quantity", pool_id=1, quantity=4)
    return shop


async def ids(shop: Shop, **filters: Any) -> list[int]:
    return [hold["id"] for hold in (await shop.call("list_holds", **filters))["holds"]]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, [7, 5, 4, 3]),
        ({"pool_id": 1}, [7, 5, 3]),
        ({"pool_id": 2}, [5, 4]),
        ({"reference": "cart 7"}, [5, 3]),
        ({"reference": "cart"}, []),
        ({"reference": "cart 7", "pool_id": 2}, [5]),
        ({"pool_id": 99}, []),
        ({"limit": 2}, [7, 5]),
    ],
    ids=str,
)
async def test_filters_limit_the_list_of_holds(
    shop_with_holds: Shop, filters: dict[str, Any], expected: list[int]
) -> None:
    assert await ids(shop_with_holds, **filters) == expected


async def test_a_hold_is_shown_with_what_it_keeps_of_every_pool(shop_with_holds: Shop) -> None:
    (kit,) = (await shop_with_holds.call("list_holds", pool_id=2, reference="cart 7"))["holds"]

    assert kit["pools"] == [{"pool_id": 1, "quantity": 18}, {"pool_id": 2, "quantity": 3}]
    assert kit["inserted_at"] < kit["expires_at"]


async def test_a_released_hold_is_not_listed(shop_with_holds: Shop) -> None:
    await shop_with_holds.call("release_hold", hold_id=5)

    assert await ids(shop_with_holds) == [7, 4, 3]


async def test_pages_of_holds_follow_each_other(shop_with_holds: Shop) -> None:
    first = await shop_with_holds.call("list_holds", limit=3)
    second = await shop_with_holds.call("list_holds", limit=3, cursor=first["next_cursor"])

    assert [hold["id"] for page in (first, second) for hold in page["holds"]] == [7, 5, 4, 3]
    assert second["next_cursor"] is None


async def test_holds_of_another_shop_are_not_listed(shop_with_holds: Shop, inventory: Inventory) -> None:
    assert await ids(await inventory.create_shop()) == []
