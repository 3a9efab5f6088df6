"""The page of a pool: what it has, what can be sold, how its stock went, and who changed it."""

import re

from tests.inventory.console.scene import Admin, main_text
from tests.inventory.support import PACKS, SIX_PACK, Shop


async def test_a_pool_shows_its_stock_its_variants_and_its_history(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.call(
        "create_pool", name="<b>Honey</b>", quantity=50, buffer=2, low_stock_at=45, members=PACKS
    )
    id = pool["pool"]["id"]
    await own_shop.call("adjust_pool_quantity", pool_id=id, delta=-6, reason="<i>broken</i>")

    page = await admin.get(f"/console/pools/{id}")
    text = main_text(page)

    assert page.status_code == 200, page.text
    assert "<bdi>&lt;b&gt;Honey&lt;/b&gt;</bdi>" in page.text
    assert "42 units can be sold · low stock" in text
    assert "On hand 44 units Kept for holds 0 units Kept back as a buffer 2 units Low stock at 45 units" in text
    assert "50 units first, 44 at the lowest, 50 at the highest, 44 now." in text
    assert "Corrections 1 6 units" in text
    assert "7 can be sold now one sale takes 6 units" in text
    assert "one sale takes 1 unit ·" in text
    assert "An agent took 6 units · then 44 on hand “ <i>broken</i> ”" in text
    assert f'href="{admin.at(f"/console/pools/{id}")}"' in (await admin.get()).text


async def test_the_line_of_the_stock_goes_down_when_something_is_taken(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.pool(100)
    await own_shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-50)

    page = await admin.get(f"/console/pools/{pool['id']}")

    match = re.search(r'<path d="M0 (\d+)H\d+V(\d+)H600"', page.text)
    assert match, page.text
    assert (int(match[1]), int(match[2])) == (4, 60)


async def test_the_picture_shows_changes_when_they_were_made(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.pool(100)
    await own_shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-50)
    await admin.inventory.sql("alter table ledger disable trigger user")
    for days, which in (("20 days", "delta > 0"), ("10 days 1 minute", "delta < 0")):
        await admin.inventory.sql(f"update ledger set created_at = now() - interval '{days}' where {which}")

    page = await admin.get(f"/console/pools/{pool['id']}")

    # The picture is 600 wide, and its moments are 10 apart; this change is a little left of the middle.
    match = re.search(r'<path d="M0 (\d+)H(\d+)V(\d+)H600"', page.text)
    assert match, page.text
    assert int(match[2]) == 299


async def test_a_kit_is_explained_by_every_pool_it_draws_on(admin: Admin, own_shop: Shop) -> None:
    honey = await own_shop.pool(50, name="Honey", members=PACKS)
    await own_shop.pool(3, name="Boxes", members=[{"variant_gid": SIX_PACK, "units_per_sale": 1, "title": "Six"}])

    page = await admin.get(f"/console/pools/{honey['id']}")
    assert "3 can be sold now · another pool allows no more" in main_text(page)
    reckoning = await admin.get(f"/console/variant?gid={SIX_PACK}")

    text = main_text(reckoning)
    assert "3 can be sold now: as many as the pool allows that allows least." in text
    assert "Honey allows 8" in text
    assert "50 on hand, less 0 held and 0 kept back; one sale takes 6 units . floor(max(0, 50 - 0 - 0) / 6) = 8" in text
    assert "Boxes allows 3 · the least" in text


async def test_the_history_comes_in_pages(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.pool(100)
    for number in range(1, 52):
        await own_shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=1, reason=f"number {number}.")

    newest = await admin.get(f"/console/pools/{pool['id']}")
    first = await admin.get(f"/console/pools/{pool['id']}/history")
    older = re.search(r'href="(/console/pools/\d+/history\?cursor=[^"&]*)', first.text)

    assert "number 42." in newest.text
    assert "number 41." not in newest.text
    assert older
    assert "number 1." not in first.text
    last = await admin.get(older[1])
    assert "number 1." in last.text
    assert "Older entries" not in last.text


async def test_what_another_shop_has_is_not_found(admin: Admin, own_shop: Shop) -> None:
    other = await admin.inventory.shop()
    theirs = await other.pool(10, members=PACKS)

    paths = [f"/console/pools/{theirs['id']}{more}" for more in ("", "/history", "/entries/1/undo")]
    answers = [await admin.get(path) for path in (*paths, "/console/pools/x", f"/console/variant?gid={SIX_PACK}")]

    assert {answer.status_code for answer in answers} == {404}


async def test_a_german_reads_the_page_in_german(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.pool(1234, members=PACKS)

    text = main_text(await admin.get(f"/console/pools/{pool['id']}?lang=de"))

    assert "1.234 Einheiten verkäuflich" in text
    assert "Bestand im Lauf der Zeit" in text
    assert "Ein Agent hat 1.234 Einheiten gezählt ( +1.234 Einheiten ) · danach 1.234 vorhanden" in text
