"""The page of holds: it lists them, and releases each."""

from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import PACKS, SIX_PACK
from tests.helpers.platform_shop import PlatformSource
from tests.inventory.console.merchant_at_platform import MerchantAtPlatform, open_merchant_at_platform

PATH = "/console/holds"


async def test_a_hold_is_shown_and_released_once(merchant: MerchantAtPlatform) -> None:
    pool = await merchant.shop.create_pool(50, name="<b>Honey</b>", unit="jars", members=PACKS)
    hold = await merchant.shop.call("hold_quantity", variant_gid=SIX_PACK, quantity=2, reference="<i>cart</i> 7")

    page = await merchant.get(PATH)
    done = await merchant.send(PATH, hold_id=str(hold["hold"]["id"]))

    assert "12 jars of <b>Honey</b> Reference: <i>cart</i> 7 Ends by itself" in main_text(page)
    assert "Anyone can buy it again at once, and the buyer loses it. End hold hold" in main_text(page)
    assert "<b>Honey" not in page.text
    assert "<i>cart" not in page.text
    path = f"/console/pools/{pool['id']}"
    assert f'href="{merchant.address_of(path)}"' in page.text
    assert "An agent put 12 jars on hold · then 12 on hold" in main_text(await merchant.get(path))
    assert (done.status_code, done.headers["location"]) == (303, merchant.address_of(PATH))
    assert (await merchant.shop.call("get_pool", pool_id=pool["id"]))["held"] == 0
    assert (await merchant.shop.entries())[0]["actor"] == "staff"
    assert "Nothing is on hold. Agents and programs can put stock on hold" in main_text(await merchant.get(PATH))


async def test_a_hold_that_ended_meanwhile_is_reported_as_ended(merchant: MerchantAtPlatform) -> None:
    pool = await merchant.shop.create_pool(50)
    hold = (await merchant.shop.call("hold_quantity", pool_id=pool["id"], quantity=2))["hold"]["id"]
    await merchant.shop.call("hold_quantity", pool_id=pool["id"], quantity=1)
    await merchant.shop.call("release_hold", hold_id=hold)

    again = await merchant.send(PATH, hold_id=str(hold))

    assert again.status_code == 409
    assert "This hold has ended already." in main_text(again)


async def test_holds_of_another_shop_are_not_found(merchant: MerchantAtPlatform) -> None:
    our_pool = await merchant.shop.create_pool(50)
    await merchant.shop.call("hold_quantity", pool_id=our_pool["id"], quantity=1)
    other = await merchant.inventory.create_shop()
    pool = await other.create_pool(50)
    await other.call("hold_quantity", pool_id=pool["id"], quantity=1)
    hold = (await other.call("hold_quantity", pool_id=pool["id"], quantity=2))["hold"]["id"]

    refusals = [await merchant.send(PATH, hold_id=id) for id in (str(hold), "x", "")]

    assert [response.status_code for response in refusals] == [404, 404, 404]
    assert (await other.call("get_pool", pool_id=pool["id"]))["held"] == 3
    assert "2 units" not in main_text(await merchant.get(PATH))


async def test_many_holds_are_shown_a_page_at_a_time_in_german(platform_source: PlatformSource) -> None:
    async with open_merchant_at_platform(platform_source, "de") as merchant:
        pool = await merchant.shop.create_pool(50, name="Honig", unit="Gläser")
        for number in range(21):
            await merchant.shop.call("hold_quantity", pool_id=pool["id"], quantity=1 + (number == 0))

        first = await merchant.get(PATH)
        following = first.text.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0]
        second = await merchant.http.get(following.replace("&amp;", "&"))

        assert main_text(first).count("1 Glas von Honig") == 20
        assert main_text(second).count("2 Gläser von Honig") == 1
        assert "Reservierung beenden" in main_text(second)
