"""The rules in Python and the view in SQL compute the same availability."""

import json
import random

import pytest

from holdfast.inventory.stock.remembered_stock import TouchedRows
from holdfast.inventory.stock.stock_changes import read_stock
from tests.helpers.inventory_service import Inventory, Shop

VARIANTS = [f"gid://shopify/ProductVariant/{number}" for number in range(40)]


async def scatter(inventory: Inventory, shop: Shop, chance: random.Random) -> None:
    """Pools in every condition, deficits and pauses among them, with variants drawn at random."""
    pools = [
        {
            "name": f"Pool {number}",
            "on_hand": chance.choice([*(chance.randint(-50, 900) for _ in range(8)), 10**15, -(10**15), 0]),
            "held": chance.choice([0, chance.randint(0, 60)]),
            "buffer": chance.choice([0, 0, 0, 0, chance.randint(0, 60), 10**12]),
            "status": chance.choice([*["active"] * 10, "paused", "archived"]),
        }
        for number in range(12)
    ]
    members = [
        {"name": f"Pool {number}", "gid": gid, "units": chance.choice([1, chance.randint(1, 24), 10**9])}
        for gid in VARIANTS
        for number in chance.sample(range(12), chance.randint(1, 3))
    ]
    await inventory.sql(
        """
        with inserted_variants as (
            insert into variants (shop_id, gid, version) select %(shop)s, unnest(%(variants)s::text[]), 1),
        made as (
            insert into pools (shop_id, name, unit, on_hand, held, buffer, status, version)
            select %(shop)s, name, 'units', on_hand, held, buffer, status, 1
              from json_to_recordset(%(pools)s) as pool (name text, on_hand bigint, held bigint, buffer bigint,
                                                         status pool_status)
         returning id, name)
        insert into members (shop_id, pool_id, variant_gid, units_per_sale)
        select %(shop)s, made.id, gid, units
          from json_to_recordset(%(members)s) as member (name text, gid text, units bigint) join made using (name)
        """,
        shop=shop.id,
        variants=VARIANTS,
        pools=json.dumps(pools),
        members=json.dumps(members),
    )


@pytest.mark.parametrize("seed", range(8))
async def test_availability_computed_in_python_and_in_sql_is_the_same_for_every_variant(
    inventory: Inventory, shop: Shop, seed: int
) -> None:
    chance = random.Random(seed)
    await scatter(inventory, shop, chance)
    sample = chance.sample(VARIANTS, 10)

    viewed = dict(
        await inventory.sql("select variant_gid, quantity from availability where shop_id = %(shop)s", shop=shop.id)
    )
    for gids in (sample, VARIANTS):
        stock = await inventory.database.read(
            lambda tx, gids=gids: read_stock(tx, shop.id, TouchedRows((), gids)), shop.id
        )
        assert {gid: stock.available(gid) for gid in gids} == {gid: viewed[gid] for gid in gids}
    assert set(viewed.values()) > {None, 0}


@pytest.mark.parametrize("seed", range(8))
async def test_availability_for_storefronts_and_agents_is_the_same(inventory: Inventory, shop: Shop, seed: int) -> None:
    await scatter(inventory, shop, random.Random(seed))

    availability = await shop.call("get_availability", variant_gids=VARIANTS)

    assert availability["variants"] == (await shop.read_storefront()).json()["variants"]
