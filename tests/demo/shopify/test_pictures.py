"""The pictures and prices of products."""

from xml.etree import ElementTree

from holdfast.kit.pages.language import ENGLISH, LANGUAGES
from holdfast_demo.shopify import pictures
from holdfast_demo.shopify.model import Variant


def variant_of(product: str, title: str, price: str = "6.00", id: int = 0) -> Variant:
    return Variant(id=id, product=1, item=1, title=title, product_title=product, price=price)


def test_a_picture_of_a_variant_shows_the_product_and_the_number_of_units() -> None:
    pictured = {
        ("Honey jars", "Single"): ("jar", 1),
        ("Honey jars", "12-pack"): ("jar", 12),
        ("Beeswax candles", "Pack of 3"): ("candle", 3),
        ("Lavender soap", "Dozen"): ("soap", 12),
        ("Honey mustard", "6 x 200 ml"): ("mustard", 6),
        ("Green tea", "250 g"): ("tea", 1),
        ("Chestnut honey", "6-pack"): ("chestnut", 6),
        ("Elderflower syrup", "4-pack"): ("bottle", 4),
        ("Bricks", "500-pack"): ("box", 12),
        ("Bricks", "0-pack"): ("box", 1),
    }

    for (product, title), picture in pictured.items():
        assert pictures.picture_of(variant_of(product, title)) == picture


def test_the_file_of_a_picture_has_the_drawing_of_its_product() -> None:
    syrup, honey = ElementTree.fromstring(pictures.svg_of("Syrup")), ElementTree.fromstring(pictures.svg_of("Honey"))

    assert [drawing.get("id") for image in (syrup, honey) for drawing in image.findall("{*}g")] == ["bottle", "jar"]


def test_a_stock_has_empty_places_for_what_was_sold() -> None:
    assert [sum(pictures.stock_places(available)) for available in (-3, 0, 44, 70, 10_000)] == [0, 0, 44, 70, 150]
    assert [len(pictures.stock_places(available)) for available in (-3, 0, 44, 70, 10_000)] == [50, 50, 50, 70, 150]


def test_a_price_has_its_currency_and_the_form_of_the_language() -> None:
    assert pictures.price_of(variant_of("Honey jars", "Single", "33.5"), ENGLISH) == "€33.50"
    assert pictures.price_of(variant_of("Honey jars", "Single", "6"), LANGUAGES["de"]) == "6,00\xa0€"


def test_a_pack_says_what_a_unit_costs_and_what_it_saves_against_single_units() -> None:
    single, six, three = (
        variant_of("Honey jars", title, price, id)
        for id, (title, price) in enumerate([("Single", "6.00"), ("6-pack", "33.00"), ("Pack of 3", "18.00")])
    )

    assert pictures.savings_of([single, six, three], ENGLISH) == {six.id: ("€5.50", "€3.00", "")}
    assert pictures.savings_of([six, three], ENGLISH) == {}


def test_packs_by_weight_are_compared_by_100_grams() -> None:
    small, large, half, dear = (
        variant_of("Green tea", title, price, id)
        for id, (title, price) in enumerate(
            [("100 g", "7.00"), ("250 g", "15.00"), ("50 g", "3.50"), ("1000 g", "80.00")]
        )
    )
    liquid, single = variant_of("Oil", "250 ml", "5.00"), variant_of("Green tea", "Single", "9.00")

    saved = {large.id: ("€6.00", "€2.50", "100\N{NO-BREAK SPACE}g")}
    assert pictures.savings_of([small, large], ENGLISH) == saved
    assert pictures.savings_of([large, half, dear], ENGLISH) == saved
    assert pictures.savings_of([small, liquid], ENGLISH) == {}
    assert pictures.savings_of([small, single], ENGLISH) == {}
    assert pictures.savings_of([variant_of("Green tea", "0 g"), large], ENGLISH) == {}
