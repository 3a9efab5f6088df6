"""The page of a pool's variants: linking, changing and unlinking are previewed before they are done."""

from typing import Any

import pytest

from tests.helpers.form_browser import main_text
from tests.helpers.inventory_service import PACKS, SINGLE, SIX_PACK, TWELVE_PACK
from tests.helpers.platform_shop import PlatformSource
from tests.inventory.console.merchant_at_platform import MerchantAtPlatform, open_merchant_at_platform

ALL = {f"units:{SINGLE}": "1", f"units:{SIX_PACK}": "6", f"units:{TWELVE_PACK}": "12"}


async def create_pool(merchant: MerchantAtPlatform, quantity: int = 50, **fields: Any) -> tuple[int, str]:
    """Create a pool. Returns its id, and the address of its variants."""
    id = (await merchant.shop.create_pool(quantity, **{"name": "<b>Honey</b>", "unit": "jars", **fields}))["id"]
    return id, f"/console/pools/{id}/variants"


async def units(merchant: MerchantAtPlatform, id: int) -> dict[str, int]:
    """What one sale takes of the pool, by variant."""
    data = await merchant.shop.call("get_pool", pool_id=id)
    return {member["variant_gid"]: member["units_per_sale"] for member in data["members"]}


async def test_linking_shows_the_numbers_first_and_then_does_it(merchant: MerchantAtPlatform) -> None:
    id, path = await create_pool(merchant)

    preview = await merchant.send(path, do="link", **ALL)

    assert preview.status_code == 200
    text = main_text(preview)
    assert "Honey jars · Single not sold 50" in text
    assert "Honey jars · 6-pack not sold 8" in text
    assert "Honey jars · 12-pack not sold 4" in text
    assert await units(merchant, id) == {}
    done = await merchant.confirm(preview, path, sure="keep_pool")
    assert (done.status_code, done.headers["location"]) == (303, merchant.address_of(path))
    assert await units(merchant, id) == {SINGLE: 1, SIX_PACK: 6, TWELVE_PACK: 12}
    assert await merchant.shop.on_hand(id) == 50
    # A second click is the same click.
    assert (await merchant.confirm(preview, path, sure="keep_pool")).status_code == 303


async def test_a_link_can_add_the_quantities_of_the_platform_to_the_pool(merchant: MerchantAtPlatform) -> None:
    id, path = await create_pool(merchant, 0)

    preview = await merchant.send(path, do="link", **ALL)

    assert "The pool goes from 0 to 146 jars : the stock of your shop is added." in main_text(preview)
    assert (await merchant.confirm(preview, path, sure="sum_from_platform")).status_code == 303
    assert await merchant.shop.on_hand(id) == 50 + 8 * 6 + 4 * 12


async def test_a_variant_unknown_to_the_platform_is_linked_by_its_id_and_adds_no_stock(
    merchant: MerchantAtPlatform,
) -> None:
    id, path = await create_pool(merchant)
    gid = "gid://shopify/ProductVariant/7"

    preview = await merchant.send(path, do="link", variant_gid=gid, units_per_sale="5")

    assert "Variant 7 not sold 10" in main_text(preview)
    assert "the stock of your shop" not in main_text(preview)
    await merchant.confirm(preview, path, sure="keep_pool")
    assert await units(merchant, id) == {gid: 5}


async def test_changed_units_of_a_variant_are_previewed_before_they_are_stored(merchant: MerchantAtPlatform) -> None:
    id, path = await create_pool(merchant, members=PACKS)

    preview = await merchant.send(path, do="change", variant_gid=SIX_PACK, units="5")

    assert "6-pack 8 10" in main_text(preview)
    assert (await units(merchant, id))[SIX_PACK] == 6
    await merchant.confirm(preview, path, sure="keep_pool")
    assert (await units(merchant, id))[SIX_PACK] == 5


async def test_a_variant_is_unlinked_after_a_question(merchant: MerchantAtPlatform) -> None:
    id, path = await create_pool(merchant, members=PACKS)

    preview = await merchant.send(path, do="unlink", variant_gid=SIX_PACK)

    assert "6-pack 8 not sold" in main_text(preview)
    await merchant.confirm(preview, path, sure="keep_pool")
    assert await units(merchant, id) == {SINGLE: 1, TWELVE_PACK: 12}


