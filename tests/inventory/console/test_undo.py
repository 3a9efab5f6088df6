"""Undoing an entry of the history: after a question, once, and only what can be undone."""

from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import PACKS, SIX_PACK, Shop
from tests.inventory.console.merchant_scene import Admin, hidden_field
from tests.inventory.orders.stories import PlatformOrder, deliver_orders


async def hold_one_unit(shop: Shop, pool_id: int) -> int:
    """The id of a new hold of one unit."""
    return (await shop.call("hold_quantity", pool_id=pool_id, quantity=1))["hold"]["id"]


async def test_a_merchant_undoes_an_entry_and_the_history_says_who(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50)
    await own_shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-20)
    [entry, _] = await own_shop.entries(pool_id=pool["id"])
    path = f"/console/pools/{pool['id']}/entries/{entry['id']}/undo"
    assert admin.address_of(path).replace("&", "&amp;") in (await admin.get(f"/console/pools/{pool['id']}")).text

    question = await admin.get(path)
    assert "An agent took 20 units" in main_text(question)
    assert "+20 units , then 50 on hand" in main_text(question)
    assert await own_shop.on_hand(pool["id"]) == 30
    done = await admin.send(path, reason="It was a mistake")

    assert (done.status_code, done.headers["location"]) == (303, admin.address_of(f"/console/pools/{pool['id']}"))
    assert await own_shop.on_hand(pool["id"]) == 50
    text = main_text(await admin.get(f"/console/pools/{pool['id']}"))
    assert "“ It was a mistake ”" in text
    assert "Staff member 1 undid a change ( +20 units ) · then 50 on hand Undone: An agent took 20 units" in text
    assert "was undone" in text


async def test_undoing_says_what_the_shop_then_shows_and_that_nothing_is_left(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(0, members=PACKS)
    await own_shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=20)
    [entry] = await own_shop.entries(pool_id=pool["id"])

    question = main_text(await admin.get(f"/console/pools/{pool['id']}/entries/{entry['id']}/undo"))

    assert "then 0 on hand nothing left Your shop Your shop will then show 0, 0 and 0." in question
    assert "Undo: take 20 units out" in question


async def test_the_first_stock_of_a_pool_is_not_offered_to_be_undone(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50)

    assert "/undo" not in (await admin.get(f"/console/pools/{pool['id']}")).text


async def test_a_form_to_undo_sent_twice_undoes_once(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50)
    [entry] = await own_shop.entries(pool_id=pool["id"])
    path = f"/console/pools/{pool['id']}/entries/{entry['id']}/undo"
    question = await admin.get(path)
    fields = {"token": hidden_field(question, "token"), "once": hidden_field(question, "once"), "reason": ""}

    answers = [await admin.http.post(admin.address_of(path), data=fields) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [303, 303]
    assert await own_shop.on_hand(pool["id"]) == 0
    again = await admin.get(path)
    assert "It has been undone already." in main_text(again)
    assert "<form" not in again.text.partition("<main")[2].partition("</main>")[0]


async def test_an_entry_that_cannot_be_undone_says_why(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50)
    [made] = await own_shop.entries(pool_id=pool["id"])
    path = f"/console/pools/{pool['id']}/entries/{{}}/undo"
    question = await admin.get(path.format(made["id"]))
    hold = await own_shop.call("hold_quantity", pool_id=pool["id"], quantity=30)
    await own_shop.call("record_sale", pool_id=pool["id"], quantity=30, hold_id=hold["hold"]["id"])
    released = await own_shop.call("release_hold", hold_id=await hold_one_unit(own_shop, pool["id"]))

    release = await admin.get(path.format(released["entries"][0]["id"]))
    sold = await admin.get(path.format(hold["entries"][0]["id"]))
    too_late = await admin.http.post(
        admin.address_of(path.format(made["id"])),
        data={"token": hidden_field(question, "token"), "once": hidden_field(question, "once")},
    )

    assert "An entry of this kind cannot be undone." in main_text(release)
    assert "This hold has ended already." in main_text(sold)
    assert (too_late.status_code, await own_shop.on_hand(pool["id"])) == (409, 20)
    assert "There is not as much as this would take." in main_text(too_late)
    assert (await admin.get(path.format(10**6))).status_code == 404


async def test_a_merchant_undoes_a_hold_by_its_release(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50)
    hold = await own_shop.call("hold_quantity", pool_id=pool["id"], quantity=6, reference="cart 7")
    path = f"/console/pools/{pool['id']}/entries/{hold['entries'][0]['id']}/undo"
    assert admin.address_of(path).replace("&", "&amp;") in (await admin.get(f"/console/pools/{pool['id']}")).text

    question = main_text(await admin.get(path))
    done = await admin.send(path, reason="The cart is gone")

    assert "An agent put 6 units on hold" in question
    assert "\N{MINUS SIGN}6 units , then 0 on hold" in question
    assert done.status_code == 303
    assert (await own_shop.call("list_holds"))["holds"] == []
    page = await admin.get(f"/console/pools/{pool['id']}")
    assert "Staff member 1 ended a hold of 6 units" in main_text(page)
    assert admin.address_of(path).replace("&", "&amp;") not in page.text


async def test_a_sale_by_an_order_has_no_undo(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50, members=PACKS)
    await deliver_orders(admin.inventory, PlatformOrder((SIX_PACK, 1)).payload(), shop=own_shop)
    [sold, _] = await own_shop.entries(pool_id=pool["id"])
    path = f"/console/pools/{pool['id']}/entries/{sold['id']}/undo"

    assert "An entry of this kind cannot be undone." in main_text(await admin.get(path))
    refusal = await own_shop.refusal("revert_entry", entry_id=sold["id"])
    assert (refusal["code"], refusal["message"]) == ("not_revertible", "A sale of an order cannot be reverted.")
