"""The page that replays the last 30 days of a shop through the suggested pools."""

from collections.abc import Sequence

from holdfast.inventory.console.pools.replay_page import picture_of
from holdfast.inventory.replays import operations
from holdfast.inventory.replays.model import ReplayTask
from holdfast.inventory.replays.simulation import replay
from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import Inventory, Shop
from tests.inventory.console.merchant_at_platform import MerchantAtPlatform
from tests.inventory.console.signing_in import Owner, add_merchant
from tests.inventory.replays.replay_scene import know_levels, sell
from tests.inventory.replays.stories import SINCE, UNTIL, orders, pool


async def read_orders(merchant: MerchantAtPlatform) -> None:
    """Do the task of the replay."""
    [(replay_id,)] = await merchant.inventory.sql("select replay_id from replays")
    for _ in range(3):
        await operations.advance(merchant.at_platform.steps, ReplayTask(merchant.shop.id, replay_id))


async def test_a_merchant_sees_oversells_and_more_sales_with_the_orders_behind_them(
    merchant: MerchantAtPlatform,
) -> None:
    scene = merchant.at_platform
    for days in (24, 20, 16, 12):
        sell(scene, days, ("12-pack", 1))
    for days in (10, 9, 8):
        sell(scene, days, ("Single", 10))
    scene.count("6-pack", 1)
    await know_levels(scene)
    suggestions = main_text(await merchant.get("/console/suggestions"))
    assert "Nothing in your shop changes. Replay my last 30 days" in suggestions

    begun = await merchant.send("/console/suggestions", "/console/replay", cursor="")
    assert begun.status_code == 303
    running = main_text(await merchant.get("/console/replay"))
    assert "Your orders are being read. 0 orders so far." in running
    await read_orders(merchant)
    text = main_text(await merchant.get("/console/replay"))

    assert "7 orders, from" in text
    assert "Too few orders to say much." in text
    assert "You would have sold 2 more packs." in text
    assert "12-pack : sold out since" in text
    assert (
        "after 4 were sold. 2 more at that pace, from the units of the other packs."
        " Orders: #1001, #1002, #1003, #1004" in text
    )
    assert "we assume that nothing was delivered, counted or corrected in these days" in text
    assert (await merchant.shop.call("list_pools"))["pools"] == []


async def test_the_page_of_a_replay_names_the_orders_that_took_more_than_there_was(
    merchant: MerchantAtPlatform,
) -> None:
    scene = merchant.at_platform
    for days in (24, 20, 16):
        sell(scene, days, ("6-pack", 2))
    sell(scene, 12, ("Single", 20))
    for title, available in (("Single", 30), ("6-pack", 2), ("12-pack", 4)):
        scene.count(title, available)
    await know_levels(scene)

    await merchant.send("/console/suggestions", "/console/replay", cursor="")
    await read_orders(merchant)
    text = main_text(await merchant.get("/console/replay"))

    assert "You would have avoided 1 oversell." in text
    assert "1 order for more than you had With a pool, your shop would have sold no more than there was. #1004" in text
    assert "20 ordered, 6 missing" in text
    assert "Your shop shows 90 units today. If the packs are the same goods, these orders leave none." in text


async def test_a_replay_leads_to_the_suggestions_until_all_of_their_pools_are_made(
    merchant: MerchantAtPlatform,
) -> None:
    sell(merchant.at_platform, 20, ("6-pack", 1))
    await know_levels(merchant.at_platform)
    await merchant.send("/console/suggestions", "/console/replay", cursor="")
    await read_orders(merchant)

    before = main_text(await merchant.get("/console/replay"))
    await merchant.at_platform.link()
    after = main_text(await merchant.get("/console/replay"))

    assert ("Make these pools" in before, "See your pools" in before) == (True, False)
    assert ("Make these pools" in after, "See your pools" in after) == (False, True)
    assert "Your pools are made: this is what they do from now on." in after


async def test_a_shop_without_orders_reads_that_there_is_nothing_to_replay(merchant: MerchantAtPlatform) -> None:
    none = main_text(await merchant.get("/console/replay"))
    assert "What if you had had pools already?" in none

    await merchant.send("/console/replay", cursor="")
    await read_orders(merchant)

    assert "Your shop had no orders in the last 30 days." in main_text(await merchant.get("/console/replay"))


async def test_a_shop_whose_variants_all_have_a_pool_has_nothing_to_replay(merchant: MerchantAtPlatform) -> None:
    await merchant.at_platform.link()

    refusal = await merchant.send("/console/suggestions", "/console/replay", cursor="")

    assert refusal.status_code == 404
    assert await merchant.inventory.sql("select from replays") == []


async def test_a_shop_that_is_not_connected_reads_that_it_must_be(inventory: Inventory, shop: Shop) -> None:
    await add_merchant(inventory, shop)
    owner = await Owner(inventory).sign_in()

    refusal = await owner.send("/console/replay", cursor="")

    assert refusal.status_code == 409
    assert "Your shop is not connected yet." in main_text(refusal)


def kinds(levels: dict[int, int], *past: tuple[float, dict[int, int]]) -> Sequence[str]:
    """How many jars of each kind a picture has."""
    jars = [kind for _, _, kind in picture_of(replay(pool(levels), orders(*past), SINCE, UNTIL)).jars]
    assert len(jars) <= 60
    return [f"{jars.count(kind)} {kind}" for kind in dict.fromkeys(jars)]


def test_the_picture_of_a_replay_divides_jars_by_what_became_of_the_units() -> None:
    assert kinds({1: 60, 6: 0}) == ["60 left"]
    assert kinds({1: 45, 6: 0}, (1, {1: 15})) == ["15 sold", "45 left"]
    assert kinds({1: 20, 6: 3}, (1, {6: 5}), (2, {1: 25}), (3, {1: 5})) == ["50 sold", "10 missing"]
    assert kinds({1: 100_000, 6: 10_000}, (1, {1: 1})) == ["1 sold", "59 left"]
    assert kinds({1: 0, 6: 0}) == []


def test_a_jar_in_the_picture_of_a_replay_stands_for_whole_units() -> None:
    drawn = [picture_of(replay(pool({1: units, 6: 0}), [], SINCE, UNTIL)) for units in (60, 61, 120, 121)]

    assert [(picture.units_per_jar, len(picture.jars)) for picture in drawn] == [(1, 60), (2, 31), (2, 60), (3, 41)]
