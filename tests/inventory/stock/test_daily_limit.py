"""The daily limit that a merchant sets for the key of the shop: the key never moves more units in a day."""

import asyncio
from typing import Any

from holdfast.inventory.shops.operations import end_key, regenerate_key
from tests.helpers.inventory_service import PACKS, SIX_PACK, Inventory, Shop, ToolRefusal, run_sql, set_daily_limit


async def used_calls(inventory: Inventory, shop: Shop) -> int:
    [(count,)] = await run_sql(inventory.database, "select used from agent_limits where tenant_id = %(id)s", id=shop.id)
    return count


async def attempt(shop: Shop, tool: str, **arguments: Any) -> str:
    """Call a tool; the code of the refusal, or `done`."""
    try:
        await shop.call(tool, **arguments)
    except ToolRefusal as refusal:
        return refusal.code
    return "done"


async def test_units_are_moved_up_to_the_limit_and_the_refusal_says_when_more_can_be(inventory: Inventory) -> None:
    shop = await inventory.create_shop()
    pool = await shop.create_pool(50)
    await set_daily_limit(inventory, shop)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-8)

    refusal = await shop.refusal("adjust_pool_quantity", pool_id=pool["id"], delta=-3)

    assert (refusal["code"], refusal["daily_limit"], refusal["used"], refusal["requested"]) == (
        "daily_limit_reached",
        10,
        8,
        3,
    )
    assert "may move 10 units a day. 8 are moved today, and this would move 3 more" in refusal["message"]
    assert 0 < refusal["retry_after"] <= 86_400
    assert await shop.on_hand(pool["id"]) == 42
    assert await attempt(shop, "adjust_pool_quantity", pool_id=pool["id"], delta=2) == "done"
    assert await used_calls(inventory, shop) == 10


async def test_every_tool_that_moves_stock_counts_the_units_that_it_moves(inventory: Inventory) -> None:
    shop = await inventory.create_shop()
    pool = await shop.create_pool(500, members=PACKS)
    other = await shop.create_pool(500)
    await set_daily_limit(inventory, shop, 1_000_000)
    ids = {"pool_id": pool["id"]}

    async def moved(tool: str, **arguments: Any) -> int:
        before = await used_calls(inventory, shop)
        change = await shop.call(tool, **arguments)
        holds.extend([change["hold"]["id"]] if change.get("hold") else [])
        entries.extend(entry["id"] for entry in change.get("entries", ()))
        return await used_calls(inventory, shop) - before

    holds: list[int] = []
    entries: list[int] = []
    assert await moved("set_pool_quantity", **ids, quantity=493) == 7
    assert await moved("set_pool_quantity", **ids, quantity=493) == 0
    assert await moved("adjust_pool_quantity", **ids, delta=-2) == 2
    assert await moved("revert_entry", entry_id=entries[-1]) == 2
    items = [{"pool_id": pool["id"], "delta": 3}, {"pool_id": other["id"], "delta": -5}]
    assert await moved("bulk_adjust", items=items) == 5
    assert await moved("transfer_quantity", from_pool_id=pool["id"], to_pool_id=other["id"], quantity=4) == 4
    assert await moved("hold_quantity", variant_gid=SIX_PACK, quantity=2, ttl_s=600) == 12
    assert await moved("record_sale", variant_gid=SIX_PACK, quantity=1, hold_id=holds[-1]) == 6
    assert await moved("hold_quantity", **ids, quantity=5, ttl_s=600) == 5
    assert await moved("release_hold", hold_id=holds[-1]) == 0
    assert await moved("record_sale", **ids, quantity=3) == 3
    assert await moved("create_pool", name="New", quantity=9, members=[]) == 9
    text = f"pool_id,name,unit,quantity\n{other['id']},{other['name']},units,510\n"
    expected = abs(510 - await shop.on_hand(other["id"]))
    assert await moved("import_csv", kind="pools", text=text, mode="set", dry_run=False) == expected


async def test_every_tool_that_moves_stock_is_refused_beyond_the_limit(inventory: Inventory) -> None:
    shop = await inventory.create_shop()
    pool, other = await shop.create_pool(50), await shop.create_pool(50)
    [entry, *_] = await shop.entries()
    await set_daily_limit(inventory, shop)
    ids = {"pool_id": pool["id"]}
    text = f"pool_id,name,unit,quantity\n{other['id']},{other['name']},units,90\n"

    calls: dict[str, dict[str, Any]] = {
        "set_pool_quantity": {**ids, "quantity": 80},
        "bulk_adjust": {"items": [{**ids, "delta": 6}, {"pool_id": other["id"], "delta": 5}]},
        "transfer_quantity": {"from_pool_id": pool["id"], "to_pool_id": other["id"], "quantity": 11},
        "hold_quantity": {**ids, "quantity": 11, "ttl_s": 600},
        "record_sale": {**ids, "quantity": 11},
        "revert_entry": {"entry_id": entry["id"]},
        "create_pool": {"name": "New", "quantity": 11, "members": []},
        "import_csv": {"kind": "pools", "text": text, "mode": "set", "dry_run": False},
    }

    codes = {tool: await attempt(shop, tool, **arguments) for tool, arguments in calls.items()}

    assert codes == dict.fromkeys(codes, "daily_limit_reached")
    assert await used_calls(inventory, shop) == 0


