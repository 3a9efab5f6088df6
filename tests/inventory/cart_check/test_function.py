"""The function that looks at carts before they are paid, run by itself."""

import json
import re
import tomllib
from typing import Any

import pytest

from holdfast_demo.shopify.checkout import CART_CHECK
from tests.inventory.cart_check.conftest import CartLine, Running, numbers

SINGLE, SIX, TWELVE = 1001, 1006, 1012
JARS, LIDS = 4, 5


def single_line(quantity: int, sellable: int = 50, **more: Any) -> CartLine:
    return CartLine(SINGLE, quantity, numbers((JARS, 1, sellable), **more))


def six_pack_line(quantity: int, sellable: int = 50, **more: Any) -> CartLine:
    return CartLine(SIX, quantity, numbers((JARS, 6, sellable), **more), "6-pack")


def test_a_six_pack_and_45_singles_of_a_pool_of_50_are_stopped(function: Running) -> None:
    assert function.says(single_line(45), six_pack_line(1)) == [
        (
            "There is not enough left for Honey (Single) and Honey (6-pack) together. "
            "Each by itself, there would be 50 x Honey (Single) or 8 x Honey (6-pack)."
        )
    ]


def test_a_six_pack_and_44_singles_pass(function: Running) -> None:
    assert function.says(single_line(44), six_pack_line(1)) == []


def test_buyers_read_the_message_in_the_language_of_the_shop(function: Running) -> None:
    assert function.says(single_line(45), six_pack_line(1), language="DE") == [
        (
            "Für Honey (Single) und Honey (6-pack) zusammen ist nicht mehr genug da. "
            "Jeweils allein gäbe es noch 50 x Honey (Single) oder 8 x Honey (6-pack)."
        )
    ]
    assert function.says(six_pack_line(9), language="DE") == [
        "Von Honey (6-pack) sind nur noch 8 da. In Ihrem Warenkorb: 9."
    ]
    assert function.says(six_pack_line(1, 5), language="DE") == ["Honey (6-pack) ist ausverkauft."]
    assert function.says(six_pack_line(2, 6), language="FR") == ["Only 1 of Honey (6-pack) is left. Your cart has 2."]


def test_lines_of_the_same_variant_count_together(function: Running) -> None:
    assert function.says(single_line(25), single_line(25)) == []
    assert function.says(single_line(25), single_line(26)) == ["Only 50 of Honey (Single) are left. Your cart has 51."]


def test_a_cart_of_a_million_units_is_stopped_unless_they_are_there(function: Running) -> None:
    assert function.says(six_pack_line(10**6)) == ["Only 8 of Honey (6-pack) are left. Your cart has 1000000."]
    assert function.says(six_pack_line(10**6, 6 * 10**6)) == []
    assert function.says(CartLine(SIX, 2**31 - 1, numbers((JARS, 10**9, 10**12)), "6-pack")) == [
        "Only 1000 of Honey (6-pack) are left. Your cart has 2147483647."
    ]


def test_a_kit_is_stopped_by_whichever_of_its_pools_has_too_little(function: Running) -> None:
    kit = numbers((JARS, 2, 50), (LIDS, 1, 10))

    assert function.says(CartLine(SIX, 10, kit)) == []
    assert function.says(CartLine(SIX, 11, kit)) == ["Only 10 of Honey (Single) are left. Your cart has 11."]
    assert function.says(CartLine(SIX, 10, kit, "Kit"), single_line(31)) == [
        (
            "There is not enough left for Honey (Kit) and Honey (Single) together. "
            "Each by itself, there would be 10 x Honey (Kit) or 50 x Honey (Single)."
        )
    ]
    assert function.says(CartLine(SIX, 10, kit, "Kit"), single_line(30)) == []


def test_a_pool_that_has_less_than_nothing_is_sold_out(function: Running) -> None:
    assert function.says(single_line(1, -3)) == ["Honey (Single) is sold out."]


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        "text",
        17,
        [],
        {},
        {"v": 1},
        {"v": 1, "until": "2026-11-21", "pools": [[4, 1, 0]]},
        {"v": 1, "pools": [[4, 1, 0]]},
        {"v": "1", "until": "2030-01-01", "pools": [[4, 1, 0]]},
        {"v": 1, "until": 20300101, "pools": [[4, 1, 0]]},
        {"v": 1, "until": "2030-01-01", "pools": {"4": [1, 0]}},
        {"v": 1, "until": "2030-01-01", "pools": [[4, 1]]},
        {"v": 1, "until": "2030-01-01", "pools": [[4, 0, 0]]},
        {"v": 1, "until": "2030-01-01", "pools": [[4, 1, 0.5]]},
        {"v": 1, "until": "2030-01-01", "pools": [[4, 1, None]]},
        {"v": 1, "until": "2030-01-01", "pools": [4]},
    ],
    ids=str,
)
def test_missing_expired_or_malformed_numbers_stop_no_cart(function: Running, wrong: Any) -> None:
    assert function.says(CartLine(SINGLE, 10**6, wrong), six_pack_line(8)) == []


