"""The page "Agents" of a merchant: the address and the steps, the key of the shop, and what agents did, with Undo."""

import json
import re

import pytest

from holdfast.inventory.agents.access import KEY_PREFIX_CHARACTERS
from holdfast.inventory.agents.actions import STORED_OPERATIONS
from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import SIX_PACK, Shop
from tests.inventory.console.merchant_scene import FOREIGN, Admin, hidden_field

ALL = {
    "read_inventory": "See quantities, the history and what can be sold.",
    "write_inventory": "Sell, count, hold and move stock.",
    "read_pools": "See pools and their variants.",
    "write_pools": "Make and change pools and their packs.",
}


@pytest.fixture
async def shop(admin: Admin) -> Shop:
    """The shop, and its agent with the key that the page shows."""
    await admin.open()
    return await admin.scene.find_shop(await new_key(admin))


async def new_key(admin: Admin) -> str:
    """The key that the page shows."""
    page = await admin.get("/console/agents")
    assert page.status_code == 200, page.text
    match = re.search(r'<code id="key">([^<]*)</code>', page.text)
    assert match, page.text
    return match[1]


async def test_the_key_of_the_shop_is_shown_and_works(admin: Admin, shop: Shop) -> None:
    page = await admin.get("/console/agents")

    assert await shop.call("list_pools") == {"pools": [], "next_cursor": None}
    assert [scope for scope in ALL if ALL[scope] in page.text] == [*ALL]
    assert f"{admin.inventory.settings.base_url}/mcp" in page.text
    assert page.headers["cache-control"] == "no-store"


async def test_a_new_key_has_the_scopes_that_were_chosen_and_the_old_one_is_out_at_once(
    admin: Admin, shop: Shop
) -> None:
    old = shop.key
    identity = await shop.http.post("/api/agent/identity", json={"type": "service_auth", "api_key": old})
    form = await admin.get("/console/agents/key")
    # What the present key allows is suggested, and the page says at each right what agents would lose without it.
    assert re.findall(r'name="(\w+)" value="on" checked>', form.text) == [*ALL]
    assert form.text.count("Your agents may do this now. With the new key they are refused.") == len(ALL)
    assert "The old key stops working at once and for good, for every agent." in main_text(form)

    done = await admin.send("/console/agents/key", read_pools="on")

    assert (done.status_code, done.headers["location"]) == (303, admin.address_of("/console/agents"))
    for credential in (old, identity.json()["identity_assertion"]):
        shop.key = credential
        refusal = await shop.send_call("list_pools", {})
        assert refusal.status_code == 401
    shop.key = await new_key(admin)
    assert shop.key != old
    assert (await shop.send_call("list_pools", {})).status_code == 200
    assert (await shop.send_call("get_availability", {})).status_code == 403
    page = await admin.get("/console/agents")
    assert old not in page.text
    assert f"<code>{old[:KEY_PREFIX_CHARACTERS]}…</code>" in page.text


async def test_the_question_before_a_key_goes_says_when_it_was_used_last(admin: Admin, shop: Shop) -> None:
    unused = main_text(await admin.get("/console/agents/key/end"))
    await shop.create_pool(10)

    used = main_text(await admin.get("/console/agents/key/end"))

    assert "No agent has changed anything with the key." in unused
    assert "The key was last used today" in used


async def test_a_new_key_needs_a_confirmation(admin: Admin, shop: Shop) -> None:
    token = hidden_field(await admin.get("/console/agents/key"), "token")

    without_scopes = await admin.send("/console/agents/key")
    foreign = await admin.http.post(
        admin.address_of("/console/agents/key"), data={"token": token, "read_pools": "on"}, headers=FOREIGN
    )
    forged = await admin.http.post(admin.address_of("/console/agents/key"), data={"token": "1-x", "read_pools": "on"})

    assert without_scopes.status_code == 422
    assert "Choose what the key allows, at least one thing." in main_text(without_scopes)
    assert (foreign.status_code, forged.status_code) == (403, 403)
    assert await new_key(admin) == shop.key


