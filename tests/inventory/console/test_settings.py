"""Settings with API access: the key is shown, and made anew; the old one is out at once."""

import re

import pytest

from holdfast.inventory.agents.access import SHOWN_CHARACTERS
from tests.inventory.console.scene import FOREIGN, Admin, hidden, main_text
from tests.inventory.installs.merchants import DOMAIN
from tests.inventory.support import Shop

ALL = ("read_inventory", "write_inventory", "read_pools", "write_pools")


@pytest.fixture
async def shop(admin: Admin) -> Shop:
    """The shop, and its agent with the key that the page shows."""
    await admin.open()
    return await admin.scene.shop(await shown_key(admin))


async def shown_key(admin: Admin) -> str:
    """The key that the page shows."""
    page = await admin.get("/console/settings")
    assert page.status_code == 200, page.text
    match = re.search(r'<code id="key">([^<]*)</code>', page.text)
    assert match, page.text
    return match[1]


async def test_the_key_of_the_shop_is_shown_and_works(admin: Admin, shop: Shop) -> None:
    page = await admin.get("/console/settings")

    assert await shop.call("list_pools") == {"pools": [], "next_cursor": None}
    assert [scope for scope in ALL if f"<code>{scope}</code>" in page.text] == [*ALL]
    assert f"{admin.inventory.settings.base_url}/mcp" in page.text
    assert page.headers["cache-control"] == "no-store"


async def test_a_new_key_has_the_scopes_that_were_chosen_and_the_old_one_is_out_at_once(
    admin: Admin, shop: Shop
) -> None:
    old = shop.key
    identity = await shop.http.post("/api/agent/identity", json={"type": "service_auth", "api_key": old})
    form = await admin.get("/console/settings/key")
    # What only looks is suggested, and the page says what the present key allows.
    assert re.findall(r'name="(\w+)" value="on" checked>', form.text) == ["read_inventory", "read_pools"]
    assert form.text.count("The key that you have now allows it.") == len(ALL)
    assert "Your shop has one key, so the new one replaces it." in main_text(form)
    assert (
        "The key that you have now also allows the following, and it is not chosen below:"
        " Sell, count, hold and move stock. Make and change pools, and link variants."
    ) in main_text(form)

    done = await admin.send("/console/settings/key", read_pools="on")

    assert (done.status_code, done.headers["location"]) == (303, admin.at("/console/settings"))
    for credential in (old, identity.json()["identity_assertion"]):
        shop.key = credential
        refused = await shop.ask("list_pools", {})
        assert refused.status_code == 401
    shop.key = await shown_key(admin)
    assert shop.key != old
    assert (await shop.ask("list_pools", {})).status_code == 200
    assert (await shop.ask("get_availability", {})).status_code == 403
    page = await admin.get("/console/settings")
    assert old not in page.text
    assert f"<code>{old[:SHOWN_CHARACTERS]}…</code>" in page.text


async def test_asking_for_a_new_key_changes_nothing_until_it_is_confirmed(admin: Admin, shop: Shop) -> None:
    token = hidden(await admin.get("/console/settings/key"), "token")

    without_scopes = await admin.send("/console/settings/key")
    foreign = await admin.http.post(
        admin.at("/console/settings/key"), data={"token": token, "read_pools": "on"}, headers=FOREIGN
    )
    forged = await admin.http.post(admin.at("/console/settings/key"), data={"token": "1-x", "read_pools": "on"})

    assert without_scopes.status_code == 422
    assert "Choose what the key allows, at least one thing." in main_text(without_scopes)
    assert (foreign.status_code, forged.status_code) == (403, 403)
    assert await shown_key(admin) == shop.key


async def test_what_agents_did_is_shown_by_key(admin: Admin, shop: Shop) -> None:
    assert "No agent is connected with it. No recent change was made with it." in main_text(
        await admin.get("/console/settings")
    )
    await shop.http.post("/api/agent/identity", json={"type": "service_auth", "api_key": shop.key})
    pool = await shop.pool(10)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-1, reason="<b>broken</b>")

    text = main_text(await admin.get("/console/settings"))

    assert "An agent has been connected with it since" in text
    assert re.search(r"2 recent changes were made with it, the last at .*: adjust_pool_quantity , create_pool", text)


async def test_a_shop_sees_its_own_key_alone(admin: Admin, shop: Shop) -> None:
    other = await admin.inventory.shop()
    [(before,)] = await admin.inventory.sql("select count(*) from api_keys")

    await admin.send("/console/settings/key", **dict.fromkeys(ALL, "on"))

    assert (await other.ask("list_pools", {})).status_code == 200
    assert await admin.inventory.sql("select count(*) from api_keys") == [(before + 1,)]
    assert other.key not in (await admin.get("/console/settings")).text


async def test_a_key_that_cannot_be_read_any_more_can_be_replaced(admin: Admin, shop: Shop) -> None:
    await admin.inventory.sql("update api_keys set sealed = 'x'")

    page = await admin.get("/console/settings")

    assert "The key cannot be read any more" in main_text(page)
    await admin.send("/console/settings/key", read_pools="on")
    assert await shown_key(admin) != shop.key


async def test_a_shop_without_a_key_can_have_one_made(admin: Admin, shop: Shop) -> None:
    await admin.inventory.sql("delete from api_keys")

    page = await admin.get("/console/settings")

    assert "Your shop has no key." in main_text(page)
    form = main_text(await admin.get("/console/settings/key"))
    assert "replaces it" not in form
    assert "also allows" not in form
    await admin.send("/console/settings/key", **dict.fromkeys(ALL, "on"))
    assert (await shown_key(admin)).startswith("hf_")


async def test_people_from_the_platform_get_no_mails(admin: Admin, shop: Shop) -> None:
    text = main_text(await admin.get("/console/settings"))

    assert "They are sent to people who sign in to your shop with an address." in text


async def test_the_cart_check_is_granted_from_the_settings_and_taken_back(admin: Admin, shop: Shop) -> None:
    page = await admin.get("/console/settings")
    await admin.inventory.sql("update installs set scopes = scopes || array['write_products']")
    granted = await admin.get("/console/settings")

    grant, withdraw = (f'target="_top" href="/auth?shop={DOMAIN}&amp;cart_check={wish}"' for wish in (1, 0))
    assert "It needs a permission that you have not given yet." in main_text(page)
    assert (grant in page.text, withdraw in page.text) == (True, False)
    assert "It is granted." in main_text(granted)
    assert (grant in granted.text, withdraw in granted.text) == (True, True)
