"""The history: every change there ever was, the newest first, a page at a time."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.helpers.cases import in_turn
from tests.helpers.inventory_service import SINGLE, SIX_PACK, Inventory, Shop

pytestmark = pytest.mark.usefixtures("inventory")  # Its pools have the ids 1, 2 and so on.


@pytest.fixture
async def busy(shop: Shop) -> Shop:
    """Pools 1 (singles and 6-packs) and 2 (6-packs), and entries 1 to 7."""
    await shop.create_pool(50, members=[{"variant_gid": gid, "units_per_sale": 1} for gid in (SINGLE, SIX_PACK)])
    await shop.create_pool(20, members=[{"variant_gid": SIX_PACK, "units_per_sale": 1}])
    await shop.call("adjust_pool_quantity", pool_id=1, delta=-6)
    await shop.call("transfer_quantity", from_pool_id=1, to_pool_id=2, quantity=4)
    await shop.call("hold_quantity", pool_id=2, quantity=3, reference="cart 7")
    await shop.call("adjust_pool_quantity", pool_id=2, delta=12, kind="restock")
    return shop


async def ids(shop: Shop, **filters: Any) -> list[int]:
    return [entry["id"] for entry in await shop.entries(**filters)]


async def test_the_newest_entries_come_first(busy: Shop) -> None:
    assert await ids(busy) == [7, 6, 5, 4, 3, 2, 1]


async def test_every_entry_tells_what_the_pool_had_after_it(busy: Shop) -> None:
    balances = [
        (entry["kind"], entry["delta"], entry["held_delta"], entry["balance_after"], entry["held_after"])
        for entry in await busy.entries(pool_id=2)
    ]

    assert balances == [
        ("restock", 12, 0, 36, 3),
        ("hold", 0, 3, 24, 3),
        ("transfer", 4, 0, 24, 0),
        ("set", 20, 0, 20, 0),
    ]


@in_turn(
    ("filters", "expected"),
    [
        ({"pool_id": 1}, [4, 3, 1]),
        ({"variant_gid": SINGLE}, [4, 3, 1]),
        ({"variant_gid": SIX_PACK}, [7, 6, 5, 4, 3, 2, 1]),
        ({"variant_gid": "gid://shopify/ProductVariant/7"}, []),
        ({"kinds": ["adjust", "restock"]}, [7, 3]),
        ({"kinds": ["sale"]}, []),
        ({"kinds": ["transfer"], "pool_id": 2}, [5]),
        ({"actor": "agent"}, [7, 6, 5, 4, 3, 2, 1]),
        ({"actor": "system"}, []),
        ({"source_ref": "cart 7"}, [6]),
        ({"source_ref": "cart"}, []),
        ({"pool_id": 99}, []),
        ({"limit": 2}, [7, 6]),
    ],
)
async def test_filters_limit_the_history(busy: Shop, filters: dict[str, Any], expected: list[int]) -> None:
    assert await ids(busy, **filters) == expected


async def test_a_time_range_includes_its_first_moment_and_excludes_its_last(busy: Shop) -> None:
    at = {entry["id"]: entry["created_at"] for entry in await busy.entries()}

    assert await ids(busy, since=at[4]) == [7, 6, 5, 4]  # 4 and 5 are one change, and have one time
    assert await ids(busy, until=at[4]) == [3, 2, 1]
    assert await ids(busy, since=at[3], until=at[6]) == [5, 4, 3]
    assert await ids(busy, since=at[7], until=at[7]) == []


async def test_a_moment_of_a_filter_may_have_any_offset(busy: Shop) -> None:
    at = {entry["id"]: datetime.fromisoformat(entry["created_at"]) for entry in await busy.entries()}
    local_time = (at[6] + timedelta(hours=5, minutes=30)).replace(tzinfo=None).isoformat() + "+05:30"

    assert await ids(busy, since=local_time) == [7, 6]


async def test_pages_of_the_history_follow_each_other_without_gap_or_repetition(busy: Shop) -> None:
    seen: list[int] = []
    page: dict[str, Any] = {"next_cursor": ""}
    while page["next_cursor"] is not None:
        page = await busy.call("get_stock_history", limit=3, cursor=page["next_cursor"])
        seen += [entry["id"] for entry in page["entries"]]

    assert seen == [7, 6, 5, 4, 3, 2, 1]


async def test_a_full_last_page_has_no_next(busy: Shop) -> None:
    assert (await busy.call("get_stock_history", limit=7))["next_cursor"] is None
    assert (await busy.call("get_stock_history", limit=6))["next_cursor"] is not None


async def test_changes_made_while_pages_are_read_do_not_shift_them(busy: Shop) -> None:
    first = await busy.call("get_stock_history", limit=3)
    await busy.call("adjust_pool_quantity", pool_id=1, delta=1)

    second = await busy.call("get_stock_history", limit=3, cursor=first["next_cursor"])

    assert [entry["id"] for entry in second["entries"]] == [4, 3, 2]


async def test_a_cursor_keeps_the_filters_of_its_list(busy: Shop) -> None:
    first = await busy.call("get_stock_history", limit=2, pool_id=1)
    second = await busy.call("get_stock_history", limit=2, pool_id=1, cursor=first["next_cursor"])

    assert [entry["id"] for page in (first, second) for entry in page["entries"]] == [4, 3, 1]
    assert second["next_cursor"] is None


@pytest.mark.parametrize("cursor", ["7", "MS41", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5", "é", "====", "NQ"])
async def test_an_invalid_cursor_of_the_history_is_refused(busy: Shop, cursor: str) -> None:
    refusal = await busy.refusal("get_stock_history", cursor=cursor)

    assert (refusal["code"], list(refusal["errors"])) == ("validation_failed", ["cursor"])


async def test_entries_of_another_shop_are_not_listed(busy: Shop, inventory: Inventory) -> None:
    other = await inventory.create_shop()

    assert await other.entries() == []
    assert await other.entries(pool_id=1) == []
    assert await other.entries(variant_gid=SINGLE) == []
