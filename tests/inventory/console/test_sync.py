"""The page of the sync: its state, its differences, and setting them right after a preview."""

import pytest

from holdfast.inventory.console.pools import pool_pages
from holdfast.inventory.stock.model import MAX_QUANTITY
from holdfast.inventory.sync.model import ANOTHER_APP, CHANGED_AT_PLATFORM
from holdfast_demo.shopify.errors import Fault
from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import PACKS, Inventory, Shop
from tests.helpers.locked_rows import hold_locks
from tests.helpers.platform_shop import PlatformSource
from tests.inventory.console.merchant_at_platform import MerchantAtPlatform, open_merchant_at_platform
from tests.inventory.console.signing_in import Owner, add_merchant
from tests.inventory.sync.platform_rows import (
    add_to_levels,
    have_two_locations,
    park_level,
    park_levels,
    refuse_subscription,
    store_failed_order,
    store_lag,
    use_fulfillment_service,
    withdraw_access,
)

PATH = "/console/sync"


@pytest.fixture
async def merchant_with_pool(merchant: MerchantAtPlatform) -> MerchantAtPlatform:
    """The merchant, whose honey is in a pool that the platform follows."""
    await follow(merchant)
    return merchant


async def follow(merchant: MerchantAtPlatform) -> None:
    scene = merchant.at_platform
    made = await merchant.shop.create_pool(50, name="<b>Honey</b>", unit="jars", members=PACKS)
    scene.pool_id = made["id"]
    await scene.sync_due()
    await scene.end_push_pause()


async def test_the_page_of_the_sync_shows_its_state(merchant_with_pool: MerchantAtPlatform) -> None:
    page = await merchant_with_pool.get(PATH)

    text = main_text(page)
    assert '<details class="tools" id="tools">' in page.text
    assert "Your shop is connected. All in sync: your shop shows the right numbers for 3 packs." in text
    assert "Numbers kept in sync 3 Numbers on their way 0" in text
    assert "From a sale to the right number no sale in the last hour" in text
    assert "One location of your shop shows the whole stock. Warehouse 100% of the stock" in text
    assert "Import of your products Done today, " in text


async def test_the_first_line_of_the_sync_says_whether_the_merchant_must_act(
    merchant_with_pool: MerchantAtPlatform,
) -> None:
    async def first_line() -> str:
        return main_text(await merchant_with_pool.get(PATH)).partition("Your shop is connected. ")[2].partition(".")[0]

    await merchant_with_pool.at_platform.adjust(-6)
    await merchant_with_pool.at_platform.end_push_pause()
    on_the_way = await first_line()
    await merchant_with_pool.at_platform.sync_due()
    calm = await first_line()
    await add_to_levels(merchant_with_pool.inventory, 1)
    different = await first_line()
    await park_levels(merchant_with_pool.inventory, "The platform refused it.")
    parked = await first_line()

    assert on_the_way == "3 numbers are on their way to your shop"
    assert calm == "All in sync: your shop shows the right numbers for 3 packs"
    assert different == "3 numbers in your shop are different"
    assert parked == "3 numbers in your shop are different"


@pytest.mark.parametrize(
    ("rule", "are_active", "warning"),
    [
        ("all", True, "So the same stock can be sold once at each location."),
        ("one", False, "No open location has a share, so no number is set."),
    ],
)
async def test_a_rule_of_locations_that_sells_more_or_less_than_the_stock_has_a_warning(
    merchant_with_pool: MerchantAtPlatform, rule: str, are_active: bool, warning: str
) -> None:
    await have_two_locations(merchant_with_pool.inventory, rule, are_active=are_active)

    page = await merchant_with_pool.get(PATH)

    assert warning in main_text(page)
    assert '<details class="tools" id="tools" open>' in page.text


async def test_the_page_of_the_sync_shows_fulfillment_services_and_refused_subscriptions(
    merchant_with_pool: MerchantAtPlatform,
) -> None:
    await use_fulfillment_service(merchant_with_pool.inventory)
    await refuse_subscription(merchant_with_pool.inventory, "orders/updated: <i>no</i>")

    page = await merchant_with_pool.get(PATH)

    assert "Warehouse 100% of the stock counted by a fulfillment service" in main_text(page)
    assert "does not report everything that is needed: orders/updated: <i>no</i>" in main_text(page)
    assert "<i>no" not in page.text


