"""A merchant's first run: pools are suggested for imported products, and each is made by a click."""

import html
import re

from holdfast_demo.shopify.shops import NewVariant
from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import Inventory, Shop
from tests.helpers.platform_shop import DOMAIN, PlatformSource
from tests.inventory.console.merchant_at_platform import MerchantAtPlatform, open_merchant_at_platform
from tests.inventory.console.merchant_scene import SAME_SITE
from tests.inventory.console.signing_in import Owner, add_merchant
from tests.inventory.sync.platform_rows import fail_first_import

MAKE_STEP = "Make pools from your products"
LAST_STEP = "Show the live number in your shop"


def forms(page: str) -> list[dict[str, str]]:
    """The fields of each form of suggestions."""
    return [
        {
            html.unescape(name): html.unescape(value)
            for name, value in re.findall(r'<input [^>]*?name="([^"]*)"[^>]*? value="([^"]*)"', form)
        }
        for form in re.findall(r'<form class="form" method="post".*?</form>', page, re.DOTALL)
    ]


def steps(page: str) -> dict[str, str]:
    """Which steps of the first run are done, and which is the present one."""
    items = re.findall(r'<li(| aria-current="step"| class="done")>([^<]*)</li>', page.partition('class="steps"')[2])
    return {html.unescape(name): "present" if "current" in mark else "done" * bool(mark) for mark, name in items[:3]}


async def test_a_merchant_without_pools_makes_one_from_a_suggestion(merchant: MerchantAtPlatform) -> None:
    first = await merchant.get()
    assert "Make from products" in main_text(first)

    page = await merchant.get("/console/suggestions")

    text = main_text(page)
    assert steps(page.text) == {"Import your products": "done", MAKE_STEP: "present", LAST_STEP: ""}
    assert "Single 50 50 6-pack 8 8 12-pack 4 4" in text
    assert "tea" not in text
    [form] = forms(page.text)
    assert (form["name"], form["quantity"]) == ("Honey jars", "50")
    assert '<details id="rename-1">' in page.text
    refusal = await merchant.http.post(
        merchant.address_of("/console/suggestions"), data={**form, "quantity": "many"}, headers=SAME_SITE
    )
    assert refusal.status_code == 422
    assert "Enter a number, such as 50." in main_text(refusal)

    times = "\N{MULTIPLICATION SIGN}"
    assert f"All packs count the same 50 units. So 8 {times} 6 and 4 {times} 12 are not added." in text
    assert "No number in your shop changes." in text
    changed = await merchant.http.post(
        merchant.address_of("/console/suggestions"), data={**form, "quantity": "47"}, headers=SAME_SITE
    )
    assert changed.status_code == 200
    assert "Single 50 47 6-pack 8 7 12-pack 4 3 You have typed 47." in main_text(changed)
    assert (await merchant.shop.call("list_pools"))["pools"] == []
    [form] = forms(changed.text)

    made = await merchant.http.post(merchant.address_of("/console/suggestions"), data=form, headers=SAME_SITE)

    assert made.status_code == 303, made.text
    after = await merchant.http.get(made.headers["location"])
    assert "Honey jars is a pool now." in main_text(after)
    reason = "All your packs share their stock. Read: 2 products with 5 variants. They were imported"
    assert reason in main_text(after)
    assert "1 of these goods is sold in packs of several sizes, and has a pool already." in main_text(after)
    assert steps(after.text) == {"Import your products": "done", MAKE_STEP: "done", LAST_STEP: "present"}
    assert "/admin/themes/current/editor?template=product&amp;addAppBlockId=" in after.text
    [pool] = (await merchant.shop.call("list_pools"))["pools"]
    stored = await merchant.shop.call("get_pool", pool_id=pool["id"])
    assert [(member["title"], member["sku"], member["units_per_sale"]) for member in stored["members"]] == [
        ("Honey jars · Single", "HONEY-1", 1),
        ("Honey jars · 6-pack", "HONEY-6", 6),
        ("Honey jars · 12-pack", "HONEY-12", 12),
    ]
    assert stored["on_hand"] == 47


