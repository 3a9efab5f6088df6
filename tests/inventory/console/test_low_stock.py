"""The page of pools that run low."""

import re

from tests.helpers.form_browser import main_text
from tests.helpers.platform_shop import PlatformSource
from tests.inventory.console.merchant_at_platform import MerchantAtPlatform, open_merchant_at_platform

PATH = "/console/low-stock"


async def test_pools_at_their_limit_are_shown_with_how_long_they_last(merchant: MerchantAtPlatform) -> None:
    low = await merchant.shop.create_pool(66, name="<b>Honey</b>", unit="jars", low_stock_at=10)
    await merchant.shop.call("adjust_pool_quantity", pool_id=low["id"], delta=-56)
    await merchant.shop.create_pool(66, name="Tea", low_stock_at=10)

    page = await merchant.get(PATH)

    path = f"/console/pools/{low['id']}"
    assert "<b>Honey</b> 10 jars can be sold low at 10 Days left: about 5 days 2 jars a day" in main_text(page)
    assert "Tea" not in main_text(page)
    assert "<b>Honey" not in page.text
    assert f'href="{merchant.address_of(path)}"' in page.text


async def test_goods_are_added_to_a_pool_that_runs_low_with_what_happened_chosen(merchant: MerchantAtPlatform) -> None:
    low = await merchant.shop.create_pool(9, name="Honey", low_stock_at=10)
    page = await merchant.get(PATH)
    address = page.text.partition("Add goods")[0].rpartition('href="')[2].partition('"')[0].replace("&amp;", "&")

    form = await merchant.http.get(address)

    assert re.findall(r'name="way" value="(\w+)"(?: id="way")? checked', form.text) == ["restock"]
    await merchant.send(f"/console/pools/{low['id']}/adjust", way="restock", delta="12")
    assert "Nothing is running low." in main_text(await merchant.get(PATH))


async def test_a_threshold_in_the_query_overrides_that_of_the_pools(merchant: MerchantAtPlatform) -> None:
    await merchant.shop.create_pool(66, name="Tea")

    nothing = main_text(await merchant.get(PATH))
    assert "Nothing is running low. A pool is listed here, and you get an e-mail, when it falls to its" in nothing
    assert "No pool is as low as that." in main_text(await merchant.get(f"{PATH}?threshold=1"))
    assert "Tea 66 units can be sold It has no limit." in main_text(await merchant.get(f"{PATH}?threshold=66"))


async def test_a_shop_without_pools_is_led_to_make_some(merchant: MerchantAtPlatform) -> None:
    page = await merchant.get(PATH)

    assert "You have no pools yet." in main_text(page)
    assert f'href="{merchant.address_of("/console/suggestions")}"' in page.text


async def test_the_pool_closest_to_its_limit_is_named_if_no_pool_is_low(merchant: MerchantAtPlatform) -> None:
    await merchant.shop.create_pool(66, name="Tea", low_stock_at=10)
    await merchant.shop.create_pool(20, name="Jam", low_stock_at=12)
    await merchant.shop.create_pool(1, name="Without a limit")

    assert "Closest: Jam , 20 units left, low at 12." in main_text(await merchant.get(PATH))


async def test_an_invalid_number_has_its_message_beside_the_field(merchant: MerchantAtPlatform) -> None:
    page = await merchant.get(f"{PATH}?threshold=many&days_of_cover=0")

    assert page.status_code == 422
    assert page.text.count(' aria-invalid="true"') == 2
    assert "Nothing is running low." not in main_text(page)


async def test_many_low_pools_are_paged_and_those_of_other_shops_are_not_listed(
    platform_source: PlatformSource,
) -> None:
    async with open_merchant_at_platform(platform_source, "de") as merchant:
        await (await merchant.inventory.create_shop()).create_pool(0, name="Anders", low_stock_at=5)
        for number in range(51):
            await merchant.shop.create_pool(0, name=f"Honig {number}", low_stock_at=5)

        first = await merchant.get(f"{PATH}?threshold=4")
        following = first.text.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0]
        second = await merchant.http.get(following.replace("&amp;", "&"))

        assert first.text.count('<th scope="row"') == 50
        assert "Honig 50 0 Einheiten verfügbar ausverkauft Warnung ab 5" in main_text(second)
        assert "Anders" not in main_text(first)
