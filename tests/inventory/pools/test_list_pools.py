"""Listing pools: all of them or filtered, a page at a time."""

from typing import Any

import pytest

from tests.helpers.cases import in_turn
from tests.helpers.inventory_service import PACKS, Inventory, Shop

pytestmark = pytest.mark.usefixtures("inventory")  # Its pools have the ids 1, 2 and so on.


@pytest.fixture
async def shop_with_pools(shop: Shop) -> Shop:
    """Pools 1 to 5: plenty, low, paused, archived, and one without a threshold."""
    await shop.create_pool(50, name="Honey jars", members=PACKS, low_stock_at=12)
    await shop.create_pool(10, name="Honey sticks", low_stock_at=10, unit="sticks", buffer=3)
    await shop.create_pool(0, name="Ävocados")
    await shop.create_pool(0, name="Old honey", low_stock_at=1)
    await shop.create_pool(0, name="Lids")
    await shop.call("pause_pool", pool_id=3)
    await shop.call("archive_pool", pool_id=4)
    return shop


async def names(shop: Shop, **filters: Any) -> list[str]:
    return [pool["name"] for pool in (await shop.call("list_pools", **filters))["pools"]]


async def test_every_pool_that_is_not_archived_is_listed_by_default(shop_with_pools: Shop) -> None:
    assert await names(shop_with_pools) == ["Honey jars", "Honey sticks", "Ävocados", "Lids"]


async def test_a_pool_is_shown_with_what_it_holds(shop_with_pools: Shop) -> None:
    await shop_with_pools.call("hold_quantity", pool_id=1, quantity=6)

    pool = (await shop_with_pools.call("list_pools"))["pools"][0]

    assert pool.pop("inserted_at").endswith("Z")
    assert pool == {
        "id": 1,
        "name": "Honey jars",
        "unit": "units",
        "on_hand": 50,
        "held": 6,
        "buffer": 0,
        "available": 44,
        "low_stock_at": 12,
        "low_stock": False,
        "allow_negative": False,
        "policy": "adopt",
        "status": "active",
        "member_count": 3,
        "version": (await shop_with_pools.call("get_pool", pool_id=1))["version"],
    }


@in_turn(
    ("filters", "expected"),
    [
        ({"status": "active"}, ["Honey jars", "Honey sticks", "Lids"]),
        ({"status": "paused"}, ["Ävocados"]),
        ({"status": "archived"}, ["Old honey"]),
        ({"query": "honey"}, ["Honey jars", "Honey sticks"]),
        ({"query": "HONEY S"}, ["Honey sticks"]),
        ({"query": "honey", "status": "archived"}, ["Old honey"]),
        ({"query": "%"}, []),
        ({"query": "_"}, []),
        ({"query": "'; drop table pools; --"}, []),
        ({"low_stock_only": True}, ["Honey sticks"]),
        ({"low_stock_only": True, "status": "archived"}, ["Old honey"]),
        ({"limit": 1}, ["Honey jars"]),
    ],
)
async def test_filters_limit_the_list_of_pools(
    shop_with_pools: Shop, filters: dict[str, Any], expected: list[str]
) -> None:
    assert await names(shop_with_pools, **filters) == expected


@pytest.mark.parametrize("query", ["ÄVOCADOS", "ävocados", "Ävo"])
async def test_a_name_is_found_in_either_case_of_any_letter(shop_with_pools: Shop, query: str) -> None:
    assert await names(shop_with_pools, query=query) == ["Ävocados"]


async def test_a_page_has_20_pools_unless_an_agent_asks_for_more(shop: Shop) -> None:
    await shop.call(
        "import_csv", kind="pools", dry_run=False, text="\n".join(["name", *(f"Pool {n}" for n in range(30))])
    )

    assert len(await names(shop)) == 20
    assert len(await names(shop, limit=30)) == 30


async def test_pages_of_pools_follow_each_other_without_gap_or_repetition(shop_with_pools: Shop) -> None:
    seen: list[int] = []
    page: dict[str, Any] = {"next_cursor": ""}
    while page["next_cursor"] is not None:
        page = await shop_with_pools.call("list_pools", limit=2, cursor=page["next_cursor"])
        seen += [pool["id"] for pool in page["pools"]]

    assert seen == [1, 2, 3, 5]


async def test_a_pool_that_goes_away_between_pages_shifts_none(shop_with_pools: Shop) -> None:
    first = await shop_with_pools.call("list_pools", limit=2)
    await shop_with_pools.call("archive_pool", pool_id=1)

    second = await shop_with_pools.call("list_pools", limit=2, cursor=first["next_cursor"])

    assert [pool["id"] for pool in second["pools"]] == [3, 5]


@pytest.mark.parametrize("limit", [0, 201, -1, "5", 1.5, True])
async def test_a_limit_of_pools_below_1_or_above_200_is_refused(shop_with_pools: Shop, limit: Any) -> None:
    refusal = await shop_with_pools.refusal("list_pools", limit=limit)

    assert (refusal["code"], list(refusal["errors"])) == ("validation_failed", ["limit"])


async def test_a_new_shop_has_no_pools(shop: Shop) -> None:
    assert await shop.call("list_pools") == {"pools": [], "next_cursor": None}


async def test_pools_of_another_shop_are_not_listed(shop_with_pools: Shop, inventory: Inventory) -> None:
    other = await inventory.create_shop()
    page = await shop_with_pools.call("list_pools", limit=1)

    assert await names(other) == []
    assert await names(other, cursor=page["next_cursor"]) == []
