"""Changing the stock of a pool in the console: corrections, counts and transfers, each once, with a reason."""

import re

import pytest

from tests.helpers.cases import in_turn
from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import PACKS, Inventory, Shop
from tests.inventory.console.merchant_scene import FOREIGN, Admin, hidden_field
from tests.inventory.console.signing_in import Owner, add_merchant


@pytest.mark.parametrize(
    ("way", "delta", "kind"), [("take", -6, "adjust"), ("add", 6, "adjust"), ("restock", 6, "restock")]
)
async def test_a_correction_is_in_the_history_with_its_reason_and_who_made_it(
    admin: Admin, own_shop: Shop, way: str, delta: int, kind: str
) -> None:
    pool = await own_shop.create_pool(50)

    done = await admin.send(f"/console/pools/{pool['id']}/adjust", way=way, delta="6", reason="<b>Fell</b>")

    assert (done.status_code, done.headers["location"]) == (303, admin.address_of(f"/console/pools/{pool['id']}"))
    [entry, _] = await own_shop.entries(pool_id=pool["id"])
    assert (entry["delta"], entry["kind"], entry["reason"], entry["actor"]) == (delta, kind, "<b>Fell</b>", "staff")
    assert "“<bdi>&lt;b&gt;Fell&lt;/b&gt;</bdi>”" in (await admin.get(f"/console/pools/{pool['id']}")).text


async def test_a_form_of_a_correction_sent_twice_changes_the_stock_once(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50)
    path = f"/console/pools/{pool['id']}/adjust"
    form = await admin.get(path)
    fields = {"token": hidden_field(form, "token"), "once": hidden_field(form, "once"), "way": "take", "delta": "6"}

    answers = [await admin.http.post(admin.address_of(path), data=fields) for _ in range(2)]
    foreign = await admin.http.post(admin.address_of(path), data={**fields, "delta": "7"}, headers=FOREIGN)

    assert [answer.status_code for answer in (*answers, foreign)] == [303, 303, 403]
    assert await own_shop.on_hand(pool["id"]) == 44


