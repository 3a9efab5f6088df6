"""The Liquid of the theme block renders what the demo platform shows."""

import json
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

import pytest
from liquid import Environment

from holdfast.kit.pages.language import LANGUAGES
from holdfast_demo.shopify.model import Product, Variant
from holdfast_demo.shopify.pages import storefront
from holdfast_demo.shopify.site import SITE
from tests.helpers.node import ROOT

EXTENSION = ROOT / "extensions" / "live-stock"
LIQUID, _, SCHEMA = (EXTENSION / "blocks" / "live-stock.liquid").read_text(encoding="utf-8").partition("{% schema %}")
SETTINGS = json.loads(SCHEMA.partition("{% endschema %}")[0])["settings"]
DEFAULTS = {setting["id"]: setting.get("default") for setting in SETTINGS if "id" in setting}

PRODUCT = Product(id=7, title="Honey jars")
HOSTILE = '"><script>alert(1)</script>&amp;'
VARIANTS = [
    Variant(id=1000 + units, product=7, item=units, title=title, product_title="Honey jars")
    for units, title in ((1, "Single"), (6, HOSTILE), (12, "12-pack"))
]
INCLUDING = (
    '{% from "templates/live-stock.html" import live_stock %}{{ live_stock(block, product, variants, variants[1]) }}'
)


class Seen(HTMLParser):
    """What a browser makes of HTML: elements with their attributes, and texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.parts: list[Any] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts.append((tag, sorted((name, value or "") for name, value in attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.parts.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.parts.append(" ".join(data.split()))


def texts(code: str, kind: str = "") -> Mapping[str, Any]:
    name = f"{code}.default{kind}.json" if code == "en" else f"{code}{kind}.json"
    return json.loads((EXTENSION / "locales" / name).read_text(encoding="utf-8"))


def by_liquid(code: str, *, design_mode: bool = False, **settings: Any) -> list[Any]:
    """The block as the platform renders it for a merchant's settings."""

    def translated(key: str) -> str:
        folder, _, name = key.partition(".")
        return texts(code)[folder][name]

    environment = Environment()
    environment.add_filter("t", translated)
    variants = [{"id": variant.id, "title": variant.title} for variant in VARIANTS]
    product = {"id": 7, "variants": variants, "selected_or_first_available_variant": variants[1]}
    html = environment.from_string(LIQUID).render(
        product=product,
        block={"settings": {**DEFAULTS, **settings}, "shopify_attributes": ""},
        request={"design_mode": design_mode},
    )
    return Seen(html).parts


def by_the_double(code: str, **settings: Any) -> list[Any]:
    values = {"block": storefront.block(LANGUAGES[code], **settings), "product": PRODUCT, "variants": VARIANTS}
    environment = SITE._environments[code]  # pyright: ignore[reportPrivateUsage] - templates of pages are files
    return Seen(environment.from_string(INCLUDING).render(**values)).parts


@pytest.mark.parametrize("code", ["en", "de"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"show": "all"},
        {"always": False, "when_away": "hide", "most": 20, "low_at": 0, "proxy": "/apps/other"},
        {"text_in": HOSTILE, "text_out": "Gone", "proxy": HOSTILE},
    ],
)
def test_the_block_of_the_demo_is_that_of_the_liquid(code: str, settings: dict[str, Any]) -> None:
    rendered = by_liquid(code, **settings)

    assert rendered == by_the_double(code, **settings)
    assert rendered[0][0] == "live-stock"
    assert not [part for part in rendered if part[0] == "script"]


def test_the_block_without_a_product_is_empty() -> None:
    html = Environment().from_string(re.sub(r"\| t\b", "", LIQUID)).render(block={"settings": DEFAULTS})

    assert html.strip() == ""


def test_only_the_theme_editor_shows_where_the_number_will_be() -> None:
    hint = texts("en")["live_stock"]["hint"]

    assert hint in by_liquid("en", design_mode=True)
    assert hint not in by_liquid("en")


def test_every_state_of_the_block_has_a_text_and_a_setting() -> None:
    script = (EXTENSION / "assets" / "live-stock.js").read_text(encoding="utf-8")
    states = set(re.findall(r'state = "(\w+)"', script))

    assert states == {*storefront.AVAILABILITIES}
    for code in ("en", "de"):
        assert {*texts(code)["live_stock"]} == {*states, "hint"}
    assert {f"text_{state}" for state in states} <= {*DEFAULTS}


@pytest.mark.parametrize("code", ["en", "de"])
def test_merchants_read_every_setting_in_their_language(code: str) -> None:
    keys = set(re.findall(r'"t:block\.(\w+)"', SCHEMA))

    assert keys == {*texts(code, ".schema")["block"]}
