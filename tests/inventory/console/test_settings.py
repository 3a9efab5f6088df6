"""The settings of a merchant: the way to the key, the cart check, and mails about low stock."""

from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import Shop
from tests.helpers.platform_shop import DOMAIN
from tests.inventory.console.merchant_scene import Admin


async def test_the_settings_lead_to_the_key_which_is_on_the_page_of_agents(admin: Admin, own_shop: Shop) -> None:
    page = await admin.get("/console/settings")

    assert f'href="{admin.address_of("/console/agents").replace("&", "&amp;")}"' in page.text
    assert own_shop.key not in page.text
    assert f'<code id="key">{own_shop.key}</code>' in (await admin.get("/console/agents")).text


async def test_the_settings_say_that_people_signed_in_by_the_platform_get_no_mails(
    admin: Admin, own_shop: Shop
) -> None:
    text = main_text(await admin.get("/console/settings"))

    assert "They are sent to people who sign in to your shop with an address." in text


async def test_the_cart_check_is_granted_and_withdrawn_from_the_settings(admin: Admin, own_shop: Shop) -> None:
    page = await admin.get("/console/settings")
    await admin.inventory.sql("update installs set scopes = scopes || array['write_products']")
    granted = await admin.get("/console/settings")

    grant, withdraw = (f'target="_top" href="/auth?shop={DOMAIN}&amp;cart_check={wish}"' for wish in (1, 0))
    assert "Your shop asks for your permission first." in main_text(page)
    assert (grant in page.text, withdraw in page.text) == (True, False)
    assert "It knows the numbers of 0 variants" in main_text(granted)
    assert (grant in granted.text, withdraw in granted.text) == (True, True)