async def test_a_correction_cannot_take_held_units(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(10)
    await own_shop.call("hold_quantity", pool_id=pool["id"], quantity=4)

    refusal = await admin.send(f"/console/pools/{pool['id']}/adjust", way="take", delta="7")

    assert refusal.status_code == 409
    assert "Now: 10 units 4 units of it on hold" in main_text(refusal)
    assert "There is not as much as this would take. Stock on hold stays." in main_text(refusal)
    assert 'value="7"' in refusal.text
    assert await own_shop.on_hand(pool["id"]) == 10


@in_turn("typed", ["", "0", "-6", "1.5", "six", "9" * 14, "٦"])
async def test_an_invalid_quantity_is_marked_and_changes_no_stock(admin: Admin, own_shop: Shop, typed: str) -> None:
    pool = await own_shop.create_pool(10)

    refusal = await admin.send(f"/console/pools/{pool['id']}/adjust", way="add", delta=typed)

    assert refusal.status_code == 422
    assert 'aria-invalid="true" aria-describedby="delta-unit delta-note"' in refusal.text
    assert await own_shop.on_hand(pool["id"]) == 10


async def test_a_count_sets_the_stock(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50)
    path = f"/console/pools/{pool['id']}/count"

    done = await admin.send(path, seen=hidden_field(await admin.get(path), "seen"), quantity="48", reason="Sunday")

    assert done.status_code == 303
    [entry, _] = await own_shop.entries(pool_id=pool["id"])
    assert (entry["kind"], entry["delta"], entry["balance_after"]) == ("set", -2, 48)


async def test_a_count_is_not_stored_when_something_was_sold_meanwhile(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50)
    path = f"/console/pools/{pool['id']}/count"
    seen = hidden_field(await admin.get(path), "seen")
    await own_shop.call("record_sale", pool_id=pool["id"], quantity=6)

    stale = await admin.send(path, seen=seen, quantity="48")

    assert stale.status_code == 409
    assert "Then 50 were on hand, now 44. Check your count, and send it again." in main_text(stale)
    assert await own_shop.on_hand(pool["id"]) == 44
    again = await admin.http.post(
        admin.address_of(path),
        data={"quantity": "42", **{name: hidden_field(stale, name) for name in ("token", "once", "seen")}},
    )
    assert (again.status_code, await own_shop.on_hand(pool["id"])) == (303, 42)


async def test_a_count_without_the_quantity_that_was_seen_is_not_stored(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50)

    refusal = await admin.send(f"/console/pools/{pool['id']}/count", quantity="48")

    assert (refusal.status_code, await own_shop.on_hand(pool["id"])) == (422, 50)


async def test_a_transfer_takes_from_one_pool_and_gives_to_another_of_its_unit(admin: Admin, own_shop: Shop) -> None:
    here, other = await own_shop.create_pool(50), await own_shop.create_pool(0, name="<i>There</i>")
    await own_shop.create_pool(0, name="Of grams", unit="g")
    path = f"/console/pools/{here['id']}/transfer"
    form = await admin.get(path)
    assert "&lt;i&gt;There&lt;/i&gt;</option>" in form.text
    assert "Of grams" not in form.text
    assert f'<option value="{here["id"]}"' not in form.text

    nowhere = await admin.send(path, quantity="20", to_pool_id="")
    done = await admin.send(path, quantity="20", to_pool_id=str(other["id"]))

    assert (nowhere.status_code, done.status_code) == (422, 303)
    assert [await own_shop.on_hand(pool["id"]) for pool in (here, other)] == [30, 20]


async def test_a_pool_of_another_shop_cannot_be_found_or_changed(admin: Admin, own_shop: Shop) -> None:
    other = await admin.inventory.create_shop()
    ours, theirs = await own_shop.create_pool(50), await other.create_pool(50)
    await own_shop.create_pool(0)
    token = {
        name: hidden_field(await admin.get(f"/console/pools/{ours['id']}/adjust"), name) for name in ("token", "once")
    }

    pages = [await admin.get(f"/console/pools/{theirs['id']}/{form}") for form in ("adjust", "count", "transfer")]
    sent = await admin.http.post(
        admin.address_of(f"/console/pools/{theirs['id']}/adjust"), data={**token, "way": "take", "delta": "6"}
    )
    moved = await admin.send(f"/console/pools/{ours['id']}/transfer", quantity="6", to_pool_id=str(theirs["id"]))

    assert {response.status_code for response in (*pages, sent, moved)} == {404}
    assert await other.on_hand(theirs["id"]) == await own_shop.on_hand(ours["id"]) == 50


async def test_an_archived_pool_cannot_be_corrected_counted_or_transferred(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50)
    await own_shop.call("archive_pool", pool_id=pool["id"])

    refusal = await admin.send(f"/console/pools/{pool['id']}/adjust", way="take", delta="6")

    assert refusal.status_code == 409
    assert "The pool is archived" in main_text(refusal)
    assert "/adjust" not in (await admin.get(f"/console/pools/{pool['id']}")).text


async def ask_what_would_happen(admin: Admin, path: str, **fields: str) -> str:
    """What a form says below its number before it is sent."""
    page = await admin.send(path, do="preview", **fields)
    assert page.status_code == 200
    return page.text.partition('id="then" role="status">')[2].partition("</p>")[0]


def words(markup: str) -> str:
    """The text of a piece of a page."""
    return " ".join(re.sub("<[^>]+>", "", markup).split())


async def test_a_count_says_what_the_shop_then_shows_and_changes_nothing_before_it_is_sent(
    admin: Admin, own_shop: Shop
) -> None:
    pool = await own_shop.create_pool(50, members=PACKS)
    path = f"/console/pools/{pool['id']}/count"

    fewer = await ask_what_would_happen(admin, path, quantity="44")
    same = await ask_what_would_happen(admin, path, quantity="50")
    empty = await ask_what_would_happen(admin, path, quantity="")

    assert words(fewer) == "50 → 44 units (6 fewer). Your shop will then show 44, 7 and 3."
    assert words(same) == "Nothing changes: this is what is there."
    assert words(empty) == "Type a number to see here what changes."
    assert len(await own_shop.entries(pool_id=pool["id"])) == 1


async def test_a_correction_says_where_it_leads_below_the_limit_and_beyond_what_is_there(
    admin: Admin, own_shop: Shop
) -> None:
    pool = await own_shop.create_pool(50, low_stock_at=12, members=PACKS)
    path = f"/console/pools/{pool['id']}/adjust"

    more = await ask_what_would_happen(admin, path, way="restock", delta="10")
    low = await ask_what_would_happen(admin, path, way="take", delta="40")
    too_much = await ask_what_would_happen(admin, path, way="take", delta="51")

    assert words(more) == "50 → 60 units (10 more). Your shop will then show 60, 10 and 5."
    assert words(low) == "50 → 10 units (40 fewer). low stock Your shop will then show 10, 1 and 0."
    assert words(too_much) == "There is not as much as this would take. Stock on hold stays."


async def test_a_refused_form_says_what_its_number_would_do(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50, members=PACKS)
    path = f"/console/pools/{pool['id']}/count"
    seen = hidden_field(await admin.get(path), "seen")
    await own_shop.call("record_sale", pool_id=pool["id"], quantity=2)

    stale = await admin.send(path, seen=seen, quantity="44")

    assert stale.status_code == 409
    assert "48 → 44 units (4 fewer). Your shop will then show 44, 7 and 3." in main_text(stale)


async def test_a_transfer_says_what_both_pools_then_have(admin: Admin, own_shop: Shop) -> None:
    honey, boxes = await own_shop.create_pool(50, name="Honey"), await own_shop.create_pool(10, name="Boxes")

    would = await ask_what_would_happen(
        admin, f"/console/pools/{honey['id']}/transfer", quantity="6", to_pool_id=str(boxes["id"])
    )

    assert words(would) == "Honey: 50 → 44 units, Boxes: 10 → 16 units."


async def test_the_only_pool_of_its_unit_says_so_instead_of_offering_a_transfer(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50)

    assert "/transfer" not in (await admin.get(f"/console/pools/{pool['id']}")).text
    page = await admin.get(f"/console/pools/{pool['id']}/transfer")
    assert "You have no other pool counted in units." in main_text(page)
    assert "<select" not in page.text


async def test_a_shop_that_is_not_connected_reads_what_is_left_of_each_pack(inventory: Inventory, shop: Shop) -> None:
    await add_merchant(inventory, shop)
    owner = await Owner(inventory).sign_in()
    pool = await shop.create_pool(50, members=PACKS)
    path = f"/console/pools/{pool['id']}/adjust"

    page = await owner.send(path, do="preview", way="take", delta="6")

    assert "50 → 44 units (6 fewer). Left of each pack: 44, 7 and 3." in main_text(page)