def test_a_pool_that_may_go_below_zero_is_not_in_the_numbers_and_stops_nothing(function: Running) -> None:
    assert function.says(CartLine(SINGLE, 10**6, numbers())) == []


def test_the_newest_numbers_of_a_pool_are_right_for_all_its_variants(function: Running) -> None:
    for lines in (
        [single_line(45, 50, v=6), six_pack_line(1, 80, v=8)],
        [six_pack_line(1, 80, v=8), single_line(45, 50, v=6)],
    ):
        assert function.says(*lines) == []
    assert function.says(single_line(5, 50, v=6), six_pack_line(1, 10, v=8)) != []


def test_a_cart_is_not_refused_before_checkout(function: Running) -> None:
    assert function.says(single_line(51), step="CART_INTERACTION") == []
    assert len(function.says(single_line(51), step="CHECKOUT_INTERACTION")) == 1
    assert len(function.says(single_line(51), step=None)) == 1


def test_a_cart_line_without_a_variant_is_not_checked(function: Running) -> None:
    gift = {"quantity": 1000, "merchandise": {"__typename": "CustomProduct"}}

    assert function.says(single_line(50), others=[gift]) == []


def test_the_cart_check_passes_an_empty_cart(function: Running) -> None:
    assert function.says() == []


def test_a_product_with_one_variant_is_known_by_its_title(function: Running) -> None:
    assert function.says(CartLine(1, 2, numbers((JARS, 1, 1)), "Default Title", "Wax")) == [
        "Only 1 of Wax is left. Your cart has 2."
    ]
    assert function.says(CartLine(1, 1, numbers((JARS, 1, 0)), None, "Wax")) == ["Wax is sold out."]


def test_titles_in_messages_are_cut_and_have_no_bidi_characters(function: Running) -> None:
    line = CartLine(1, 1, numbers((JARS, 1, 0)), "\u202eevil\nline\u2069", "H" * 300)
    raw = json.dumps(function.answer(function_input(line)), ensure_ascii=False)

    assert function.says(line) == [f"{'H' * 59}… (evil line) is sold out."]
    assert "\u202e" not in raw
    assert raw.count("\u2068") == raw.count("\u2069") == 2


def function_input(line: CartLine) -> Any:
    return {
        "buyerJourney": {"step": None},
        "localization": {"language": {"isoCode": "EN"}},
        "shop": {"localTime": {"date": "2026-11-22"}},
        "cart": {"lines": [line.input()]},
    }


def test_a_cart_with_many_shortages_gets_a_few_messages(function: Running) -> None:
    many = [CartLine(1000 + n, 1, numbers((n, 1, 0)), f"No. {n}") for n in range(1, 200)]
    assert len(function.says(*many)) == 5
    of_one_pool = [CartLine(1000 + n, 1, numbers((JARS, 1, 100)), f"No. {n}") for n in range(1, 200)]
    assert function.says(*of_one_pool) == [
        (
            "There is not enough left for Honey (No. 1), Honey (No. 2), Honey (No. 3) and 196 more together. "
            "Each by itself, there would be 100 x Honey (No. 1), 100 x Honey (No. 2) or 100 x Honey (No. 3)."
        )
    ]


def test_the_extension_names_files_that_are_there_and_texts_in_both_languages() -> None:
    extension = tomllib.loads((CART_CHECK / "shopify.extension.toml").read_text())
    (function,) = extension["extensions"]
    (target,) = function["targeting"]
    code = (CART_CHECK / "src" / "cart_validations_generate_run.js").read_text()

    assert extension["api_version"] == "2026-10"
    assert (function["type"], target["target"]) == ("function", "cart.validations.generate.run")
    assert (CART_CHECK / target["input_query"]).is_file()
    camel = re.sub("-(.)", lambda match: match[1].upper(), target["export"])
    assert f"export function {camel}(" in code
    for locale in ("en.default", "de"):
        texts = json.loads((CART_CHECK / "locales" / f"{locale}.json").read_text())
        assert {f"t:{name}" for name in texts} == {function["name"], function["description"]}
