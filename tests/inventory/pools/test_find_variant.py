"""Finding a variant by its id, SKU or a part of its title."""

from typing import Any

import pytest

from tests.helpers.inventory_service import SINGLE, SIX_PACK, TWELVE_PACK, Inventory, Shop

MEMBERS: list[dict[str, Any]] = [
    {"variant_gid": SINGLE, "units_per_sale": 1, "sku": "HONEY-1", "title": "Honey"},
    {"variant_gid": SIX_PACK, "units_per_sale": 6, "sku": "HONEY-6", "title": "Honey, six jars"},
    {"variant_gid": TWELVE_PACK, "units_per_sale": 12, "title": "Crate (100% honey)"},
]

pytestmark = pytest.mark.usefixtures("inventory")  # Its pools have the ids 1, 2 and so on.


@pytest.fixture
async def stocked_shop(shop: Shop) -> Shop:
    """Honey in pool 1, and boxes in pool 2 for the six-pack."""
    await shop.create_pool(50, name="Jars", members=MEMBERS)
    await shop.create_pool(3, name="Boxes", members=[{"variant_gid": SIX_PACK, "units_per_sale": 1}])
    return shop


async def test_a_found_variant_lists_the_pools_it_draws_on(stocked_shop: Shop) -> None:
    (variant,) = (await stocked_shop.call("find_variant", gid=SIX_PACK))["variants"]

    assert variant == {
        "gid": SIX_PACK,
        "sku": "HONEY-6",
        "title": "Honey, six jars",
        "effective": 3,
        "pools": [
            {"pool_id": 1, "name": "Jars", "unit": "units", "units_per_sale": 6},
            {"pool_id": 2, "name": "Boxes", "unit": "units", "units_per_sale": 1},
        ],
    }


@pytest.mark.parametrize(
    ("known", "gids"),
    [
        ({"gid": SINGLE}, [SINGLE]),
        ({"gid": "gid://shopify/ProductVariant/7"}, []),
        ({"sku": "HONEY-1"}, [SINGLE]),
        ({"sku": "honey-1"}, [SINGLE]),
        ({"sku": "HONEY"}, []),
        ({"text": "honey"}, [SINGLE, SIX_PACK, TWELVE_PACK]),
        ({"text": "Y-6"}, [SIX_PACK]),
        ({"text": "six"}, [SIX_PACK]),
        ({"text": "100%"}, [TWELVE_PACK]),
        ({"text": "%six"}, []),
    ],
    ids=str,
)
async def test_the_best_match_of_a_variant_comes_first(
    stocked_shop: Shop, known: dict[str, Any], gids: list[str]
) -> None:
    assert [variant["gid"] for variant in (await stocked_shop.call("find_variant", **known))["variants"]] == gids


async def test_an_unlinked_variant_is_still_found(stocked_shop: Shop) -> None:
    await stocked_shop.call("unlink_variants", pool_id=1, variant_gids=[SINGLE])

    (variant,) = (await stocked_shop.call("find_variant", sku="HONEY-1"))["variants"]

    assert (variant["effective"], variant["pools"]) == (None, [])


@pytest.mark.parametrize("known", [{}, {"gid": SINGLE, "sku": "HONEY-1"}, {"sku": None, "text": None}], ids=str)
async def test_a_search_of_variants_takes_exactly_one_criterion(stocked_shop: Shop, known: dict[str, Any]) -> None:
    refusal = await stocked_shop.refusal("find_variant", **known)

    assert (refusal["code"], list(refusal["errors"])) == ("validation_failed", ["gid"])


async def test_a_search_of_variants_has_at_most_fifty_results(stocked_shop: Shop) -> None:
    members = [
        {"variant_gid": f"gid://shopify/ProductVariant/{n}", "units_per_sale": 1, "title": "Wax"} for n in range(60)
    ]
    await stocked_shop.call("link_variants", pool_id=2, members=members)

    assert len((await stocked_shop.call("find_variant", text="wax"))["variants"]) == 50


async def test_variants_of_another_shop_are_not_found(stocked_shop: Shop, inventory: Inventory) -> None:
    other = await inventory.create_shop()

    for known in ({"gid": SINGLE}, {"sku": "HONEY-1"}, {"text": "honey"}):
        assert (await other.call("find_variant", **known))["variants"] == []
