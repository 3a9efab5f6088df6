"""The page of the sync: its state, what is different, and setting it right after a look at what that would do."""

import pytest

from holdfast.inventory.settings import Settings
from holdfast.inventory.shopify.double.faults import Fault
from tests.inventory.console.scene import said
from tests.inventory.console.signing_in import Owner, own
from tests.inventory.console.stocking import Stocking, stocking
from tests.inventory.support import PACKS, Inventory, Shop

PATH = "/console/sync"


@pytest.fixture
async def pooled(merchant: Stocking) -> Stocking:
    """The merchant, whose honey is in a pool that the platform follows."""
    await follow(merchant)
    return merchant


async def follow(merchant: Stocking) -> None:
    scene = merchant.at_platform
    made = await merchant.shop.pool(50, name="<b>Honey</b>", unit="jars", members=PACKS)
    scene.pool_id = made["id"]
    await scene.attend()
    await scene.rested()


async def test_the_state_is_shown(pooled: Stocking) -> None:
    text = said(await pooled.get(PATH))

    assert "Your shop is connected. Numbers at the platform that pools set 3 Yet to be set 0" in text
    assert "From a sale to the last number no sale in the last hour" in text
    assert "As far as is known, the platform has what your pools say." in text
    assert "Each location gets all that can be sold. Warehouse" in text
    assert "Done at" in text
    assert "10 lines." in text


async def test_the_lag_of_sales_is_shown(pooled: Stocking) -> None:
    await pooled.inventory.sql(
        "insert into sync_lags (shop_id, pushed_at, seconds) values (%(id)s, now(), 0.5)", id=pooled.shop.id
    )

    assert "half of the time within 0.5 s 99 times of 100 within 0.5 s" in said(await pooled.get(PATH))


async def test_a_comparison_shows_what_is_different_and_then_handles_it(pooled: Stocking) -> None:
    pooled.at_platform.count("12-pack", 6)
    form = {"pool_id": str(pooled.at_platform.pool_id)}

    shown = await pooled.send(PATH, do="reconcile", **form)

    assert "The platform has 6, the pool says 4." in said(shown)
    assert "The pool takes over what was changed at the platform." in said(shown)
    assert "<b>Honey" not in shown.text
    assert await pooled.shop.on_hand(pooled.at_platform.pool_id) == 50
    done = await pooled.confirm(shown, PATH, sure="yes")
    assert (done.status_code, done.headers["location"]) == (303, pooled.at(PATH))
    await pooled.at_platform.attend()
    assert await pooled.shop.on_hand(pooled.at_platform.pool_id) == 74
    assert "There is nothing to do." in said(await pooled.send(PATH, do="reconcile", **form))


async def test_what_is_parked_is_shown_with_its_reason_and_set_again_after_a_question(pooled: Stocking) -> None:
    await pooled.inventory.sql("update levels set parked = '<i>odd</i>' where target = 8")
    page = await pooled.get(PATH)
    assert "is not set until you ask for it: <i>odd</i>" in said(page)
    assert "<i>odd" not in page.text

    shown = await pooled.send(PATH, do="resync", pool_id=str(pooled.at_platform.pool_id))

    assert "3 numbers are set to what the pool says" in said(shown)
    assert (await pooled.shop.call("get_sync_status"))["parked"] == 1
    assert (await pooled.confirm(shown, PATH, sure="yes")).status_code == 303
    assert (await pooled.shop.call("get_sync_status"))["parked"] == 0


async def test_a_platform_that_does_not_answer_is_said_to(pooled: Stocking) -> None:
    form = {"do": "reconcile", "pool_id": str(pooled.at_platform.pool_id)}
    pooled.at_platform.platform.plan(Fault("down", "ReadLevels"))

    down = await pooled.send(PATH, **form)
    await pooled.inventory.sql("delete from platform_tokens")
    unconnected = await pooled.send(PATH, **form)

    assert (down.status_code, down.headers["retry-after"]) == (503, "5")
    assert unconnected.status_code == 409
    assert "retry-after" not in unconnected.headers
    assert "The platform did not answer. Nothing was changed" in said(down)
    assert "That needs the platform" in said(unconnected)


async def test_the_cart_check_says_whether_it_is_granted(pooled: Stocking) -> None:
    asked = await pooled.get(PATH)
    await pooled.inventory.sql("update installs set scopes = scopes || array['write_products']")
    granted = await pooled.get(PATH)

    assert 'target="_top" href="/auth?shop=ada.myshopify.com&amp;cart_check=1"' in asked.text
    assert "It is granted." in said(granted)


async def test_pools_of_another_shop_are_not_found(pooled: Stocking) -> None:
    other = await pooled.inventory.shop()
    await other.pool(1)
    theirs = await other.pool(7, name="Theirs", members=PACKS)

    refused = [
        await pooled.send(PATH, do=do, pool_id=pool_id, **sure)
        for do in ("reconcile", "resync")
        for pool_id, sure in (
            (str(theirs["id"]), {}),
            (str(theirs["id"]), {"sure": "yes", "once": "x" * 22}),
            ("x", {}),
        )
    ]

    assert {each.status_code for each in refused} == {404}
    assert "Theirs" not in said(await pooled.get(PATH))
    assert (await pooled.send(PATH, do="sell", pool_id="1")).status_code == 400


async def test_a_shop_without_a_platform_sees_that_it_has_none(inventory: Inventory, shop: Shop) -> None:
    owner = Owner(inventory)
    await own(inventory, shop)
    async with owner.http:
        await owner.sign_in()

        text = said(await owner.get(PATH))

    assert "Your shop is not connected with the platform." in text
    assert "There was none yet." in text
    assert "It works in shops that are connected." in text


async def test_the_page_is_german_for_germans(settings: Settings) -> None:
    async with stocking(settings, "de") as merchant:
        await follow(merchant)

        text = said(await merchant.get(PATH))
        asked = await merchant.send(PATH, do="resync", pool_id=str(merchant.at_platform.pool_id))

    assert text.startswith("Abgleich mit der Plattform Ihr Shop ist verbunden.")
    assert said(asked).startswith("Die Zahlen neu setzen?")
