"""The list of pools: levels, 14 days, how long they last, and what the platform has; searched and filtered."""

from tests.inventory.console.scene import Admin, main_text
from tests.inventory.console.stocking import Stocking
from tests.inventory.support import PACKS, SIX_PACK, Shop


async def test_a_pool_is_listed_with_how_long_it_lasts(admin: Admin, own_shop: Shop) -> None:
    await own_shop.pool(50, name="Honey", members=PACKS)
    await own_shop.pool(7, name="Lids")
    await own_shop.call("record_sale", variant_gid=SIX_PACK, quantity=2)

    page = await admin.get()

    # Two 6-packs in 14 days: what is left lasts as long as 38 units at 12 in 14 days.
    assert "Honey 3 variants 38 units can be sold 38 on hand, 0 held Days left: 44 days active" in main_text(page)
    assert "Lids 0 variants 7 units can be sold 7 on hand, 0 held active" in main_text(page)
    assert page.text.count('class="sparkline"') == 2


async def test_pools_are_searched_and_filtered(admin: Admin, own_shop: Shop) -> None:
    await own_shop.pool(50, name="Honey")
    await own_shop.call("create_pool", name="Lids", quantity=7, low_stock_at=9)

    assert "Lids" not in main_text(await admin.get("/console?q=hon"))
    low = main_text(await admin.get("/console?status=low"))
    assert "Lids" in low
    assert "Honey" not in low
    assert "No pool is like that." in main_text(await admin.get("/console?q=honey&status=low"))


async def test_pools_that_differ_at_the_platform_can_be_listed(merchant: Stocking) -> None:
    scene = merchant.at_platform
    single = f"gid://shopify/ProductVariant/{scene.variants['Single'].id}"
    await merchant.shop.pool(50, name="Honey", members=[{"variant_gid": single, "units_per_sale": 1}])
    await merchant.shop.pool(7, name="Lids")
    await scene.attend()
    assert "the same" in main_text(await merchant.get())
    assert "No pool is like that." in main_text(await merchant.get("/console?status=unsynced"))

    await merchant.at_platform.inventory.sql(
        "update levels set parked = 'The platform refused it.' where target is not null"
    )

    text = main_text(await merchant.get("/console?status=unsynced"))
    assert "Honey 1 variant 50 units can be sold" in text
    assert "different" in text
    assert "Lids" not in text
