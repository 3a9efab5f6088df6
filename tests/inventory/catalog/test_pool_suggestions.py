"""Pools are suggested from the titles of products and variants: packs of several sizes of the same thing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.inventory.catalog.pool_suggestions import (
    FirstStock,
    PoolSuggestion,
    ProductVariant,
    SuggestedMember,
    first_stock,
    quantities_after,
    read_pack_size,
    suggest,
)


@pytest.mark.parametrize(
    ("title", "rest", "size"),
    [
        ("6-pack", "", 6),
        ("Honey jars, 6 pack", "Honey jars", 6),
        ("Pack of 12", "", 12),
        ("Candles (Box of 24)", "Candles", 24),
        ("12 Stück", "", 12),
        ("6er-Pack", "", 6),
        ("6er", "", 6),
        ("10 pcs.", "", 10),
        ("2x", "", 2),
        ("2x Honey", "Honey", 2),
        ("x3", "", 3),
        ("Soap x 3", "Soap", 3),
        ("6 \N{MULTIPLICATION SIGN} 250 ml", "250 ml", 6),
        ("Single", "", 1),
        ("Einzeln", "", 1),
        ("Dozen", "", 12),
        ("Half-dozen eggs", "eggs", 6),
        ("Twin pack", "", 2),
        ("Red", "Red", None),
        ("2XL", "2XL", None),
        ("10 x 15 cm", "10 x 15 cm", None),
        ("1.5x", "1.5x", None),
        ("38", "38", None),
        ("250 g", "250 g", None),
        ("Pack of 2026 stamps", "Pack of 2026 stamps", None),
        ("", "", None),
    ],
)
def test_a_pack_size_is_read_from_a_title(title: str, rest: str, size: int | None) -> None:
    assert read_pack_size(title) == (rest, size)


def variant(
    product: str, title: str, available: int = 0, *, linked: bool = False, tracked: bool = True
) -> ProductVariant:
    gid = f"gid://shopify/ProductVariant/{abs(hash((product, title))) % 10**9}"
    return ProductVariant(gid, f"gid://shopify/Product/{product}", product, title, None, tracked, available, linked)


def summaries(suggestions: list[PoolSuggestion]) -> list[tuple[str, int, list[int]]]:
    return [(pool.name, pool.quantity, [member.units_per_sale for member in pool.members]) for pool in suggestions]


def test_packs_of_a_product_share_a_pool() -> None:
    suggestions = suggest(
        [variant("Honey jars", "12-pack", 3), variant("Honey jars", "Single jar", 50), variant("Tea", "100 g")]
    )

    assert summaries(suggestions) == [("Honey jars", 86, [1, 12])]


def test_variants_that_differ_in_more_than_the_pack_get_pools_of_their_own() -> None:
    titles = ("Red / Single", "Red / Pack of 3", "Blue / Single", "Blue / Pack of 3", "Green / Single")

    suggestions = suggest([variant("Candles", title, 1) for title in titles])

    assert summaries(suggestions) == [("Candles · Red", 4, [1, 3]), ("Candles · Blue", 4, [1, 3])]


def test_products_whose_titles_differ_by_the_pack_share_a_pool() -> None:
    only = "Default Title"

    suggestions = suggest([variant("Soap", only, 10), variant("Soap (Pack of 6)", only, 2), variant("Soap dish", only)])

    assert summaries(suggestions) == [("Soap", 22, [1, 6])]


def test_goods_that_the_platform_shows_several_times_are_counted_once() -> None:
    suggestions = suggest([variant("Jars", "Single", 50), variant("Jars", "6-pack", 8), variant("Jars", "12-pack", 4)])

    assert summaries(suggestions) == [("Jars", 50, [1, 6, 12])]


def test_an_untracked_or_negative_level_adds_nothing_to_a_suggested_pool() -> None:
    suggestions = suggest(
        [variant("Jars", "Single", 5), variant("Jars", "2-pack", -3), variant("Jars", "6-pack", 9, tracked=False)]
    )

    assert summaries(suggestions) == [("Jars", 5, [1, 2, 6])]


def test_a_product_that_is_in_a_pool_suggests_none() -> None:
    assert suggest([variant("Jars", "Single", linked=True), variant("Jars", "6-pack")]) == []


def test_the_first_stock_of_a_suggestion_shows_its_sum_of_packs() -> None:
    [pool] = suggest([variant("Soap", "Single", 60), variant("Soap", "4-pack", 5), variant("Soap", "Dozen", 2)])

    assert pool.first_stock == FirstStock(104, [(60, 1), (5, 4), (2, 12)])
    units = {member.variant.gid: member.units_per_sale for member in pool.members}
    assert [*quantities_after(pool.quantity, units).values()] == [104, 26, 8]


def test_a_first_stock_of_goods_shown_several_times_changes_no_level() -> None:
    [pool] = suggest([variant("Eggs", "2-pack", 4), variant("Eggs", "3-pack", 3)])

    assert pool.first_stock == FirstStock(9, [(3, 3), (4, 2)], counts_once=True)
    assert quantities_after(9, {"2": 2, "3": 3}) == {"2": 4, "3": 3}


@given(st.dictionaries(st.sampled_from([1, 2, 3, 4, 6, 12]), st.integers(-5, 100), min_size=2))
def test_any_first_stock_is_the_sum_of_its_terms_and_what_counts_once_changes_no_number(levels: dict[int, int]) -> None:
    members = [SuggestedMember(variant("Jars", f"{size}", packs), size) for size, packs in levels.items()]

    stock = first_stock(members)

    packs = {size: max(level, 0) for size, level in levels.items()}
    assert {size: count for count, size in stock.terms} == {size: count for size, count in packs.items() if count}
    after = quantities_after(stock.quantity, {str(size): size for size in levels})
    if stock.counts_once:
        assert stock.quantity == stock.terms[0][0] * stock.terms[0][1]
        assert after == {str(size): count for size, count in packs.items()}
    else:
        assert stock.quantity == sum(size * count for size, count in packs.items())
        assert after == {str(size): stock.quantity // size for size in levels}