async def test_a_daily_limit_is_never_exceeded_by_concurrent_calls(inventory: Inventory) -> None:
    shop = await inventory.create_shop()
    pool = await shop.create_pool(500)
    await set_daily_limit(inventory, shop)

    calls = (attempt(shop, "adjust_pool_quantity", pool_id=pool["id"], delta=-1) for _ in range(64))
    codes = await asyncio.gather(*calls)

    assert codes.count("done") == 10
    assert codes.count("daily_limit_reached") == 54
    assert await shop.on_hand(pool["id"]) == 490


async def test_a_refused_or_dry_run_call_does_not_count_towards_the_daily_limit(inventory: Inventory) -> None:
    shop = await inventory.create_shop()
    pool = await shop.create_pool(5)
    await set_daily_limit(inventory, shop)

    assert await attempt(shop, "adjust_pool_quantity", pool_id=pool["id"], delta=-6) == "not_enough_stock"
    assert await attempt(shop, "adjust_pool_quantity", pool_id=pool["id"], delta=-3, dry_run=True) == "done"
    assert await used_calls(inventory, shop) == 0
    refusal = await shop.refusal("adjust_pool_quantity", pool_id=pool["id"], delta=11, dry_run=True)
    assert refusal["code"] == "daily_limit_reached"


async def test_a_repeated_call_is_counted_once(inventory: Inventory) -> None:
    shop = await inventory.create_shop()
    pool = await shop.create_pool(50)
    await set_daily_limit(inventory, shop)

    for _ in range(3):
        await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-6, idempotency_key="once")

    assert await used_calls(inventory, shop) == 6


async def test_a_new_key_has_the_limit_of_the_old_one_and_its_count(inventory: Inventory) -> None:
    shop = await inventory.create_shop()
    pool = await shop.create_pool(50)
    await set_daily_limit(inventory, shop)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-8)

    key = await inventory.database.transact(lambda tx: regenerate_key(tx, shop.id))
    shop.key = key

    assert await attempt(shop, "adjust_pool_quantity", pool_id=pool["id"], delta=-3) == "daily_limit_reached"
    assert await attempt(shop, "adjust_pool_quantity", pool_id=pool["id"], delta=-2) == "done"


async def test_a_key_made_after_the_old_one_ended_has_its_limit(inventory: Inventory) -> None:
    shop = await inventory.create_shop()
    pool = await shop.create_pool(50)
    await set_daily_limit(inventory, shop, 0)

    await inventory.database.transact(lambda tx: end_key(tx, shop.id))
    shop.key = await inventory.database.transact(lambda tx: regenerate_key(tx, shop.id))

    assert await attempt(shop, "adjust_pool_quantity", pool_id=pool["id"], delta=-1) == "daily_limit_reached"


async def test_an_identity_of_an_agent_has_the_limit_of_its_key(inventory: Inventory) -> None:
    shop = await inventory.create_shop()
    pool = await shop.create_pool(50)
    answer = await inventory.http.post("/api/agent/identity", json={"type": "service_auth", "api_key": shop.key})
    await set_daily_limit(inventory, shop)
    shop.key = answer.json()["identity_assertion"]

    assert await attempt(shop, "adjust_pool_quantity", pool_id=pool["id"], delta=-9) == "done"
    assert await attempt(shop, "adjust_pool_quantity", pool_id=pool["id"], delta=-2) == "daily_limit_reached"


async def test_the_daily_limit_counts_for_one_shop(inventory: Inventory) -> None:
    shop, other = await inventory.create_shop(), await inventory.create_shop()
    pool, others = await shop.create_pool(50), await other.create_pool(50)
    await set_daily_limit(inventory, shop, 0)
    await set_daily_limit(inventory, other, 5)

    assert await attempt(shop, "adjust_pool_quantity", pool_id=pool["id"], delta=-1) == "daily_limit_reached"
    assert await attempt(other, "adjust_pool_quantity", pool_id=others["id"], delta=-5) == "done"
    assert (await used_calls(inventory, shop), await used_calls(inventory, other)) == (0, 5)


async def test_a_removed_limit_allows_any_number_of_units(inventory: Inventory) -> None:
    shop = await inventory.create_shop()
    pool = await shop.create_pool(50)
    await set_daily_limit(inventory, shop, 0)
    await set_daily_limit(inventory, shop, None)

    assert await attempt(shop, "adjust_pool_quantity", pool_id=pool["id"], delta=-20) == "done"
