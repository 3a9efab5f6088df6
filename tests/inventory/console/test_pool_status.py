"""Pausing a pool and putting it away, and back: each after a question."""

from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import PACKS, Shop
from tests.inventory.console.merchant_scene import Admin, hidden_field


async def status(shop: Shop, pool_id: int) -> str:
    return (await shop.call("get_pool", pool_id=pool_id))["status"]


async def test_a_pool_is_paused_and_resumed_after_a_question(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50, members=PACKS)
    page = f"/console/pools/{pool['id']}"
    assert f'href="{admin.address_of(f"{page}/pause")}"' in (await admin.get(page)).text

    question = await admin.get(f"{page}/pause")
    assert (await status(own_shop, pool["id"]), f"Pause “{pool['name']}”?" in main_text(question)) == ("active", True)
    paused = await admin.send(f"{page}/pause")

    assert (paused.status_code, paused.headers["location"]) == (303, admin.address_of(page))
    assert await status(own_shop, pool["id"]) == "paused"
    assert "Paused: your shop does not show its packs." in main_text(await admin.get(page))
    await admin.send(f"{page}/resume")
    assert await status(own_shop, pool["id"]) == "active"


async def test_a_pool_is_archived_and_restored_with_its_stock(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50, name="Honey", members=PACKS)
    page = f"/console/pools/{pool['id']}"

    question = main_text(await admin.get(f"{page}/archive"))
    assert "The pool keeps its history and its stock: 50 units ." in question
    assert f"The numbers of {len(PACKS)} packs in your shop stay as they are now." in question
    assert "Your shop can then sell more than you have." in question
    await admin.send(f"{page}/archive")

    pool_page = await admin.get(page)
    assert "Archived: its stock cannot be changed until you restore it." in main_text(pool_page)
    assert [f'href="{admin.address_of(f"{page}/{form}")}"' in pool_page.text for form in ("restore", "pause")] == [
        True,
        False,
    ]
    assert "Honey" not in main_text(await admin.get())
    archived = await admin.http.get(admin.address_of("/console?status=archived"))
    assert "Honey" in main_text(archived)
    await admin.send(f"{page}/restore")
    after = await own_shop.call("get_pool", pool_id=pool["id"])
    assert (after["status"], after["on_hand"], len(after["members"])) == ("active", 50, len(PACKS))


async def test_variants_are_unlinked_with_the_pool_if_that_is_chosen(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50, members=PACKS)

    await admin.send(f"/console/pools/{pool['id']}/archive", release_variants="on")

    after = await own_shop.call("get_pool", pool_id=pool["id"])
    assert (after["status"], after["members"]) == ("archived", [])


async def test_a_pool_with_a_hold_cannot_be_archived(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50)
    await own_shop.call("hold_quantity", pool_id=pool["id"], quantity=1)

    refusal = await admin.send(f"/console/pools/{pool['id']}/archive")

    assert (refusal.status_code, await status(own_shop, pool["id"])) == (409, "active")
    assert "Some of it is on hold. End these holds first." in main_text(refusal)


async def test_a_question_answered_twice_changes_the_pool_once(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50)
    path = f"/console/pools/{pool['id']}/archive"
    question = await admin.get(path)
    fields = {name: hidden_field(question, name) for name in ("token", "once")}

    answers = [await admin.http.post(admin.address_of(path), data=fields) for _ in range(2)]
    later = await admin.send(path)

    assert [answer.status_code for answer in (*answers, later)] == [303, 303, 409]


async def test_a_pool_of_another_shop_cannot_be_paused_or_archived(admin: Admin, own_shop: Shop) -> None:
    other = await admin.inventory.create_shop()
    ours, theirs = await own_shop.create_pool(1), await other.create_pool(50)
    fields = {
        name: hidden_field(await admin.get(f"/console/pools/{ours['id']}/archive"), name) for name in ("token", "once")
    }

    for step in ("pause", "resume", "archive", "restore"):
        path = f"/console/pools/{theirs['id']}/{step}"
        assert (await admin.get(path)).status_code == 404
        assert (await admin.http.post(admin.address_of(path), data=fields)).status_code == 404
    assert await status(other, theirs["id"]) == "active"
