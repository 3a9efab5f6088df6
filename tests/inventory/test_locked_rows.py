"""While a row of one shop is locked, its calls wait, and those of other shops do not."""

import asyncio

import pytest

from holdfast.inventory.stock import expiry
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import eventually
from tests.helpers.inventory_service import Inventory, Shop
from tests.helpers.locked_rows import hold_locks, without_waiting

ROWS = {
    "shop": "select from shared_inventories where shop_id = %(shop)s for update",
    "pool": "select from pools where shop_id = %(shop)s for update",
    "hold": "select from holds where shop_id = %(shop)s for update",
}


@pytest.mark.parametrize("row", ROWS)
async def test_the_holds_of_other_shops_expire_while_one_shop_is_locked_and_its_own_soon_after(
    inventory: Inventory, row: str
) -> None:
    shops = [await inventory.create_shop(), await inventory.create_shop()]
    pools = [await shop.create_pool(50) for shop in shops]

    async def has_no_hold(number: int) -> bool:
        return (await shops[number].call("get_pool", pool_id=pools[number]["id"]))["held"] == 0

    async with run_in_background(expiry.LOOP.run(inventory.database)):
        for shop, pool in zip(shops, pools, strict=True):
            await shop.call("hold_quantity", pool_id=pool["id"], quantity=6)
        async with hold_locks(inventory.database.url, ROWS[row], shop=shops[0].id) as operator:
            await inventory.sql("update holds set expires_at = now() where shop_id = %(id)s", id=shops[1].id)
            if row != "hold":
                await inventory.sql("update holds set expires_at = now()")
            await inventory.sql("select pg_notify('holdfast', 'holds ')")
            await eventually(lambda: has_no_hold(1), seconds=2)
            if row != "hold":
                await operator.wait_for_waiters()
        await inventory.sql("update holds set expires_at = now() where released_at is null")
        await inventory.sql("select pg_notify('holdfast', 'holds ')")
        await eventually(lambda: has_no_hold(0), seconds=2)
    assert await inventory.ledger_differences() == []


@pytest.mark.parametrize("row", ["shop", "pool"])
async def test_the_calls_of_a_locked_shop_wait_and_those_of_others_do_not(inventory: Inventory, row: str) -> None:
    locked, free = await inventory.create_shop(), await inventory.create_shop()
    mine, theirs = await locked.create_pool(50), await free.create_pool(50)

    async with hold_locks(inventory.database.url, ROWS[row], shop=locked.id) as operator:
        waiting = [
            asyncio.create_task(locked.call("adjust_pool_quantity", pool_id=mine["id"], delta=-1)) for _ in range(20)
        ]
        await operator.wait_for_waiters()
        await without_waiting(
            asyncio.gather(*(free.call("adjust_pool_quantity", pool_id=theirs["id"], delta=-1) for _ in range(20)))
        )
        assert await without_waiting(locked.on_hand(mine["id"])) == 50
        assert not any(task.done() for task in waiting)

    await asyncio.gather(*waiting)
    assert [await locked.on_hand(mine["id"]), await free.on_hand(theirs["id"])] == [30, 30]


async def test_a_call_of_a_shop_that_stays_locked_is_refused_after_five_seconds(inventory: Inventory) -> None:
    shop = await inventory.create_shop()
    pool = await shop.create_pool(50)

    async with hold_locks(inventory.database.url, ROWS["shop"], shop=shop.id), asyncio.timeout(8):
        refusal = await shop.send_call("adjust_pool_quantity", {"pool_id": pool["id"], "delta": -1})

    assert (refusal.status_code, refusal.json()["error"]) == (503, "service_unavailable")
    assert "Another caller is still changing the same thing" in refusal.json()["message"]
    assert await shop.on_hand(pool["id"]) == 50


async def test_agents_that_wait_for_the_locked_key_of_a_shop_leave_connections_to_other_shops(
    inventory: Inventory,
) -> None:
    locked, free = await inventory.create_shop(), await inventory.create_shop()
    key = "select from api_keys where shop_id = %(shop)s for update"

    async with hold_locks(inventory.database.url, key, shop=locked.id) as operator:
        waiting = [
            asyncio.create_task(inventory.http.post("/api/agent/identity", json=identity(locked))) for _ in range(12)
        ]
        await operator.wait_for_waiters()
        answer = await without_waiting(inventory.http.post("/api/agent/identity", json=identity(free)))
        assert answer.status_code == 200, answer.text

    assert [answer.status_code for answer in await asyncio.gather(*waiting)] == [200] * 12


def identity(shop: Shop) -> dict[str, str]:
    """The body with which an agent shows the key of a shop."""
    return {"type": "service_auth", "api_key": shop.key}
