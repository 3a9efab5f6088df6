"""Which variants draw on a pool, and how much of it one sale takes."""

from typing import Any

import pytest

from tests.helpers.inventory_service import PACKS, SINGLE, SIX_PACK, TWELVE_PACK, Inventory, Shop

LINK = {"variant_gid": SIX_PACK, "units_per_sale": 6}


def effective_changes(change: dict[str, Any]) -> dict[str, Any]:
    return {variant["variant_gid"]: (variant["before"], variant["after"]) for variant in change["affected"]}


async def test_a_linked_variant_is_sold_from_the_pool(shop: Shop) -> None:
    pool = await shop.create_pool(50)

    change = await shop.call("link_variants", pool_id=pool["id"], members=PACKS)

    assert effective_changes(change) == {SINGLE: (None, 50), SIX_PACK: (None, 8), TWELVE_PACK: (None, 4)}
    assert change["pool"]["member_count"] == 3
    assert (await shop.read_storefront()).json()["variants"] == {SINGLE: 50, SIX_PACK: 8, TWELVE_PACK: 4}


async def test_a_variant_linked_again_changes_its_units_and_keeps_title_and_sku(shop: Shop) -> None:
    named = {**LINK, "sku": "HONEY-6", "title": "Six jars"}
    pool = await shop.create_pool(50, members=[named])

    change = await shop.call(
        "link_variants", pool_id=pool["id"], members=[{"variant_gid": SIX_PACK, "units_per_sale": 5}]
    )

    assert effective_changes(change) == {SIX_PACK: (8, 10)}
    assert change["pool"]["members"] == [{**named, "units_per_sale": 5, "effective": 10}]


async def test_a_variant_on_several_pools_is_a_kit(shop: Shop) -> None:
    await shop.create_golden_pool()
    boxes = await shop.create_pool(3)

    change = await shop.call("link_variants", pool_id=boxes["id"], members=[{**LINK, "units_per_sale": 1}])

    assert effective_changes(change) == {SIX_PACK: (8, 3)}
    assert (await shop.read_storefront()).json()["variants"] == {SINGLE: 50, SIX_PACK: 3, TWELVE_PACK: 4}


async def test_changed_units_of_a_variant_apply_to_later_sales_only(shop: Shop) -> None:
    pool = await shop.create_golden_pool()
    entries = await shop.entries()

    change = await shop.call("update_member", pool_id=pool["id"], variant_gid=SIX_PACK, units_per_sale=7)

    assert effective_changes(change) == {SIX_PACK: (8, 7)}
    assert (await shop.read_storefront()).json()["variants"][SIX_PACK] == 7
    assert await shop.entries() == entries


async def test_an_unlinked_variant_is_not_in_the_storefront(shop: Shop) -> None:
    pool = await shop.create_golden_pool()
    await shop.read_storefront()

    change = await shop.call("unlink_variants", pool_id=pool["id"], variant_gids=[SIX_PACK, SINGLE])

    assert effective_changes(change) == {SIX_PACK: (8, None), SINGLE: (50, None)}
    assert [member["variant_gid"] for member in change["pool"]["members"]] == [TWELVE_PACK]
    assert (await shop.read_storefront()).json()["variants"] == {TWELVE_PACK: 4}


async def test_a_kit_that_loses_a_pool_is_sold_from_the_others(shop: Shop) -> None:
    await shop.create_golden_pool()
    boxes = await shop.create_pool(3, members=[{**LINK, "units_per_sale": 1}])
    assert (await shop.read_storefront()).json()["variants"][SIX_PACK] == 3

    change = await shop.call("unlink_variants", pool_id=boxes["id"], variant_gids=[SIX_PACK])

    assert effective_changes(change) == {SIX_PACK: (3, 8)}
    assert (await shop.read_storefront()).json()["variants"][SIX_PACK] == 8


STRANGERS: list[tuple[str, dict[str, Any]]] = [
    ("update_member", {"variant_gid": SINGLE, "units_per_sale": 2}),
    ("unlink_variants", {"variant_gids": [SIX_PACK, SINGLE]}),
]


@pytest.mark.parametrize(("tool", "arguments"), STRANGERS, ids=[tool for tool, _ in STRANGERS])
async def test_a_variant_that_draws_on_another_pool_only_is_not_found(
    shop: Shop, inventory: Inventory, tool: str, arguments: dict[str, Any]
) -> None:
    pool = await shop.create_pool(50, members=[LINK])
    await shop.create_pool(50, members=[{"variant_gid": SINGLE, "units_per_sale": 1}])
    before = await inventory.all_rows()

    refusal = await shop.refusal(tool, pool_id=pool["id"], **arguments)

    assert (refusal["code"], SINGLE in refusal["message"]) == ("not_found", True)
    assert SIX_PACK not in refusal["message"]
    assert await inventory.all_rows() == before


@pytest.mark.parametrize(
    ("tool", "arguments", "blamed"),
    [
        ("link_variants", {"members": []}, "members"),
        ("link_variants", {"members": [LINK, {**LINK, "units_per_sale": 1}]}, "members"),
        ("link_variants", {"members": [{**LINK, "units_per_sale": 0}]}, "members"),
        ("link_variants", {"members": [{**LINK, "units_per_sale": 10**9 + 1}]}, "members"),
        ("link_variants", {"members": [{**LINK, "quantity": 4}]}, "members"),
        ("link_variants", {"members": [{**LINK, "sku": ""}]}, "members"),
        ("update_member", {"variant_gid": SIX_PACK, "units_per_sale": 0}, "units_per_sale"),
        ("update_member", {"variant_gid": SIX_PACK, "units_per_sale": -6}, "units_per_sale"),
        ("unlink_variants", {"variant_gids": []}, "variant_gids"),
        ("unlink_variants", {"variant_gids": [SIX_PACK, SIX_PACK]}, "variant_gids"),
    ],
    ids=str,
)
async def test_an_invalid_change_of_members_is_named_and_changes_nothing(
    shop: Shop, inventory: Inventory, tool: str, arguments: dict[str, Any], blamed: str
) -> None:
    pool = await shop.create_golden_pool()
    before = await inventory.all_rows()

    refusal = await shop.refusal(tool, pool_id=pool["id"], **arguments)

    assert (refusal["code"], list(refusal["errors"])) == ("validation_failed", [blamed])
    assert await inventory.all_rows() == before


async def test_a_call_links_250_variants(shop: Shop) -> None:
    pool = await shop.create_pool(50)
    members = [{"variant_gid": f"gid://shopify/ProductVariant/{n}", "units_per_sale": n} for n in range(1, 251)]

    change = await shop.call("link_variants", pool_id=pool["id"], members=members)

    assert change["pool"]["member_count"] == len((await shop.read_storefront()).json()["variants"]) == 250


async def test_a_variant_with_the_same_id_in_another_shop_is_a_different_variant(
    shop: Shop, inventory: Inventory
) -> None:
    other = await inventory.create_shop()
    await shop.create_pool(50, members=[{**LINK, "sku": "OURS"}])
    theirs = await other.create_pool(12, members=[{**LINK, "sku": "THEIRS"}])

    await other.call("unlink_variants", pool_id=theirs["id"], variant_gids=[SIX_PACK])

    result = await shop.call("find_variant", gid=SIX_PACK)
    assert [(variant["sku"], variant["effective"]) for variant in result["variants"]] == [("OURS", 8)]