async def test_the_page_of_the_sync_shows_the_lag_of_sales(merchant_with_pool: MerchantAtPlatform) -> None:
    await store_lag(merchant_with_pool.inventory, merchant_with_pool.shop.id, 0.5)

    assert "usually within 0.5 s and in 99 of 100 cases within 0.5 s" in main_text(await merchant_with_pool.get(PATH))


async def test_a_comparison_shows_what_is_different_and_then_handles_it(merchant_with_pool: MerchantAtPlatform) -> None:
    merchant_with_pool.at_platform.count("12-pack", 6)
    form = {"pool_id": str(merchant_with_pool.at_platform.pool_id)}

    preview = await merchant_with_pool.send(PATH, do="reconcile", **form)

    assert "Your shop shows 6, the pool has 4." in main_text(preview)
    assert "The pool takes over the numbers of your shop." in main_text(preview)
    assert "<b>Honey" not in preview.text
    assert await merchant_with_pool.shop.on_hand(merchant_with_pool.at_platform.pool_id) == 50
    done = await merchant_with_pool.confirm(preview, PATH, sure="yes")
    assert (done.status_code, done.headers["location"]) == (303, merchant_with_pool.address_of(PATH))
    await merchant_with_pool.at_platform.sync_due()
    assert await merchant_with_pool.shop.on_hand(merchant_with_pool.at_platform.pool_id) == 74
    assert "There is nothing to do." in main_text(await merchant_with_pool.send(PATH, do="reconcile", **form))


async def test_a_comparison_says_which_orders_it_waits_for(merchant_with_pool: MerchantAtPlatform) -> None:
    merchant_with_pool.at_platform.count("12-pack", 6)
    form = {"pool_id": str(merchant_with_pool.at_platform.pool_id)}
    await store_failed_order(merchant_with_pool.inventory, merchant_with_pool.shop.id, "<i>away</i>")

    preview = await merchant_with_pool.send(PATH, do="reconcile", **form)
    done = await merchant_with_pool.confirm(preview, PATH, sure="yes")

    for page in (preview, done, await merchant_with_pool.get(PATH)):
        assert "Some orders could not be counted yet." in main_text(page)
        assert "3 attempts, the next one at" in main_text(page)
        assert "<i>away</i>" in main_text(page)
        assert "<i>away" not in page.text
    assert await merchant_with_pool.shop.on_hand(merchant_with_pool.at_platform.pool_id) == 50


async def test_a_comparison_says_that_it_waits_for_the_answer_to_a_call(merchant_with_pool: MerchantAtPlatform) -> None:
    scene = merchant_with_pool.at_platform
    scene.platform.plan(Fault("before", "SetLevels"))
    await scene.adjust(-6)
    await scene.sync_due()
    scene.count("12-pack", 6)

    preview = await merchant_with_pool.send(PATH, do="reconcile", pool_id=str(scene.pool_id))
    done = await merchant_with_pool.confirm(preview, PATH, sure="yes")

    for page in (preview, done, await merchant_with_pool.get(PATH)):
        assert "Your shop has not answered yet about 3 variants." in main_text(page)
        assert "1 attempt, the next one at" in main_text(page)
        assert "Some orders could not be counted yet." not in main_text(page)


async def test_a_parked_level_is_shown_with_its_reason_and_set_again_after_a_question(
    merchant_with_pool: MerchantAtPlatform,
) -> None:
    await park_level(merchant_with_pool.inventory, 8, "<i>odd</i>")
    page = await merchant_with_pool.get(PATH)
    assert "Your shop refused the number of the pool: <i>odd</i>" in main_text(page)
    assert "<i>odd" not in page.text

    preview = await merchant_with_pool.send(PATH, do="resync", pool_id=str(merchant_with_pool.at_platform.pool_id))

    assert "3 numbers are set to the stock of the pool" in main_text(preview)
    assert (await merchant_with_pool.shop.call("get_sync_status"))["parked"] == 1
    assert (await merchant_with_pool.confirm(preview, PATH, sure="yes")).status_code == 303
    assert (await merchant_with_pool.shop.call("get_sync_status"))["parked"] == 0


async def test_a_pool_without_packs_has_no_numbers_to_set_again(merchant_with_pool: MerchantAtPlatform) -> None:
    empty = await merchant_with_pool.shop.create_pool(5, name="Empty")

    page = main_text(await merchant_with_pool.send(PATH, do="resync", pool_id=str(empty["id"])))

    assert page.startswith("Sync “Empty” is in sync")
    assert "There is nothing to do." in page


