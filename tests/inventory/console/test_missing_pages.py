"""A page that does not exist keeps the navigation of the merchants' console, and so does the account."""

import httpx2
import pytest

from tests.helpers.inventory_service import Inventory, Shop
from tests.inventory.console.signing_in import Owner, add_merchant

NAVIGATION = ('<a href="/console"', '<a href="/console/holds"', '<a href="/account"', "Sign out ")


async def page_of(inventory: Inventory, shop: Shop, path: str) -> httpx2.Response:
    await add_merchant(inventory, shop)
    owner = Owner(inventory)
    await owner.sign_in()
    return await owner.get(path)


@pytest.mark.parametrize(
    "path", ["/console/nothing", "/console/pools/999999", "/console/pools/1/none", "/account/none"]
)
async def test_a_missing_page_keeps_the_navigation_of_a_signed_in_merchant(
    inventory: Inventory, shop: Shop, path: str
) -> None:
    page = await page_of(inventory, shop, path)

    assert page.status_code == 404
    for entry in NAVIGATION:
        assert entry in page.text


async def test_a_missing_page_has_no_navigation_without_a_session(inventory: Inventory) -> None:
    page = await Owner(inventory).get("/console/nothing")

    assert (page.status_code, "There is no such page." in page.text) == (404, True)
    assert "/console/holds" not in page.text


async def test_the_account_keeps_the_navigation(inventory: Inventory, shop: Shop) -> None:
    page = await page_of(inventory, shop, "/account")

    for entry in NAVIGATION:
        assert entry in page.text


@pytest.mark.parametrize(
    ("link", "path"),
    [
        ("/console/holds)", "/console/holds"),
        ("/console/holds%E2%80%9D.", "/console/holds"),
        ("/console/Holds", "/console/holds"),
        ("/console/hold", "/console/holds"),
        ("/console/pool/1%20here", "/console/pools/1"),
        ("/account.", "/account"),
    ],
)
async def test_a_link_with_characters_appended_leads_to_its_page(
    inventory: Inventory, shop: Shop, link: str, path: str
) -> None:
    page = await page_of(inventory, shop, link)

    assert (page.status_code, page.headers["location"]) == (301, path)


@pytest.mark.parametrize("path", ["/storefront/availability)", "/webhooks)", "/auth/callback)", "/mcp)"])
async def test_a_path_of_the_platform_or_of_agents_is_never_redirected(inventory: Inventory, path: str) -> None:
    answer = await Owner(inventory).get(path)

    assert answer.status_code in {401, 404, 405}
    assert "location" not in answer.headers
