"""A merchant's first run: pools are suggested for imported products, and each is made by a click."""

import html
import re

from tests.inventory.console.scene import SAME_SITE, main_text
from tests.inventory.console.signing_in import Owner, add_merchant
from tests.inventory.console.stocking import Stocking
from tests.inventory.support import Inventory, Shop

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


async def test_a_merchant_without_pools_makes_one_from_a_product(merchant: Stocking) -> None:
    first = await merchant.get()
    assert "Make pools from your products" in main_text(first)

    page = await merchant.get("/console/suggestions")

    text = main_text(page)
    assert steps(page.text) == {"Import your products": "done", "Make pools from them": "present", LAST_STEP: ""}
    assert "Honey jars · Single 50" in text
    assert "tea" not in text
    [form] = forms(page.text)
    assert (form["name"], form["quantity"]) == ("Honey jars", "50")
    refused = await merchant.http.post(
        merchant.at("/console/suggestions"), data={**form, "quantity": "many"}, headers=SAME_SITE
    )
    assert refused.status_code == 422
    assert "Enter a number, such as 50." in main_text(refused)

    made = await merchant.http.post(
        merchant.at("/console/suggestions"), data={**form, "quantity": "48"}, headers=SAME_SITE
    )

    assert made.status_code == 303, made.text
    after = await merchant.http.get(made.headers["location"])
    assert "Honey jars is a pool now." in main_text(after)
    reason = "Nothing else to suggest Read: 2 products with 5 variants. They were imported from the platform today,"
    assert reason in main_text(after)
    assert "1 of these goods is sold in packs of several sizes, and it draws on a pool already." in main_text(after)
    assert steps(after.text) == {"Import your products": "done", "Make pools from them": "done", LAST_STEP: "present"}
    assert "/admin/themes/current/editor?template=product&amp;addAppBlockId=" in after.text
    [pool] = (await merchant.shop.call("list_pools"))["pools"]
    stored = await merchant.shop.call("get_pool", pool_id=pool["id"])
    assert [(member["title"], member["sku"], member["units_per_sale"]) for member in stored["members"]] == [
        ("Honey jars · Single", "HONEY-1", 1),
        ("Honey jars · 6-pack", "HONEY-6", 6),
        ("Honey jars · 12-pack", "HONEY-12", 12),
    ]
    assert stored["on_hand"] == 48


async def test_a_name_that_a_pool_has_is_refused_and_nothing_is_made(merchant: Stocking) -> None:
    await merchant.shop.pool(3, name="Honey jars")
    [form] = forms((await merchant.get("/console/suggestions")).text)

    refused = await merchant.http.post(merchant.at("/console/suggestions"), data=form, headers=SAME_SITE)

    assert refused.status_code == 409
    assert "Another pool has this name." in main_text(refused)
    assert len((await merchant.shop.call("list_pools"))["pools"]) == 1


async def test_products_are_imported_by_a_click_that_two_clicks_do_not_begin_twice(merchant: Stocking) -> None:
    await merchant.inventory.sql("delete from catalog_variants")
    await merchant.inventory.sql("update catalogs set finished_at = null, error = 'The platform was gone.'")
    number = "select import_id, error from catalogs"
    [(failed, _)] = await merchant.inventory.sql(number)

    page = await merchant.get("/console/suggestions")
    assert "No products are imported yet. The platform was gone." in main_text(page)
    assert steps(page.text) == {"Import your products": "present", "Make pools from them": "", LAST_STEP: ""}
    await merchant.send("/console/suggestions", do="import")
    assert await merchant.inventory.sql(number) == [(failed + 1, None)]
    assert "Your products are being imported." in main_text(await merchant.get("/console/suggestions"))
    assert "Import products now" not in main_text(await merchant.get("/console/sync"))
    await merchant.send("/console/sync", do="import")
    assert await merchant.inventory.sql(number) == [(failed + 1, None)]

    await merchant.at_platform.imported()

    assert "Read: 2 products with 5 variants." in main_text(await merchant.get("/console/suggestions"))
    begun = await merchant.send("/console/sync", do="import")
    assert begun.status_code == 303
    assert await merchant.inventory.sql(number) == [(failed + 2, None)]


async def test_a_shop_without_the_platform_is_told_why_nothing_can_be_imported(
    inventory: Inventory, shop: Shop
) -> None:
    await add_merchant(inventory, shop)
    owner = await Owner(inventory).sign_in()

    text = main_text(await owner.get("/console/suggestions"))
    assert "No products are imported yet." in text
    assert "your shop is not connected with it" in text
    assert "Import products now" not in text
    refused = await owner.send("/console/sync", do="import")
    assert refused.status_code == 409
    assert "your shop is not connected with it" in main_text(refused)