async def test_a_number_that_was_changed_in_the_shop_can_be_kept_with_a_correction_of_the_pool(
    merchant_with_pool: MerchantAtPlatform,
) -> None:
    scene = merchant_with_pool.at_platform
    await merchant_with_pool.shop.call("update_pool", pool_id=scene.pool_id, policy="flag")
    scene.count("6-pack", 10)
    await scene.observe_levels("6-pack")
    await scene.end_grace_and_sync()

    page = await merchant_with_pool.get(PATH)
    keep = {"do": "keep", "pool_id": str(scene.pool_id), "delta": "12"}
    preview = await merchant_with_pool.send(PATH, **keep)
    untouched = await merchant_with_pool.shop.on_hand(scene.pool_id)
    done = await merchant_with_pool.confirm(preview, PATH, sure="yes")

    cause = "Somebody changed the number in your shop."
    assert f"{cause} Set your shop to 8 Keep 10, and correct the pool" in main_text(page)
    history = merchant_with_pool.address_of(f"/console/pools/{scene.pool_id}") + "#history"
    assert f'href="{history}">Look at the last sales and counts' in page.text
    assert '<input type="hidden" name="delta" value="12">' in page.text
    assert "It was set to" not in page.text
    assert "Keep the stock of the pool" in main_text(preview)
    assert "50 → 62 jars (12 more)." in main_text(preview)
    assert "Your shop will then show 62, 10 and 5." in main_text(preview)
    assert (untouched, await merchant_with_pool.shop.on_hand(scene.pool_id)) == (50, 62)
    assert (done.status_code, done.headers["location"]) == (303, merchant_with_pool.address_of(PATH))
    await scene.end_push_pause()
    await scene.sync_due()
    assert scene.levels() == (62, 10, 5)
    assert "All in sync" in main_text(await merchant_with_pool.get(PATH))