async def test_changes_of_agents_are_listed_with_pool_reason_and_undo(admin: Admin, shop: Shop) -> None:
    empty = main_text(await admin.get("/console/agents"))
    pool = await shop.create_pool(10)
    await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-1, reason="<b>broken</b>")

    page = await admin.get("/console/agents")

    assert "Nothing yet. Each change that an agent makes appears here" in empty
    assert "An agent took 1 unit" in main_text(page)
    assert "“ <b>broken</b> ”" in main_text(page)
    [entry, _] = await shop.entries(pool_id=pool["id"])
    path = f"/console/pools/{pool['id']}/entries/{entry['id']}/undo"
    assert admin.address_of(path).replace("&", "&amp;") in page.text
    await admin.send(path)
    assert await shop.on_hand(pool["id"]) == 10
    assert "was undone" in main_text(await admin.get("/console/agents"))


async def test_the_steps_to_connect_come_first_until_an_agent_is_connected(admin: Admin, shop: Shop) -> None:
    def headings(page: str) -> list[str]:
        return re.findall(r'<h2 id="(connected|connect|done)"', page)

    without = await admin.get("/console/agents")
    await shop.create_pool(10)
    connected = await admin.get("/console/agents")

    assert headings(without.text) == ["connect", "done"]
    assert headings(connected.text) == ["connected", "done", "connect"]


async def test_changes_of_pools_and_variants_are_listed_with_what_undoes_them(admin: Admin, shop: Shop) -> None:
    pool = {"pool_id": (await shop.create_pool(0, name="Tea"))["id"]}
    member = {"variant_gid": SIX_PACK, "units_per_sale": 6}
    done = {
        "update_pool": ({**pool, "buffer": 2}, "An agent changed the settings of Tea"),
        "link_variants": ({**pool, "members": [member]}, "An agent added 1 variant to Tea"),
        "update_member": ({**pool, **member, "units_per_sale": 5}, "how much one sale of a variant takes of Tea"),
        "unlink_variants": ({**pool, "variant_gids": [SIX_PACK]}, "An agent removed 1 variant from Tea"),
        "pause_pool": (pool, "An agent paused Tea"),
        "resume_pool": (pool, "An agent resumed Tea"),
        "archive_pool": (pool, "An agent archived Tea"),
        "restore_pool": (pool, "An agent restored Tea"),
        "import_csv": (
            {"kind": "pools", "text": "name\nTea\nJam\n", "dry_run": False},
            "An agent imported a spreadsheet with 2 rows",
        ),
        "resync": (pool, "An agent set the numbers of Tea in your shop again"),
    }

    for tool, (arguments, _) in done.items():
        await shop.call(tool, **arguments)

    assert {*done} | {"create_pool"} == STORED_OPERATIONS
    page = await admin.get("/console/agents/done")
    words = [words for _, words in done.values()]
    positions = [main_text(page).index(sentence) for sentence in ["An agent made the pool Tea", *words]]
    assert positions == sorted(positions, reverse=True)
    # The pool is active now: what left it so can be undone.
    undo = re.findall(rf'href="[^"]*/console/pools/{pool["pool_id"]}/(\w+)\W', page.text)
    assert undo == ["archive", "pause", "archive"]


async def test_a_call_that_changes_nothing_or_was_only_tried_is_not_listed(admin: Admin, shop: Shop) -> None:
    pool = await shop.create_pool(0, name="Tea")
    before = main_text(await admin.get("/console/agents/done"))

    await shop.call("update_pool", pool_id=pool["id"], name="Tea")
    await shop.call("resume_pool", pool_id=pool["id"])
    await shop.call("pause_pool", pool_id=pool["id"], dry_run=True)
    await shop.call("import_csv", kind="pools", text="name\nJam\n")
    await shop.refusal("pause_pool", pool_id=10**9)

    assert main_text(await admin.get("/console/agents/done")) == before


async def test_changes_of_people_are_not_listed_as_changes_of_agents(admin: Admin, shop: Shop) -> None:
    pool = await shop.create_pool(10)
    before = main_text(await admin.get("/console/agents/done"))

    await admin.send(f"/console/pools/{pool['id']}/adjust", way="take", delta="3")

    assert await shop.on_hand(pool["id"]) == 7
    assert main_text(await admin.get("/console/agents/done")) == before