SOAP = (NewVariant("Single", stock=60), NewVariant("4-pack", stock=5), NewVariant("Dozen", stock=2))


def fields_of_all(page: str) -> dict[str, str]:
    """The hidden fields of the form that accepts all suggestions."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.partition('class="all ')[2]))


async def import_products(merchant: MerchantAtPlatform) -> None:
    """Import what the platform has now."""
    await merchant.send("/console/sync", do="import")
    await merchant.at_platform.finish_import()


async def test_a_suggested_pool_begins_with_the_sum_that_was_shown(merchant: MerchantAtPlatform) -> None:
    merchant.at_platform.platform.add_product(DOMAIN, "Lavender soap", SOAP)
    await import_products(merchant)
    page = await merchant.get("/console/suggestions")
    assert "Single 60 104 4-pack 5 26 Dozen 2 8 Units in stock: 60 + 5" in main_text(page)
    [_, form] = forms(page.text)

    await merchant.http.post(merchant.address_of("/console/suggestions"), data=form, headers=SAME_SITE)

    [pool] = (await merchant.shop.call("list_pools"))["pools"]
    assert (pool["name"], pool["on_hand"]) == ("Lavender soap", 104)
    await merchant.at_platform.sync_due()
    soap = [variant for variant in merchant.at_platform.platform.variants(DOMAIN) if "soap" in variant.product_title]
    assert [merchant.at_platform.platform.available(DOMAIN, variant.id) for variant in soap] == [104, 26, 8]


async def test_a_sale_since_the_page_was_shown_is_named_before_a_pool_is_made(merchant: MerchantAtPlatform) -> None:
    [form] = forms((await merchant.get("/console/suggestions")).text)
    merchant.at_platform.count("Single", 49)
    await import_products(merchant)

    outdated = await merchant.http.post(merchant.address_of("/console/suggestions"), data=form, headers=SAME_SITE)

    assert outdated.status_code == 200
    assert "Your shop has other numbers than a moment ago." in main_text(outdated)
    assert "All packs count the same 49 units." in main_text(outdated)
    assert (await merchant.shop.call("list_pools"))["pools"] == []
    [form] = forms(outdated.text)
    await merchant.http.post(merchant.address_of("/console/suggestions"), data=form, headers=SAME_SITE)
    assert [pool["on_hand"] for pool in (await merchant.shop.call("list_pools"))["pools"]] == [49]


async def test_all_suggestions_are_accepted_by_one_click_below_what_changes(merchant: MerchantAtPlatform) -> None:
    merchant.at_platform.platform.add_product(DOMAIN, "Lavender soap", SOAP)
    await import_products(merchant)
    page = await merchant.get("/console/suggestions")
    changes = "3 numbers in your shop change: Lavender soap · Single 60, then 104 Lavender soap · 4-pack 5, then 26"
    assert changes in main_text(page)
    all_of_them = fields_of_all(page.text)

    outdated = {**all_of_them, "numbers": "0" * 64, "do": "all"}
    refusal = await merchant.http.post(merchant.address_of("/console/suggestions"), data=outdated, headers=SAME_SITE)
    assert "Your shop has other numbers than a moment ago." in main_text(refusal)
    assert (await merchant.shop.call("list_pools"))["pools"] == []
    for _ in range(2):  # the second click changes nothing
        await merchant.http.post(
            merchant.address_of("/console/suggestions"), data={**all_of_them, "do": "all"}, headers=SAME_SITE
        )

    pools = (await merchant.shop.call("list_pools"))["pools"]
    assert [(pool["name"], pool["on_hand"]) for pool in pools] == [("Honey jars", 50), ("Lavender soap", 104)]


async def test_a_click_to_accept_all_names_pools_with_equal_names(merchant: MerchantAtPlatform) -> None:
    merchant.at_platform.platform.add_product(DOMAIN, "Lavender soap", SOAP)
    await import_products(merchant)
    await merchant.shop.create_pool(3, name="Honey jars")
    page = await merchant.get("/console/suggestions")
    fields = fields_of_all(page.text)

    done = await merchant.http.post(
        merchant.address_of("/console/suggestions"), data={**fields, "do": "all"}, headers=SAME_SITE
    )

    assert "Other pools have these names: Honey jars. The rest are pools now." in main_text(done)
    pools = (await merchant.shop.call("list_pools"))["pools"]
    assert [(pool["name"], pool["on_hand"]) for pool in pools] == [("Honey jars", 3), ("Lavender soap", 104)]


async def test_pictures_of_products_come_from_the_platform_and_from_nowhere_else(
    platform_source: PlatformSource,
) -> None:
    async with open_merchant_at_platform(platform_source) as merchant:
        settings = merchant.inventory.settings
        files = settings.platform_address.partition("/{shop}")[0]
        page = await merchant.get("/console/suggestions")
        # The platform's servers of files are where its script comes from.
        assert "https://cdn.shopify.com" in page.headers["content-security-policy"].partition("img-src")[2]
        assert '<img class="product"' not in page.text
        [(picture,)] = await merchant.inventory.sql(
            "select distinct picture from catalog_variants where title = 'Single'"
        )
        assert picture.startswith(f"{files}/{DOMAIN}/files/products/")
        drawn = await merchant.scene.browser.get(picture)
        assert (drawn.status_code, drawn.headers["content-type"]) == (200, "image/svg+xml")
        await merchant.inventory.sql("update catalog_variants set picture = 'https://cdn.shopify.com/jar.png'")
        assert 'src="https://cdn.shopify.com/jar.png" alt=""' in (await merchant.get("/console/suggestions")).text
        await merchant.inventory.sql(
            "update catalog_variants set picture = 'https://cdn.shopify.com.evil.example/jar.png'"
        )
        assert '<img class="product"' not in (await merchant.get("/console/suggestions")).text


async def test_a_name_that_a_pool_has_is_refused_and_nothing_is_made(merchant: MerchantAtPlatform) -> None:
    await merchant.shop.create_pool(3, name="Honey jars")
    [form] = forms((await merchant.get("/console/suggestions")).text)

    refusal = await merchant.http.post(merchant.address_of("/console/suggestions"), data=form, headers=SAME_SITE)

    assert refusal.status_code == 409
    assert "Another pool has this name." in main_text(refusal)
    assert '<details id="rename-1" open>' in refusal.text
    assert len((await merchant.shop.call("list_pools"))["pools"]) == 1


async def test_products_are_imported_by_a_click_that_two_clicks_do_not_begin_twice(
    merchant: MerchantAtPlatform,
) -> None:
    await fail_first_import(merchant.inventory, "The platform was gone.")
    number = "select import_id, error from catalogs"
    [(failed, _)] = await merchant.inventory.sql(number)

    page = await merchant.get("/console/suggestions")
    assert "No products imported yet. The platform was gone." in main_text(page)
    assert steps(page.text) == {"Import your products": "present", MAKE_STEP: "", LAST_STEP: ""}
    await merchant.send("/console/suggestions", do="import")
    assert await merchant.inventory.sql(number) == [(failed + 1, None)]
    assert "Your products are being imported." in main_text(await merchant.get("/console/suggestions"))
    assert "Import products now" not in main_text(await merchant.get("/console/sync"))
    await merchant.send("/console/sync", do="import")
    assert await merchant.inventory.sql(number) == [(failed + 1, None)]

    await merchant.at_platform.finish_import()

    assert "Read: 2 products with 5 variants." in main_text(await merchant.get("/console/suggestions"))
    begun = await merchant.send("/console/sync", do="import")
    assert begun.status_code == 303
    assert await merchant.inventory.sql(number) == [(failed + 2, None)]


async def test_a_shop_without_the_platform_reads_why_it_cannot_import_products(
    inventory: Inventory, shop: Shop
) -> None:
    await add_merchant(inventory, shop)
    owner = await Owner(inventory).sign_in()

    text = main_text(await owner.get("/console/suggestions"))
    assert "First connect your shop Then we read your products and suggest which packs share a stock." in text
    assert "Import products now" not in text
    refusal = await owner.send("/console/sync", do="import")
    assert refusal.status_code == 409
    assert "Your shop is not connected yet." in main_text(refusal)
