"""Storefronts get nothing of a paused pool, and its stock can still be counted."""

from tests.helpers.inventory_service import SINGLE, SIX_PACK, TWELVE_PACK, Shop


async def test_a_paused_pool_hides_its_variants_from_the_storefront_until_it_is_resumed(shop: Shop) -> None:
    pool = await shop.create_golden_pool()

    paused = await shop.call("pause_pool", pool_id=pool["id"])
    assert (await shop.read_storefront()).json()["variants"] == {}
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-6)
    resumed = await shop.call("resume_pool", pool_id=pool["id"])

    assert (await shop.read_storefront()).json()["variants"] == {SINGLE: 44, SIX_PACK: 7, TWELVE_PACK: 3}
    assert (paused["pool"]["status"], resumed["pool"]["status"]) == ("paused", "active")
    assert paused["affected"][0] == {"variant_gid": SINGLE, "before": 50, "after": None}
    assert resumed["affected"][0] == {"variant_gid": SINGLE, "before": None, "after": 44}


async def test_a_kit_is_in_the_storefront_when_all_its_pools_are_active(shop: Shop) -> None:
    await shop.create_golden_pool()
    boxes = await shop.create_pool(5, members=[{"variant_gid": SIX_PACK, "units_per_sale": 1}])

    await shop.call("pause_pool", pool_id=boxes["id"])
    without = (await shop.read_storefront()).json()["variants"]
    await shop.call("resume_pool", pool_id=boxes["id"])

    assert without == {SINGLE: 50, TWELVE_PACK: 4}
    assert (await shop.read_storefront()).json()["variants"] == {SINGLE: 50, SIX_PACK: 5, TWELVE_PACK: 4}


async def test_a_pool_paused_or_resumed_twice_is_changed_once(shop: Shop) -> None:
    pool = await shop.create_golden_pool()

    for tool, status in (("pause_pool", "paused"), ("resume_pool", "active")):
        changes = [await shop.call(tool, pool_id=pool["id"]) for _ in range(2)]
        assert [change["pool"]["status"] for change in changes] == [status, status]
        assert [len(change["affected"]) for change in changes] == [3, 0]


async def test_an_archived_pool_cannot_be_paused_or_resumed(shop: Shop) -> None:
    pool = await shop.create_golden_pool()
    await shop.call("archive_pool", pool_id=pool["id"])

    for tool in ("pause_pool", "resume_pool"):
        refusal = await shop.refusal(tool, pool_id=pool["id"])
        assert (refusal["code"], "restore_pool" in refusal["hint"]) == ("pool_not_active", True)


async def test_a_hold_of_a_paused_pool_can_be_released(shop: Shop) -> None:
    pool = await shop.create_golden_pool()
    hold = (await shop.call("hold_quantity", pool_id=pool["id"], quantity=6))["hold"]
    await shop.call("pause_pool", pool_id=pool["id"])

    await shop.call("release_hold", hold_id=hold["id"])

    assert (await shop.call("get_pool", pool_id=pool["id"]))["held"] == 0
