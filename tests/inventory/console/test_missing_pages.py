"""A page that does not exist keeps the navigation of the merchants' console, and so does the account."""

import httpx2
import pytest

from tests.inventory.console.signing_in import Owner, add_merchant
from tests.inventory.support import Inventory, Shop

NAVIGATION = ('<a href="/console"', '<a href="/console/holds"', '<a href="/account"', "Sign out ")


async def page_of(inventory: Inventory, shop: Shop, path: str) -> httpx2.Response:
    await add_merchant(inventory, shop)
    owner = Owner(inventory)
    await owner.sign_in()
    return await owner.get(path)


@pytest.mark.parametrize(
    "path", ["/console/nothing", "/console/pools/999999", "/console/pools/1/none", "/account/none"]
)
async def test_a_missing_page_keeps_the_navigation_of_those_who_are_signed_in(
    inventory: Inventory, shop: Shop, path: str
) -> None:
    page = await page_of(inventory, shop, path)

    assert page.status_code == 404
    for entry in NAVIGATION:
        assert entry in page.text


async def test_others_see_a_missing_page_without_it(inventory: Inventory) -> None:
    page = await Owner(inventory).get("/console/nothing")

    assert (page.status_code, "There is no such page." in page.text) == (404, True)
    assert "/console/holds" not in page.text


async def test_the_account_keeps_the_navigation(inventory: Inventory, shop: Shop) -> None:
    page = await page_of(inventory, shop, "/account")

    for entry in NAVIGATION:
        assert entry in page.text
