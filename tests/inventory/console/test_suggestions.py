"""A merchant's first run: pools are suggested for imported products, and each is made by a click."""

import html
import re

from tests.inventory.console.scene import SAME_SITE, main_text
from tests.inventory.console.stocking import Stocking


def forms(page: str) -> list[dict[str, str]]:
    """The fields of each form of suggestions."""
    return [
        {
            html.unescape(name): html.unescape(value)
            for name, value in re.findall(r'<input [^>]*?name="([^"]*)"[^>]*? value="([^"]*)"', form)
        }
        for form in re.findall(r'<form class="form" method="post".*?</form>', page, re.DOTALL)
    ]


async def test_a_merchant_without_pools_makes_one_from_a_product(merchant: Stocking) -> None:
    first = await merchant.get()
    assert "Make pools from your products" in main_text(first)

    page = await merchant.get("/console/suggestions")

    text = main_text(page)
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
    assert "That was all." in main_text(after)
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
