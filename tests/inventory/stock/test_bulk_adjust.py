"""Many adjustments as one: all of them, or none."""

from tests.helpers.inventory_service import SINGLE, SIX_PACK, Inventory, Shop


async def test_a_bulk_adjustment_changes_all_pools_in_one_version(shop: Shop) -> None:
    one, two = await shop.create_pool(10), await shop.create_pool(20)

    change = await shop.call(
        "bulk_adjust", items=[{"pool_id": two["id"], "delta": 5}, {"pool_id": one["id"], "delta": -3}]
    )

    assert [(entry["pool_id"], entry["delta"], entry["balance_after"]) for entry in change["entries"]] == [
        (one["id"], -3, 7),
        (two["id"], 5, 25),
    ]
    assert {entry["version"] for entry in change["entries"]} == {change["version"]}
    assert [(pool["id"], pool["on_hand"]) for pool in change["pools"]] == [(one["id"], 7), (two["id"], 25)]


async def test_one_line_that_does_not_fit_prevents_the_whole_adjustment(shop: Shop, inventory: Inventory) -> None:
    one, two = await shop.create_pool(10), await shop.create_pool(20)
    before = await inventory.all_rows()

    refusal = await shop.refusal(
        "bulk_adjust", items=[{"pool_id": one["id"], "delta": -3}, {"pool_id": two["id"], "delta": -21}]
    )

    assert (refusal["code"], refusal["pool_id"]) == ("not_enough_stock", two["id"])
    assert await inventory.all_rows() == before


async def test_lines_of_one_pool_that_fit_one_by_one_but_not_together_are_refused(shop: Shop) -> None:
    pool = await shop.create_pool(10)
    items = [{"pool_id": pool["id"], "delta": -6}, {"pool_id": pool["id"], "delta": -6}]

    refusal = await shop.refusal("bulk_adjust", items=items)

    assert (refusal["code"], refusal["available"], refusal["requested"]) == ("not_enough_stock", 10, 12)
    assert await shop.on_hand(pool["id"]) == 10


async def test_lines_of_one_pool_that_fit_together_but_not_one_by_one_are_applied(shop: Shop) -> None:
    pool = await shop.create_pool(10)
    items = [{"pool_id": pool["id"], "delta": -16}, {"pool_id": pool["id"], "delta": 7}]

    change = await shop.call("bulk_adjust", items=items)

    assert [entry["delta"] for entry in change["entries"]] == [-9]
    assert await shop.on_hand(pool["id"]) == 1


async def test_a_kit_that_draws_on_both_pools_is_listed_once(shop: Shop) -> None:
    jars = await shop.create_pool(12, members=[{"variant_gid": SINGLE, "units_per_sale": 1}])
    lids = await shop.create_pool(12, members=[{"variant_gid": SIX_PACK, "units_per_sale": 6}])
    await shop.call("link_variants", pool_id=lids["id"], members=[{"variant_gid": SINGLE, "units_per_sale": 2}])

    change = await shop.call(
        "bulk_adjust", items=[{"pool_id": jars["id"], "delta": -8}, {"pool_id": lids["id"], "delta": -6}]
    )

    affected = sorted(change["affected"], key=lambda variant: variant["variant_gid"])
    assert affected == [
        {"variant_gid": SINGLE, "before": 6, "after": 3},
        {"variant_gid": SIX_PACK, "before": 2, "after": 1},
    ]


async def test_one_unknown_pool_prevents_the_whole_adjustment(shop: Shop, inventory: Inventory) -> None:
    pool = await shop.create_pool(10)
    theirs = await (await inventory.create_shop()).create_pool(10)

    refusal = await shop.refusal(
        "bulk_adjust", items=[{"pool_id": pool["id"], "delta": 1}, {"pool_id": theirs["id"], "delta": 1}]
    )

    assert refusal["code"] == "not_found"
    assert await shop.on_hand(pool["id"]) == 10


async def test_one_stale_line_prevents_the_whole_adjustment(shop: Shop) -> None:
    one, two = await shop.create_pool(10), await shop.create_pool(20)

    refusal = await shop.refusal(
        "bulk_adjust",
        items=[
            {"pool_id": one["id"], "delta": 1, "expected_quantity": 10},
            {"pool_id": two["id"], "delta": 1, "expected_quantity": 19},
        ],
    )

    assert refusal["code"] == "stale"
    assert refusal["current"] == {"pool_id": two["id"], "version": two["version"], "quantity": 20}
    assert await shop.on_hand(one["id"]) == 10


async def test_a_bulk_adjustment_takes_at_most_250_lines(shop: Shop) -> None:
    pool = await shop.create_pool(0)
    items = [{"pool_id": pool["id"], "delta": 1}] * 250

    await shop.call("bulk_adjust", items=items)
    refusal = await shop.refusal("bulk_adjust", items=[*items, *items[:1]])

    assert (refusal["code"], list(refusal["errors"])) == ("validation_failed", ["items"])
    assert await shop.on_hand(pool["id"]) == 250


async def test_a_bulk_adjustment_without_lines_is_refused(shop: Shop) -> None:
    refusal = await shop.refusal("bulk_adjust", items=[])

    assert (refusal["code"], list(refusal["errors"])) == ("validation_failed", ["items"])


async def test_a_line_without_effect_is_refused(shop: Shop) -> None:
    pool = await shop.create_pool(10)

    refusal = await shop.refusal("bulk_adjust", items=[{"pool_id": pool["id"], "delta": 0}])

    assert refusal["code"] == "validation_failed"
