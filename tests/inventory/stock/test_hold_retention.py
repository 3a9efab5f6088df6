"""Holds are deleted 90 days after they ended; their entries stay in the ledger."""

import pytest

from holdfast.inventory.stock import retention
from holdfast.kit.background.tasks import in_batches
from holdfast.kit.operations.steps import Steps
from tests.helpers.inventory_service import Inventory, Shop


async def forget(inventory: Inventory) -> int:
    return await in_batches(retention.forget_holds)(Steps(inventory.database))


async def hold(shop: Shop, pool_id: int) -> int:
    return (await shop.call("hold_quantity", pool_id=pool_id, quantity=1))["hold"]["id"]


async def test_holds_that_ended_long_ago_are_deleted_and_the_ledger_stays(inventory: Inventory) -> None:
    shops = await inventory.create_shop(), await inventory.create_shop()
    active = 0
    for shop in shops:
        pool = await shop.create_pool(50)
        old, young, active = [await hold(shop, pool["id"]) for _ in range(3)]
        for id in (old, young):
            await shop.call("release_hold", hold_id=id)
        await inventory.sql("update holds set released_at = now() - interval '91 days' where id = %(id)s", id=old)
    before = [await shop.entries() for shop in shops]

    assert await forget(inventory) == 2
    assert await forget(inventory) == 0

    assert [await shop.entries() for shop in shops] == before
    assert await inventory.sql("select count(*) from holds") == [(4,)]
    assert await inventory.sql("select count(*) from hold_lines") == [(4,)]
    assert (await shops[1].call("list_holds"))["holds"][0]["id"] == active


async def test_ended_holds_are_deleted_in_batches(
    inventory: Inventory, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "DELETE_BATCH_SIZE", 2)
    pool = await shop.create_pool(50)
    for _ in range(5):
        await shop.call("release_hold", hold_id=await hold(shop, pool["id"]))
    await inventory.sql("update holds set released_at = now() - interval '91 days'")

    assert await inventory.database.transact(retention.forget_holds) == 2
    assert await forget(inventory) == 3
