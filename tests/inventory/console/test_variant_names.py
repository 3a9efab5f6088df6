"""Variants have the same name on every page: the title, else the SKU, else the number in the id."""

import pytest

from holdfast.inventory.catalog.model import MAX_VARIANTS
from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import PACKS, SINGLE, SIX_PACK, TWELVE_PACK, Shop
from tests.inventory.console.merchant_at_platform import MerchantAtPlatform
from tests.inventory.console.merchant_scene import Admin
from tests.inventory.orders.stories import PlatformOrder, deliver_orders

pytestmark = pytest.mark.usefixtures("own_inventory")  # It changes the schema.


async def test_a_variant_is_called_by_its_title_its_sku_or_the_number_in_its_id(admin: Admin, own_shop: Shop) -> None:
    single, six, twelve = PACKS
    pool = await own_shop.create_pool(
        50, members=[{**single, "title": "Jar", "sku": "H-1"}, {**six, "sku": "H-6"}, twelve]
    )

    for gid, name in ((SINGLE, "Jar"), (SIX_PACK, "H-6"), (TWELVE_PACK, "Variant 1012")):
        for path in (
            f"/console/pools/{pool['id']}",
            f"/console/pools/{pool['id']}/variants",
            f"/console/variant?gid={gid}",
        ):
            text = main_text(await admin.get(path))
            assert name in text, path
            assert gid not in text.replace("Such as gid://shopify/ProductVariant/1001.", ""), path


async def test_a_variant_linked_without_a_title_has_the_title_of_the_platform(merchant: MerchantAtPlatform) -> None:
    gids = {
        title: f"gid://shopify/ProductVariant/{variant.id}" for title, variant in merchant.at_platform.variants.items()
    }
    pool = await merchant.shop.create_pool(50, members=[{"variant_gid": gids["6-pack"], "units_per_sale": 6}])

    page = await merchant.get(f"/console/pools/{pool['id']}")
    assert "Honey jars · 6-pack HONEY-6 Can be sold: 8" in main_text(page)


async def test_the_history_says_what_orders_sold_by_name(admin: Admin, own_shop: Shop) -> None:
    pool = await own_shop.create_pool(50, members=[{**PACKS[0], "title": "<i>Jar</i>"}, PACKS[1]])
    order = PlatformOrder((SINGLE, 2), (SIX_PACK, 1))
    await deliver_orders(admin.inventory, order.payload(), shop=own_shop)
    await own_shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-1, reason=f"It was a {SINGLE}")

    text = main_text(await admin.get(f"/console/pools/{pool['id']}?lang=de"))

    assert "2 \N{MULTIPLICATION SIGN} <i>Jar</i> , 1 \N{MULTIPLICATION SIGN} Variante 1006 ·" in text
    assert "sold." not in text
    assert f"It was a {SINGLE}" in text


async def test_the_history_names_variants_in_what_was_stored_with_their_ids(admin: Admin, own_shop: Shop) -> None:
    """So reasons were written before."""
    pool = await own_shop.create_pool(50, members=[{**PACKS[0], "title": "<i>Jar</i>"}])
    await deliver_orders(admin.inventory, PlatformOrder((SINGLE, 2)).payload(), shop=own_shop)
    await admin.inventory.sql("alter table ledger disable trigger append_only")
    await admin.inventory.sql(f"update ledger set reason = '2 of {SINGLE} sold.' where source = 'webhook'")

    assert "2 of <i>Jar</i> sold." in main_text(await admin.get(f"/console/pools/{pool['id']}"))


async def test_a_pool_of_more_variants_than_are_named_at_once_is_shown(admin: Admin, own_shop: Shop) -> None:
    gids = [f"gid://shopify/ProductVariant/{number}" for number in range(1, MAX_VARIANTS + 2)]
    pool = await own_shop.create_pool(50)
    for start in range(0, len(gids), 250):
        members = [{"variant_gid": gid, "units_per_sale": 1} for gid in gids[start : start + 250]]
        await own_shop.call("link_variants", pool_id=pool["id"], members=members)

    page = await admin.get(f"/console/pools/{pool['id']}")

    assert page.text.count('<th scope="row"><bdi>Variant ') == len(gids)
