"""The form of a pool: it makes or changes it once, and overwrites no unseen change."""

import pytest

from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import Shop
from tests.helpers.platform_shop import PlatformSource
from tests.inventory.console.merchant_at_platform import open_merchant_at_platform
from tests.inventory.console.merchant_scene import Admin, hidden_field

FIELDS = {"name": "Honey", "unit": "g", "buffer": "5", "low_stock_at": "", "policy": "flag"}


async def test_a_merchant_makes_a_pool_with_its_first_quantity(admin: Admin, own_shop: Shop) -> None:
    fields = {"name": "<b>Honey</b>", "unit": "g", "quantity": "500", "buffer": "5", "low_stock_at": "50"}

    made = await admin.send("/console/pools/new", **fields, allow_negative="on", reason="Opening")

    [pool] = (await own_shop.call("list_pools"))["pools"]
    assert (made.status_code, made.headers["location"]) == (303, admin.address_of(f"/console/pools/{pool['id']}"))
    assert (pool["name"], pool["unit"], pool["on_hand"], pool["buffer"]) == ("<b>Honey</b>", "g", 500, 5)
    assert (pool["low_stock_at"], pool["allow_negative"]) == (50, True)
    [entry] = await own_shop.entries()
    assert (entry["reason"], entry["actor"]) == ("Opening", "staff")


async def test_a_form_of_a_new_pool_sent_twice_makes_one_pool(admin: Admin, own_shop: Shop) -> None:
    form = await admin.get("/console/pools/new")
    fields = {"token": hidden_field(form, "token"), "once": hidden_field(form, "once"), "name": "Honey"}

    answers = [await admin.http.post(admin.address_of("/console/pools/new"), data=fields) for _ in range(2)]

    assert answers[0].headers["location"] == answers[1].headers["location"]
    assert len((await own_shop.call("list_pools"))["pools"]) == 1


@pytest.mark.parametrize(
    ("field", "typed", "error"),
    [
        ("name", "", "Enter a name, such as Honey jars."),
        ("name", "x" * 101, "Enter at most 100 characters. This has 101."),
        ("buffer", "-1", "Enter 0 or more, such as 2."),
        ("quantity", "abc", "Enter a number, such as 30."),
        ("low_stock_at", "1.5", "Enter a number, such as 10."),
        ("quantity", "9" * 15, "Enter 1,000,000,000,000 or less."),
    ],
)
async def test_an_invalid_field_of_a_new_pool_has_its_message_and_makes_no_pool(
    admin: Admin, own_shop: Shop, field: str, typed: str, error: str
) -> None:
    refusal = await admin.send("/console/pools/new", **{"name": "Honey", "unit": "jars", field: typed})

    assert refusal.status_code == 422
    assert f'<p class="error" id="{field}-note">{error}</p>' in refusal.text
    assert f'value="{typed}"' in refusal.text
    assert 'value="jars"' in refusal.text
    assert (await own_shop.call("list_pools"))["pools"] == []


async def test_a_name_that_another_pool_has_is_refused_with_a_message(admin: Admin, own_shop: Shop) -> None:
    await own_shop.create_pool(1, name="Honey")

    refusal = await admin.send("/console/pools/new", name="Honey")

    assert (refusal.status_code, "Another pool has this name." in main_text(refusal)) == (409, True)


async def test_a_merchant_changes_what_a_pool_is_like(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50, low_stock_at=7, allow_negative=True)
    path = f"/console/pools/{pool['id']}/edit"
    page = await admin.get(path)
    assert 'value="7"' in page.text
    assert 'name="allow_negative" value="on" checked' in page.text

    done = await admin.send(path, **FIELDS, seen=hidden_field(page, "seen"))

    assert done.status_code == 303
    after = await own_shop.call("get_pool", pool_id=pool["id"])
    assert {name: after[name] for name in (*FIELDS, "allow_negative", "on_hand")} == {
        **FIELDS,
        "buffer": 5,
        "low_stock_at": None,
        "allow_negative": False,
        "on_hand": 50,
    }


async def test_the_default_unit_is_shown_and_typed_in_german_and_stored_as_before(
    platform_source: PlatformSource,
) -> None:
    async with open_merchant_at_platform(platform_source, "de") as merchant:
        pool = await merchant.shop.create_pool(5, name="Honig")
        path = f"/console/pools/{pool['id']}/edit"
        form = await merchant.get(path)

        fields = {**FIELDS, "unit": "Einheiten", "seen": hidden_field(form, "seen")}
        changed = await merchant.send(path, **fields)

        assert 'name="unit" type="text" value="Einheiten"' in form.text
        assert changed.status_code == 303
        stored = await merchant.shop.call("get_pool", pool_id=pool["id"])
        assert (stored["name"], stored["unit"]) == ("Honey", "units")


async def test_changes_of_others_to_a_pool_are_shown_and_not_overwritten(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50, name="Honey")
    path = f"/console/pools/{pool['id']}/edit"
    seen = hidden_field(await admin.get(path), "seen")
    await own_shop.call("update_pool", pool_id=pool["id"], name="<i>Jam</i>")

    stale = await admin.send(path, **FIELDS, seen=seen)

    assert stale.status_code == 409
    assert "The pool has changed since you opened this page." in main_text(stale)
    assert "<dd><bdi>&lt;i&gt;Jam&lt;/i&gt;</bdi></dd>" in stale.text
    assert (await own_shop.call("get_pool", pool_id=pool["id"]))["name"] == "<i>Jam</i>"
    tokens = {name: hidden_field(stale, name) for name in ("token", "seen")}
    again = await admin.http.post(admin.address_of(path), data={**FIELDS, **tokens})
    assert again.status_code == 303
    assert (await own_shop.call("get_pool", pool_id=pool["id"]))["name"] == "Honey"


async def test_a_form_of_a_pool_is_stored_although_units_were_sold_meanwhile(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50)
    path = f"/console/pools/{pool['id']}/edit"
    form = await admin.get(path)
    await own_shop.call("record_sale", pool_id=pool["id"], quantity=6)
    fields = {**FIELDS, **{name: hidden_field(form, name) for name in ("token", "seen")}}

    answers = [await admin.http.post(admin.address_of(path), data=fields) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [303, 303]
    after = await own_shop.call("get_pool", pool_id=pool["id"])
    assert (after["name"], after["on_hand"], after["version"]) == ("Honey", 44, pool["version"] + 2)


async def test_an_empty_or_invalid_field_leaves_the_pool_unchanged(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50, name="Honey")
    path = f"/console/pools/{pool['id']}/edit"
    seen = hidden_field(await admin.get(path), "seen")

    refusals = [
        await admin.send(path, **{**FIELDS, "seen": seen, **wrong})
        for wrong in ({"name": ""}, {"buffer": ""}, {"policy": "burn"}, {"seen": ""})
    ]

    assert [response.status_code for response in refusals] == [422, 422, 422, 409]
    after = await own_shop.call("get_pool", pool_id=pool["id"])
    assert (after["name"], after["version"]) == ("Honey", pool["version"])


async def test_a_pool_of_another_shop_has_no_form(admin: Admin, own_shop: Shop) -> None:
    other = await admin.inventory.create_shop()
    theirs = await other.create_pool(50)
    path = f"/console/pools/{theirs['id']}/edit"
    form = await admin.get("/console/pools/new")

    sent = await admin.http.post(
        admin.address_of(path),
        data={**FIELDS, "token": hidden_field(form, "token")},
    )

    assert {(await admin.get(path)).status_code, sent.status_code} == {404}
    assert (await other.call("get_pool", pool_id=theirs["id"]))["version"] == theirs["version"]