async def test_older_lines_are_on_pages_of_their_own(admin: Admin, shop: Shop) -> None:
    pool = await shop.create_pool(0)
    for number in range(1, 46):
        await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=number, reason=f"number {number}.")
        await shop.call("update_pool", pool_id=pool["id"], buffer=number)

    first = await admin.get("/console/agents/done")
    pages = [first.text]
    while older := re.findall(r'href="([^"]*before=[^"]*)" rel="next"', pages[-1]):
        pages.append((await admin.http.get(older[0].replace("&amp;", "&"))).text)

    texts = "".join(pages)
    assert "number 45." in first.text
    assert "number 1." not in first.text
    assert re.findall(r"number (\d+)\.”|number (\d+)\.<", texts) == [("", str(number)) for number in range(45, 0, -1)]
    assert texts.count("<strong>An agent changed the settings of") == 45
    assert (await admin.get("/console/agents/done?before=x")).status_code == 422


async def test_changes_of_agents_of_another_shop_are_not_listed(admin: Admin, shop: Shop) -> None:
    other = await admin.inventory.create_shop()
    pool = await other.create_pool(10)
    await other.call("adjust_pool_quantity", pool_id=pool["id"], delta=-1, reason="of another shop")
    await other.call("update_pool", pool_id=pool["id"], name="of another shop")

    assert "of another shop" not in (await admin.get("/console/agents/done")).text


async def test_the_key_is_removed_after_a_question(admin: Admin, shop: Shop) -> None:
    question = main_text(await admin.get("/console/agents/key/end"))
    before = await shop.send_call("list_pools", {})

    await admin.send("/console/agents/key/end")

    assert "Every agent with this key stops working at once." in question
    assert (before.status_code, (await shop.send_call("list_pools", {})).status_code) == (200, 401)
    assert "Your shop has no key" in main_text(await admin.get("/console/agents"))


async def test_the_steps_have_the_address_and_no_key(admin: Admin, shop: Shop) -> None:
    page = await admin.get("/console/agents")

    address = f"{admin.inventory.settings.base_url}/mcp"
    assert f'<code id="mcp-address">{address}</code>' in page.text
    assert page.text.count(shop.key) == 1
    settings = re.search(r'<code id="vscode-settings">([^<]*)</code>', page.text)
    assert settings
    assert json.loads(settings[1].replace("&#34;", '"'))["servers"]["holdfast-inventory"]["url"] == address


async def test_the_old_address_of_the_key_redirects_to_the_page_of_agents(admin: Admin, shop: Shop) -> None:
    moved = await admin.get("/console/settings/key")

    assert (moved.status_code, moved.headers["location"]) == (303, admin.address_of("/console/agents"))


async def test_a_merchant_sees_the_key_of_the_own_shop_only(admin: Admin, shop: Shop) -> None:
    other = await admin.inventory.create_shop()
    [(before,)] = await admin.inventory.sql("select count(*) from api_keys")

    await admin.send("/console/agents/key", **dict.fromkeys(ALL, "on"))

    assert (await other.send_call("list_pools", {})).status_code == 200
    assert await admin.inventory.sql("select count(*) from api_keys") == [(before + 1,)]
    assert other.key not in (await admin.get("/console/agents")).text


async def test_a_key_that_cannot_be_read_any_more_can_be_replaced(admin: Admin, shop: Shop) -> None:
    await admin.inventory.sql("update api_keys set sealed = 'x'")

    page = await admin.get("/console/agents")

    assert "This key can no longer be shown" in main_text(page)
    await admin.send("/console/agents/key", read_pools="on")
    assert await new_key(admin) != shop.key


async def test_a_shop_without_a_key_can_have_one_made(admin: Admin, shop: Shop) -> None:
    await admin.inventory.sql("delete from api_keys")

    page = await admin.get("/console/agents")

    assert "Your shop has no key, and agents need one." in main_text(page)
    form = main_text(await admin.get("/console/agents/key"))
    assert "replaces it" not in form
    await admin.send("/console/agents/key", **dict.fromkeys(ALL, "on"))
    assert (await new_key(admin)).startswith("hf_")
