"""The sentence the service is built on: a pool of 50; one 6-pack is sold; 44 are left; singles show 44, 6-packs 7,
12-packs 3.
"""

from tests.helpers.inventory_service import SINGLE, SIX_PACK, TWELVE_PACK, Shop


async def test_a_pool_of_50_that_sells_one_6_pack_leaves_44_singles_7_6_packs_and_3_12_packs(shop: Shop) -> None:
    pool = await shop.create_golden_pool()
    assert pool["on_hand"] == 50

    sold = await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-6, reason="One 6-pack was sold.")

    assert sold["pools"][0]["on_hand"] == 44
    availability = await shop.call("get_availability", pool_id=pool["id"])
    assert availability["variants"] == {SINGLE: 44, SIX_PACK: 7, TWELVE_PACK: 3}
    storefront = await shop.read_storefront()
    assert storefront.status_code == 200
    assert storefront.json()["variants"] == {SINGLE: 44, SIX_PACK: 7, TWELVE_PACK: 3}


async def test_a_simulated_sale_of_one_6_pack_shows_what_would_be_left(shop: Shop) -> None:
    await shop.create_golden_pool()

    simulated = await shop.call("simulate_sale", lines=[{"variant_gid": SIX_PACK, "quantity": 1}])

    assert simulated["possible"] is True
    assert {variant["variant_gid"]: variant["after"] for variant in simulated["affected"]} == {
        SINGLE: 44,
        SIX_PACK: 7,
        TWELVE_PACK: 3,
    }
    assert (await shop.read_storefront()).json()["variants"][SINGLE] == 50
