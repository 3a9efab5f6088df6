"""The list of pools: levels, 14 days, how long they last, and what the platform has; searched and filtered."""

import re

from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import PACKS, SIX_PACK, Inventory, Shop
from tests.inventory.console.merchant_at_platform import MerchantAtPlatform
from tests.inventory.console.merchant_scene import Admin
from tests.inventory.console.signing_in import Owner, add_merchant
from tests.inventory.sync.platform_rows import park_levels


async def test_a_pool_is_listed_with_its_level_and_once_there_is_enough_to_say_with_how_long_it_lasts(
    admin: Admin, own_shop: Shop
) -> None:
    await own_shop.create_pool(50, name="Honey", members=PACKS)
    await own_shop.create_pool(7, name="Lids")
    await own_shop.call("record_sale", variant_gid=SIX_PACK, quantity=2)

    today = await admin.get()
    await admin.inventory.sql("update drawn set day = day - 4")
    later = main_text(await admin.get())
    await admin.inventory.sql("update drawn set day = day - 20")
    await own_shop.call("record_sale", variant_gid=SIX_PACK, quantity=1)
    much_later = main_text(await admin.get())

    assert "Honey 3 packs 38 units can be sold L Lids no packs yet 7 units can be sold" in main_text(today)
    # 12 units in the five days since the first sale: 38 last 16 days.
    assert "38 units can be sold Days left: 16 days L Lids" in later
    # Later the last 14 days count: 6 units in them, so 32 last 75 days.
    assert "32 units can be sold Days left: 75 days L Lids" in much_later


async def test_pools_that_need_the_merchant_come_first_and_sold_out_is_not_low(admin: Admin, own_shop: Shop) -> None:
    for name, quantity, limit in (("Honey", 50, 12), ("Soap", 9, 12), ("Oats", 0, 20), ("Lids", 0, None)):
        await own_shop.call("create_pool", name=name, quantity=quantity, low_stock_at=limit)

    page = await admin.get()

    names = re.findall(r'<th scope="row".*?<bdi>(.*?)</bdi>', page.text, re.DOTALL)
    assert names == ["Oats", "Lids", "Soap", "Honey"]
    assert re.findall(r'class="chip (\w+)">([^<]*)<', page.text) == [
        ("danger", "sold out"),
        ("danger", "sold out"),
        ("warning", "low stock"),
    ]


async def test_a_bar_is_full_at_the_most_of_14_days_and_has_a_line_at_the_limit(
    admin: Admin, own_shop: Shop, own_inventory: object
) -> None:
    pool = await own_shop.create_pool(50, name="Honey", low_stock_at=10)
    await own_shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-30)
    await admin.inventory.sql("alter table ledger disable trigger user")
    await admin.inventory.sql("update ledger set created_at = created_at - interval '1 day' where balance_after = 50")

    for page in (await admin.get(), await admin.get(f"/console/pools/{pool['id']}")):
        bar = re.search(r'<svg class="bar.*?width="(\d+)%".*?x1="(\d+)%"', page.text, re.DOTALL)
        assert bar
        assert bar.groups() == ("40", "20")


async def test_the_line_of_a_pool_begins_on_its_first_day(admin: Admin, own_shop: Shop, own_inventory: object) -> None:
    await own_shop.create_pool(50, name="Honey")
    assert 'class="sparkline"' not in (await admin.get()).text
    await admin.inventory.sql("alter table ledger disable trigger user")
    await admin.inventory.sql("update ledger set created_at = created_at - interval '1 day'")

    page = await admin.get()

    # The last two of 14 days have a level: 12 and 13 thirteenths from the left.
    assert re.findall(r'class="sparkline".*? d="\s*(.*?)"', page.text, re.DOTALL) == ["M92.3 2.0L100.0 2.0"]


async def test_a_shop_that_is_not_connected_is_told_so_above_its_pools(inventory: Inventory, shop: Shop) -> None:
    await add_merchant(inventory, shop)
    owner = await Owner(inventory).sign_in()
    await shop.create_pool(50, name="Honey")

    unconnected = main_text(await owner.get("/console"))

    assert "Your shop is not connected yet. Sales there do not count here" in unconnected


async def test_a_shop_that_is_connected_is_told_nothing_about_it(admin: Admin, own_shop: Shop) -> None:
    await own_shop.create_pool(50, name="Honey")

    assert "not connected" not in main_text(await admin.get())


async def test_few_pools_have_no_search_and_a_way_to_the_archived_ones(admin: Admin, own_shop: Shop) -> None:
    for number in range(7):
        await own_shop.create_pool(number)
    few = await admin.get()
    await own_shop.create_pool(7)
    many = await admin.get()

    assert ('role="search"' in few.text, "Archived pools" in main_text(few)) == (False, True)
    assert 'role="search"' in many.text


async def test_pools_are_searched_and_filtered(admin: Admin, own_shop: Shop) -> None:
    await own_shop.create_pool(50, name="Honey")
    await own_shop.call("create_pool", name="Lids", quantity=7, low_stock_at=9)

    assert "Lids" not in main_text(await admin.get("/console?q=hon"))
    low = main_text(await admin.get("/console?status=low"))
    assert "Lids" in low
    assert "Honey" not in low
    assert "No pool matches." in main_text(await admin.get("/console?q=honey&status=low"))


async def test_pools_that_differ_at_the_platform_can_be_listed(merchant: MerchantAtPlatform) -> None:
    scene = merchant.at_platform
    single = f"gid://shopify/ProductVariant/{scene.variants['Single'].id}"
    await merchant.shop.create_pool(50, name="Honey", members=[{"variant_gid": single, "units_per_sale": 1}])
    await merchant.shop.create_pool(7, name="Lids")
    await scene.sync_due()
    assert "in sync" in main_text(await merchant.get())
    assert "No pool matches." in main_text(await merchant.get("/console?status=unsynced"))

    await park_levels(merchant.inventory, "The platform refused it.")

    text = main_text(await merchant.get("/console?status=unsynced"))
    assert "Honey 1 pack 50 units can be sold" in text
    assert "different" in text
    assert "Lids" not in text