async def test_a_pool_that_changed_after_the_question_is_shown_again(merchant: MerchantAtPlatform) -> None:
    id, path = await create_pool(merchant, members=PACKS)
    preview = await merchant.send(path, do="change", variant_gid=SIX_PACK, units="5")
    await merchant.shop.call("adjust_pool_quantity", pool_id=id, delta=-30)

    again = await merchant.confirm(preview, path, sure="keep_pool")

    assert again.status_code == 409
    assert "The pool has changed in the meantime." in main_text(again)
    assert "6-pack 3 4" in main_text(again)
    assert (await units(merchant, id))[SIX_PACK] == 6
    assert (await merchant.confirm(again, path, sure="keep_pool")).status_code == 303
    assert (await units(merchant, id))[SIX_PACK] == 5


async def test_an_invalid_link_has_its_message_beside_the_field(merchant: MerchantAtPlatform) -> None:
    _, path = await create_pool(merchant, members=PACKS)

    nothing = await merchant.send(path, do="link")
    wrong = await merchant.send(path, do="link", **{f"units:{SINGLE}": "0"}, variant_gid="7", units_per_sale="x")
    none = await merchant.send(path, do="change", variant_gid=SIX_PACK, units="")

    assert [response.status_code for response in (nothing, wrong, none)] == [422, 422, 422]
    assert "Enter for at least one variant how many units one sale takes." in main_text(nothing)
    assert "Enter a global id such as gid://shopify/ProductVariant/1001" in main_text(wrong)
    assert "Enter a number, such as 6." in main_text(wrong)
    assert wrong.text.count(' aria-invalid="true"') == 2
    assert none.text.count(' aria-invalid="true"') == 1


@pytest.mark.parametrize(
    "fields", [{"do": "sell"}, {"do": "link", "units:x": "1"}, {"do": "unlink", "variant_gid": SINGLE, "sure": "yes"}]
)
async def test_a_form_with_an_unknown_action_is_refused(merchant: MerchantAtPlatform, fields: dict[str, str]) -> None:
    _, path = await create_pool(merchant, members=PACKS)

    assert (await merchant.send(path, **fields)).status_code == 400


async def test_variants_are_searched_and_what_people_wrote_is_no_markup(merchant: MerchantAtPlatform) -> None:
    _, path = await create_pool(merchant, members=PACKS[:1])

    everything = await merchant.get(path)
    results = await merchant.get(f"{path}?q=6-pack&unlinked=on")

    assert "<bdi>&lt;b&gt;Honey&lt;/b&gt;</bdi>" in everything.text
    rows = "Packs in this pool Pack Can be sold One sale Honey jars · Single HONEY-1 Can be sold: 50 takes 1 jar"
    assert rows in main_text(everything)
    assert f"units:{SINGLE}" not in everything.text
    assert [gid for gid in (SIX_PACK, TWELVE_PACK) if f"units:{gid}" in results.text] == [SIX_PACK]
    assert "When a 6-pack is sold, 44 jars are left: 44 jars, 7 six-packs or 3 twelve-packs" in main_text(everything)


async def test_an_archived_pool_is_shown_without_forms(merchant: MerchantAtPlatform) -> None:
    id, path = await create_pool(merchant, members=PACKS)
    preview = await merchant.send(path, do="unlink", variant_gid=SINGLE)
    await merchant.shop.call("archive_pool", pool_id=id)

    refusal = await merchant.confirm(preview, path, sure="keep_pool")
    page = await merchant.get(path)

    assert (refusal.status_code, page.status_code) == (409, 200)
    assert "The pool is archived" in main_text(refusal)
    assert 'name="do"' not in page.text


async def test_the_variants_of_a_pool_of_another_shop_are_not_found(merchant: MerchantAtPlatform) -> None:
    _, pool_path = await create_pool(merchant)
    other = await merchant.inventory.create_shop()
    await other.create_pool(7)
    theirs = (await other.create_pool(7, members=PACKS))["id"]
    path = f"/console/pools/{theirs}/variants"

    response = await merchant.get(path)
    sent = await merchant.send(pool_path, path, do="unlink", variant_gid=SINGLE, sure="keep_pool")

    assert (response.status_code, sent.status_code) == (404, 404)
    assert (await merchant.get("/console/pools/x/variants")).status_code == 404
    assert len((await other.call("get_pool", pool_id=theirs))["members"]) == 3


async def test_the_page_of_variants_is_in_german_too(platform_source: PlatformSource) -> None:
    async with open_merchant_at_platform(platform_source, "de") as merchant:
        _, path = await create_pool(merchant, members=PACKS)

        preview = await merchant.send(path, do="change", variant_gid=SIX_PACK, units="5")

        assert "Wie ein Pool zählt" in main_text(await merchant.get(path))
        assert "Den Verbrauch je Verkauf ändern?" in main_text(preview)
        assert "6-pack 8 10" in main_text(preview)
