"""Changing the stock of a pool in the console: corrections, counts and transfers, each once, with a reason."""

import pytest

from tests.cases import in_turn
from tests.helpers.form_browser import main_text
from tests.inventory.console.merchant_scene import FOREIGN, Admin, hidden_field
from tests.inventory.support import Shop


@pytest.mark.parametrize(
    ("way", "delta", "kind"), [("take", -6, "adjust"), ("add", 6, "adjust"), ("restock", 6, "restock")]
)
async def test_a_correction_is_in_the_history_with_its_reason_and_who_made_it(
    admin: Admin, own_shop: Shop, way: str, delta: int, kind: str
) -> None:
    pool = await own_shop.pool(50)

    done = await admin.send(f"/console/pools/{pool['id']}/adjust", way=way, delta="6", reason="<b>Fell</b>")

    assert (done.status_code, done.headers["location"]) == (303, admin.at(f"/console/pools/{pool['id']}"))
    [entry, _] = await own_shop.entries(pool_id=pool["id"])
    assert (entry["delta"], entry["kind"], entry["reason"], entry["actor"]) == (delta, kind, "<b>Fell</b>", "staff")
    assert "“<bdi>&lt;b&gt;Fell&lt;/b&gt;</bdi>”" in (await admin.get(f"/console/pools/{pool['id']}")).text


async def test_a_form_of_a_correction_sent_twice_changes_the_stock_once(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.pool(50)
    path = f"/console/pools/{pool['id']}/adjust"
    form = await admin.get(path)
    fields = {"token": hidden_field(form, "token"), "once": hidden_field(form, "once"), "way": "take", "delta": "6"}

    answers = [await admin.http.post(admin.at(path), data=fields) for _ in range(2)]
    foreign = await admin.http.post(admin.at(path), data={**fields, "delta": "7"}, headers=FOREIGN)

    assert [answer.status_code for answer in (*answers, foreign)] == [303, 303, 403]
    assert await own_shop.on_hand(pool["id"]) == 44


async def test_a_correction_cannot_take_held_units(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.pool(10)
    await own_shop.call("hold_quantity", pool_id=pool["id"], quantity=4)

    refused = await admin.send(f"/console/pools/{pool['id']}/adjust", way="take", delta="7")

    assert refused.status_code == 409
    assert "Now: 10 units 4 units of it on hold" in main_text(refused)
    assert "There is not as much as this would take. What is kept for holds stays." in main_text(refused)
    assert 'value="7"' in refused.text
    assert await own_shop.on_hand(pool["id"]) == 10


@in_turn("typed", ["", "0", "-6", "1.5", "six", "9" * 14, "٦"])
async def test_an_invalid_quantity_is_marked_and_changes_no_stock(admin: Admin, own_shop: Shop, typed: str) -> None:
    pool = await own_shop.pool(10)

    refused = await admin.send(f"/console/pools/{pool['id']}/adjust", way="add", delta=typed)

    assert refused.status_code == 422
    assert 'aria-invalid="true" aria-describedby="delta-unit delta-note"' in refused.text
    assert await own_shop.on_hand(pool["id"]) == 10


async def test_a_count_sets_the_stock(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.pool(50)
    path = f"/console/pools/{pool['id']}/count"

    done = await admin.send(path, seen=hidden_field(await admin.get(path), "seen"), quantity="48", reason="Sunday")

    assert done.status_code == 303
    [entry, _] = await own_shop.entries(pool_id=pool["id"])
    assert (entry["kind"], entry["delta"], entry["balance_after"]) == ("set", -2, 48)


async def test_a_count_is_not_stored_when_something_was_sold_meanwhile(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.pool(50)
    path = f"/console/pools/{pool['id']}/count"
    seen = hidden_field(await admin.get(path), "seen")
    await own_shop.call("record_sale", pool_id=pool["id"], quantity=6)

    stale = await admin.send(path, seen=seen, quantity="48")

    assert stale.status_code == 409
    assert "Then 50 were on hand, now 44. Check your count, and send it again." in main_text(stale)
    assert await own_shop.on_hand(pool["id"]) == 44
    again = await admin.http.post(
        admin.at(path),
        data={"quantity": "42", **{name: hidden_field(stale, name) for name in ("token", "once", "seen")}},
    )
    assert (again.status_code, await own_shop.on_hand(pool["id"])) == (303, 42)


async def test_a_count_without_the_quantity_that_was_seen_is_not_stored(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.pool(50)

    refused = await admin.send(f"/console/pools/{pool['id']}/count", quantity="48")

    assert (refused.status_code, await own_shop.on_hand(pool["id"])) == (422, 50)


async def test_a_transfer_takes_from_one_pool_and_gives_to_another_of_its_unit(admin: Admin, own_shop: Shop) -> None:
    here, other = await own_shop.pool(50), await own_shop.pool(0, name="<i>There</i>")
    await own_shop.pool(0, name="Of grams", unit="g")
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
    other = await admin.inventory.shop()
    ours, theirs = await own_shop.pool(50), await other.pool(50)
    token = {
        name: hidden_field(await admin.get(f"/console/pools/{ours['id']}/adjust"), name) for name in ("token", "once")
    }

    pages = [await admin.get(f"/console/pools/{theirs['id']}/{form}") for form in ("adjust", "count", "transfer")]
    sent = await admin.http.post(
        admin.at(f"/console/pools/{theirs['id']}/adjust"), data={**token, "way": "take", "delta": "6"}
    )
    moved = await admin.send(f"/console/pools/{ours['id']}/transfer", quantity="6", to_pool_id=str(theirs["id"]))

    assert {response.status_code for response in (*pages, sent, moved)} == {404}
    assert await other.on_hand(theirs["id"]) == await own_shop.on_hand(ours["id"]) == 50


async def test_an_archived_pool_cannot_be_corrected_counted_or_transferred(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.pool(50)
    await own_shop.call("archive_pool", pool_id=pool["id"])

    refused = await admin.send(f"/console/pools/{pool['id']}/adjust", way="take", delta="6")

    assert refused.status_code == 409
    assert "The pool is archived" in main_text(refused)
    assert "/adjust" not in (await admin.get(f"/console/pools/{pool['id']}")).text