async def test_a_pool_says_what_the_shop_shows_instead(
    merchant_with_pool: MerchantAtPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/console/pools/{merchant_with_pool.at_platform.pool_id}"
    same = main_text(await merchant_with_pool.get(path))
    await merchant_with_pool.inventory.sql("update levels set parked = 'It was refused.' where target is not null")
    parked = main_text(await merchant_with_pool.get(path))
    await merchant_with_pool.inventory.sql("update levels set parked = null")

    await add_to_levels(merchant_with_pool.inventory, 3)

    page = await merchant_with_pool.get(path)
    assert "Your shop shows" not in same
    assert "Your shop shows 53, the pool has 50. Honey jars · Single" in main_text(page)
    assert "Your shop shows 11, the pool has 8. Honey jars · 6-pack" in main_text(page)
    assert "Compare both numbers" in main_text(page)
    assert "The sync of this pool needs your attention." in parked
    assert "Your shop shows" not in parked
    monkeypatch.setattr(pool_pages, "MAX_DIFFERENCES", 2)
    first = main_text(await merchant_with_pool.get(path))
    assert [text.count("Your shop shows") for text in (main_text(page), first)] == [3, 2]
    assert ["There are more differences." in text for text in (main_text(page), first)] == [False, True]


async def test_a_pool_is_not_corrected_if_the_number_that_is_kept_cannot_be_released(
    merchant_with_pool: MerchantAtPlatform,
) -> None:
    scene = merchant_with_pool.at_platform
    preview = await merchant_with_pool.send(PATH, do="keep", pool_id=str(scene.pool_id), delta="12")
    levels = "select from levels where shop_id = %(shop)s for update"

    async with hold_locks(merchant_with_pool.inventory.database.url, levels, shop=merchant_with_pool.shop.id):
        failed = await merchant_with_pool.confirm(preview, PATH, sure="yes")

    assert failed.status_code == 503
    assert "Nothing was changed" in main_text(failed)
    assert await merchant_with_pool.shop.on_hand(scene.pool_id) == 50


async def test_a_correction_that_a_pool_cannot_hold_is_refused_on_the_page_of_the_sync(
    merchant_with_pool: MerchantAtPlatform,
) -> None:
    pool_id = merchant_with_pool.at_platform.pool_id
    keep = {"do": "keep", "pool_id": str(pool_id)}

    too_few = await merchant_with_pool.send(PATH, **keep, delta="-60")
    unread = await merchant_with_pool.send(PATH, **keep, delta="many")
    for size in (250, 250, 250, 249):
        await merchant_with_pool.shop.call("bulk_adjust", items=[{"pool_id": pool_id, "delta": MAX_QUANTITY}] * size)
    too_many = await merchant_with_pool.send(PATH, **keep, delta=str(MAX_QUANTITY))

    assert (too_few.status_code, unread.status_code, too_many.status_code) == (409, 422, 422)
    assert "There is not as much as this would take." in main_text(too_few)
    assert await merchant_with_pool.shop.on_hand(pool_id) == 50 + 999 * MAX_QUANTITY


async def test_an_archived_pool_is_not_corrected(merchant_with_pool: MerchantAtPlatform) -> None:
    pool_id = merchant_with_pool.at_platform.pool_id
    await merchant_with_pool.shop.call("archive_pool", pool_id=pool_id, release_variants=True)

    refusal = await merchant_with_pool.send(PATH, do="keep", pool_id=str(pool_id), delta="1")

    assert refusal.status_code == 409
    assert await merchant_with_pool.shop.on_hand(pool_id) == 50


async def test_the_reason_of_a_level_that_waits_is_in_german_too(platform_source: PlatformSource) -> None:
    async with open_merchant_at_platform(platform_source, "de") as merchant:
        await follow(merchant)
        await park_level(merchant.inventory, 8, ANOTHER_APP)
        changed = f"{CHANGED_AT_PLATFORM}6 at the platform, where 4 are in the pool."
        await park_level(merchant.inventory, 4, changed)

        text = main_text(await merchant.get(PATH))

    assert "Die Zahl wurde in Ihrem Shop geändert." in text
    assert "Eine andere App setzt diese Zahl ebenfalls." in text
    assert "It was set to" not in text
    assert "Another app" not in text


async def test_a_platform_that_does_not_answer_is_reported_on_the_page_of_the_sync(
    merchant_with_pool: MerchantAtPlatform,
) -> None:
    form = {"do": "reconcile", "pool_id": str(merchant_with_pool.at_platform.pool_id)}
    merchant_with_pool.at_platform.platform.plan(Fault("down", "ReadItemLevels"))

    down = await merchant_with_pool.send(PATH, **form)
    await withdraw_access(merchant_with_pool.inventory)
    unconnected = await merchant_with_pool.send(PATH, **form)

    assert (down.status_code, down.headers["retry-after"]) == (503, "5")
    assert unconnected.status_code == 409
    assert "retry-after" not in unconnected.headers
    assert "Your shop did not answer. Nothing was changed" in main_text(down)
    assert "Your shop is not connected yet." in main_text(unconnected)


async def test_levels_of_pools_of_another_shop_are_not_found(merchant_with_pool: MerchantAtPlatform) -> None:
    other = await merchant_with_pool.inventory.create_shop()
    await other.create_pool(1)
    theirs = await other.create_pool(7, name="Theirs", members=PACKS)

    refusals = [
        await merchant_with_pool.send(PATH, do=do, delta="1", pool_id=pool_id, **sure)
        for do in ("reconcile", "resync", "keep")
        for pool_id, sure in (
            (str(theirs["id"]), {}),
            (str(theirs["id"]), {"sure": "yes", "once": "x" * 22}),
            ("x", {}),
        )
    ]

    assert {response.status_code for response in refusals} == {404}
    assert "Theirs" not in main_text(await merchant_with_pool.get(PATH))
    assert (await merchant_with_pool.send(PATH, do="sell", pool_id="1")).status_code == 400


async def test_a_shop_without_a_platform_sees_that_it_has_none(inventory: Inventory, shop: Shop) -> None:
    owner = Owner(inventory)
    await add_merchant(inventory, shop)
    async with owner.http:
        await owner.sign_in()

        page = await owner.get(PATH)

    assert "Your shop is not connected yet." in main_text(page)
    assert f'href="/auth?shop={shop.domain}"' in page.text
    assert "Check a pool" not in page.text


async def test_the_page_of_the_sync_is_in_german_too(platform_source: PlatformSource) -> None:
    async with open_merchant_at_platform(platform_source, "de") as merchant:
        await follow(merchant)

        text = main_text(await merchant.get(PATH))
        question = await merchant.send(PATH, do="resync", pool_id=str(merchant.at_platform.pool_id))

    assert text.startswith("Abgleich mit Ihrem Shop Ihr Shop ist verbunden.")
    assert main_text(question).startswith(
        "Abgleich Die Zahlen von „<b>Honey</b>“ im Shop neu setzen? Das passiert dann"
    )
