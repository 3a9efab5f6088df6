"""The list of pools: levels, 14 days, how long they last, and what the platform has; searched and filtered."""

from tests.helpers.form_browser import main_text
from tests.inventory.console.merchant_scene import Admin
from tests.inventory.console.stocking import Stocking
from tests.inventory.support import PACKS, SIX_PACK, Shop


async def test_a_pool_is_listed_with_its_level_and_once_there_is_enough_to_say_with_how_long_it_lasts(
    admin: Admin, own_shop: Shop
) -> None:
    await own_shop.pool(50, name="Honey", members=PACKS)
    await own_shop.pool(7, name="Lids")
    await own_shop.call("record_sale", variant_gid=SIX_PACK, quantity=2)

    today = await admin.get()
    await admin.inventory.sql("update drawn set day = day - 4")
    later = main_text(await admin.get())
    await admin.inventory.sql("update drawn set day = day - 20")
    await own_shop.call("record_sale", variant_gid=SIX_PACK, quantity=1)
    much_later = main_text(await admin.get())

    assert "Honey 3 variants 38 units can be sold 38 on hand, 0 held Lids 0 variants" in main_text(today)
    assert "Lids 0 variants 7 units can be sold 7 on hand, 0 held" in main_text(today)
    assert today.text.count('class="sparkline"') == 2
    # 12 units in the five days since the first sale: 38 last 16 days.
    assert "38 on hand, 0 held Days left: 16 days Lids" in later
    # Later the last 14 days count: 6 units in them, so 32 last 75 days.
    assert "32 on hand, 0 held Days left: 75 days Lids" in much_later


async def test_pools_are_searched_and_filtered(admin: Admin, own_shop: Shop) -> None:
    await own_shop.pool(50, name="Honey")
    await own_shop.call("create_pool", name="Lids", quantity=7, low_stock_at=9)

    assert "Lids" not in main_text(await admin.get("/console?q=hon"))
    low = main_text(await admin.get("/console?status=low"))
    assert "Lids" in low
    assert "Honey" not in low
    assert "No pool matches." in main_text(await admin.get("/console?q=honey&status=low"))


async def test_pools_that_differ_at_the_platform_can_be_listed(merchant: Stocking) -> None:
    scene = merchant.at_platform
    single = f"gid://shopify/ProductVariant/{scene.variants['Single'].id}"
    await merchant.shop.pool(50, name="Honey", members=[{"variant_gid": single, "units_per_sale": 1}])
    await merchant.shop.pool(7, name="Lids")
    await scene.sync_due()
    assert "in sync" in main_text(await merchant.get())
    assert "No pool matches." in main_text(await merchant.get("/console?status=unsynced"))

    await merchant.at_platform.inventory.sql(
        "update levels set parked = 'The platform refused it.' where target is not null"
    )

    text = main_text(await merchant.get("/console?status=unsynced"))
    assert "Honey 1 variant 50 units can be sold" in text
    assert "different" in text
    assert "Lids" not in text
