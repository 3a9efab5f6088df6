"""The settings of a merchant: the key, the cart check, and mails about low stock."""

from tests.helpers.form_browser import main_text
from tests.helpers.platform_shop import DOMAIN
from tests.inventory.console.merchant_scene import Admin
from tests.inventory.support import Shop


async def test_the_key_is_copied_or_made_under_api_access(admin: Admin, own_shop: Shop) -> None:
    page = await admin.get("/console/settings")

    assert "API access" in main_text(page)
    assert f'<code id="key">{own_shop.key}</code>' in page.text
    assert admin.at("/console/agents/key").replace("&", "&amp;") in page.text


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
    assert "Your shop asks you to allow it once." in main_text(page)
    assert (grant in page.text, withdraw in page.text) == (True, False)
    assert "It knows the numbers of 0 variants" in main_text(granted)
    assert (grant in granted.text, withdraw in granted.text) == (True, True)
