"""The page of a pool: its stock, what can be sold, the chart, and the actors of changes."""

import re

import pytest

from holdfast.inventory.stock import pool_history
from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import PACKS, SIX_PACK, Shop
from tests.inventory.console.merchant_scene import Admin

pytestmark = pytest.mark.usefixtures("own_inventory")  # It changes the schema.


async def test_a_pool_shows_its_stock_its_variants_and_its_history(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.call(
        "create_pool", name="<b>Honey</b>", quantity=50, buffer=2, low_stock_at=45, members=PACKS
    )
    id = pool["pool"]["id"]
    await own_shop.call("adjust_pool_quantity", pool_id=id, delta=-6, reason="<i>broken</i>")
    await admin.inventory.sql("alter table ledger disable trigger user")
    await admin.inventory.sql("update ledger set created_at = created_at - interval '3 days' where kind = 'set'")

    page = await admin.get(f"/console/pools/{id}")
    text = main_text(page)

    assert page.status_code == 200, page.text
    assert "<bdi>&lt;b&gt;Honey&lt;/b&gt;</bdi>" in page.text
    assert "42 units can be sold low stock The full bar is 90 units . The line in the bar is the low" in text
    assert "On hand 44 units Safety stock 2 units Low stock at 45 units" in text
    assert "Sales Counts Other changes Show as a table" in text
    assert "UTC 44 Other changes" in text
    assert "Corrections 1 6 units" in text
    assert "Can be sold: 7 How it is calculated Variant 1006 takes 6 units" in text
    assert "An agent took 6 units · then 44 on hand “ <i>broken</i> ”" in text
    assert f'href="{admin.address_of(f"/console/pools/{id}")}"' in (await admin.get()).text


async def test_the_full_bar_of_a_pool_is_what_its_first_day_began_with(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(96)
    await own_shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-20)

    text = main_text(await admin.get(f"/console/pools/{pool['id']}"))
    assert "76 units can be sold The full bar is 96 units ." in text


async def test_the_chart_of_a_pool_shows_changes_at_their_times(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(100, members=PACKS)
    await own_shop.call("record_sale", variant_gid=SIX_PACK, quantity=5)
    await own_shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-20)
    await admin.inventory.sql("alter table ledger disable trigger user")
    for days, which in (("20 days", "kind = 'set'"), ("10 days", "kind = 'sale'"), ("5 days", "kind = 'adjust'")):
        await admin.inventory.sql(f"update ledger set created_at = now() - interval '{days}' where {which}")

    page = await admin.get(f"/console/pools/{pool['id']}")

    # The picture is 584 wide and 172 high; it begins with the count, 20 days ago.
    assert 'd="M56 8.0H56.0V8.0H348.0V59.6H' in page.text
    assert '<circle class="circle" cx="348.0" cy="59.6" r="4"/>' in page.text
    assert '<path class="triangle" d="M494.0 ' in page.text


async def test_a_chart_of_many_changes_has_the_newest_one_by_one_and_the_rest_in_steps(
    admin: Admin, own_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_history, "MAX_NEWEST_CHANGES", 2)
    pool = await own_shop.create_pool(100)
    for quantity in (90, 80, 70, 60):
        await own_shop.call("set_pool_quantity", pool_id=pool["id"], quantity=quantity)
    await admin.inventory.sql("alter table ledger disable trigger user")
    await admin.inventory.sql("update ledger set created_at = now() - (20 - 3 * seq) * interval '1 day'")

    page = await admin.get(f"/console/pools/{pool['id']}")

    assert re.findall("UTC ([0-9]+) Counts", main_text(page)) == ["60", "70", "80", "90"]


async def test_a_kit_is_explained_by_every_pool_it_draws_on(admin: Admin, own_shop: Shop) -> None:
    honey = await own_shop.create_pool(50, name="Honey", members=PACKS)
    await own_shop.create_pool(
        3, name="Boxes", members=[{"variant_gid": SIX_PACK, "units_per_sale": 1, "title": "Six"}]
    )

    page = await admin.get(f"/console/pools/{honey['id']}")
    assert "Can be sold: 3 How it is calculated Six · another pool is the limit" in main_text(page)
    variant_page = await admin.get(f"/console/variant?gid={SIX_PACK}")

    text = main_text(variant_page)
    assert "3 can be sold now The scarcest pool decides." in text
    assert "On hand 50 units Less: on hold \N{MINUS SIGN} 0 units Less: safety stock \N{MINUS SIGN} 0 units" in text
    assert "Divided by: one sale takes \N{DIVISION SIGN} 6 units" in text
    assert "Can be sold 8 Rounded down: only whole sales count" in text
    assert "Boxes scarcest On hand 3 units" in text


async def test_the_history_comes_in_pages(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(100)
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


async def test_a_pool_or_variant_of_another_shop_is_answered_with_404(admin: Admin, own_shop: Shop) -> None:
    other = await admin.inventory.create_shop()
    theirs = await other.create_pool(10, members=PACKS)

    paths = [f"/console/pools/{theirs['id']}{more}" for more in ("", "/history", "/entries/1/undo")]
    answers = [await admin.get(path) for path in (*paths, "/console/pools/x", f"/console/variant?gid={SIX_PACK}")]

    assert {answer.status_code for answer in answers} == {404}


async def test_the_page_of_a_pool_is_in_german_too(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(1234, members=PACKS)

    text = main_text(await admin.get(f"/console/pools/{pool['id']}?lang=de"))

    assert "1.234 Einheiten verfügbar" in text
    assert "Verfügbar je Packung" in text
    assert "Ein Agent hat den Pool mit 1.234 Einheiten angelegt · danach 1.234 vorhanden" in text
