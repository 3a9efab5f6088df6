"""A process remembers the stock that it left. It is used only while nobody else has changed the shop."""

import random

from holdfast.inventory.resources import Tx
from holdfast.inventory.settings import Settings
from holdfast.inventory.stock import sql
from holdfast.inventory.stock.ledger_rules import Stock
from holdfast.inventory.stock.remembered_stock import RememberedStock, TouchedRows
from holdfast.inventory.stock.stock_changes import read_stock
from tests.helpers.inventory_service import (
    SINGLE,
    SIX_PACK,
    TWELVE_PACK,
    Inventory,
    Shop,
    ToolRefusal,
    running_inventory,
)

GIDS = [SINGLE, SIX_PACK, TWELVE_PACK]


async def adjust(shop: Shop, pool_id: int, times: int = 3) -> None:
    for _ in range(times):
        await shop.call("adjust_pool_quantity", pool_id=pool_id, delta=1)


async def is_remembered_right(inventory: Inventory, shop: Shop) -> bool:
    """Compare what is remembered of a shop with what is stored. Returns whether it would be used."""
    remembered: RememberedStock | None = inventory.database.resources.stock.get(shop.id)

    async def stored(tx: Tx) -> tuple[bool, Stock | None]:
        position = await sql.lock_and_read_position(tx, shop.id)
        if remembered is None or not remembered.is_at(position):
            return False, None
        assert remembered.stock.entry_count == position.entry_count
        return True, await read_stock(tx, shop.id, TouchedRows(list(remembered.stock.pools)))

    is_right, stock = await inventory.database.transact(stored, shop.id)
    if remembered and stock:
        known = {id for id in remembered.stock.pools if not remembered.unknown(TouchedRows([id])).pool_ids}
        assert remembered.stock.pools == {id: stock.pools[id] for id in remembered.stock.pools}
        for gid in (gid for id in known for gid in stock.pools[id].members):
            assert {pool.id for pool, _ in remembered.stock.pools_of_variant(gid)} == {
                pool.id for pool, _ in stock.pools_of_variant(gid)
            }
    return is_right


async def test_a_remembered_stock_is_always_that_of_the_database(inventory: Inventory, shop: Shop) -> None:
    chance = random.Random(3)
    pools = [(await shop.create_pool(500))["id"] for _ in range(4)]
    for gid in GIDS:
        for pool in chance.sample(pools, 2):
            await shop.call("link_variants", pool_id=pool, members=[{"variant_gid": gid, "units_per_sale": 2}])
    used = 0
    for _ in range(80):
        pool, gid = chance.choice(pools), chance.choice(GIDS)
        tool, arguments = chance.choice(
            [
                ("adjust_pool_quantity", {"pool_id": pool, "delta": chance.choice([-3, 5])}),
                ("adjust_pool_quantity", {"pool_id": pool, "delta": 5, "dry_run": True}),
                ("set_pool_quantity", {"pool_id": pool, "quantity": chance.randint(100, 900)}),
                ("hold_quantity", {"variant_gid": gid, "quantity": 1}),
                ("record_sale", {"variant_gid": gid, "quantity": 1}),
                ("record_sale", {"variant_gid": gid, "quantity": 10**6}),
                ("update_pool", {"pool_id": pool, "buffer": chance.randint(0, 9)}),
                ("update_member", {"pool_id": pool, "variant_gid": gid, "units_per_sale": chance.randint(1, 9)}),
                ("link_variants", {"pool_id": pool, "members": [{"variant_gid": gid, "units_per_sale": 3}]}),
                ("unlink_variants", {"pool_id": pool, "variant_gids": [gid]}),
            ]
        )
        try:
            await shop.call(tool, **arguments)
        except ToolRefusal as refusal:
            assert refusal.code in {"not_found", "not_enough_stock"}  # noqa: PT017 - the others must not be refused
        used += await is_remembered_right(inventory, shop)

    assert used > 20
    assert await inventory.ledger_differences() == []


async def test_stock_that_another_process_changed_is_read_again(settings: Settings, inventory: Inventory) -> None:
    shop = await inventory.create_shop()
    pool = await shop.create_pool(50)
    await adjust(shop, pool["id"])

    async with running_inventory(settings) as other:
        await adjust(shop.at_service(other), pool["id"])
        await adjust(shop, pool["id"])
        await shop.at_service(other).call("update_pool", pool_id=pool["id"], buffer=59)
        refusal = await shop.refusal("hold_quantity", pool_id=pool["id"], quantity=1)

    assert refusal["code"] == "not_enough_stock"
    assert await shop.on_hand(pool["id"]) == 59
    assert await inventory.ledger_differences() == []


async def test_a_changed_buffer_or_membership_is_read_before_the_next_change(inventory: Inventory, shop: Shop) -> None:
    pool = await shop.create_golden_pool()
    await adjust(shop, pool["id"])

    await inventory.sql("update pools set buffer = 40")
    await inventory.sql("update members set units_per_sale = 7 where units_per_sale = 6")
    change = await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=1)

    assert change["pools"][0]["available"] == 14
    assert change["affected"] == [
        {"variant_gid": SINGLE, "before": 13, "after": 14},
        {"variant_gid": SIX_PACK, "before": 1, "after": 2},
    ]


async def test_stock_is_read_again_when_its_stamp_has_changed(inventory: Inventory, shop: Shop) -> None:
    """A standby that is promoted may lack the last changes, and its shop gets the same version by others."""
    pool = await shop.create_pool(50)
    await adjust(shop, pool["id"])

    await inventory.sql(
        """
        do $$ begin
            alter table pools disable trigger user;
            update pools set buffer = 50;
            alter table pools enable trigger user;
            update shared_inventories set stamp = stamp + 1;
        end $$
        """
    )
    refusal = await shop.refusal("hold_quantity", pool_id=pool["id"], quantity=4)

    assert refusal["available"] == 3
