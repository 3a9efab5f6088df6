"""A product's page on a storefront, which shows the theme block and sells."""

import re

import pytest

from holdfast_demo.shopify.shops import NewVariant
from tests.demo.shopify.stage import DOMAIN, PlatformStage
from tests.helpers.node import ROOT

HONEY = f"/{DOMAIN}/products/honey-jars"
ASSETS = ROOT / "extensions" / "live-stock" / "assets"


async def test_a_product_page_has_the_theme_block_with_the_files_of_the_extension(stage: PlatformStage) -> None:
    page = await stage.http.get(HONEY)
    files = re.findall(r'(?:src|href)="(/assets/[0-9a-f]+/theme/[^"]+)"', page.text)
    served = {address.rpartition("/")[2]: await stage.http.get(address) for address in files}

    assert page.text.count("<live-stock") == 1 + len(stage.variants)
    assert f'data-proxy="/{DOMAIN}/apps/holdfast"' in page.text
    assert {*served} == {"live-stock.js", "live-stock.css"}
    for name, answer in served.items():
        assert answer.content == (ASSETS / name).read_bytes()
    assert f"connect-src 'self' {stage.double.state.app.address};" in page.headers["content-security-policy"]


async def test_a_variant_is_bought_and_shown_again(stage: PlatformStage) -> None:
    six = stage.variants[1]

    bought = await stage.http.post(f"/{DOMAIN}/cart/add", data={"id": str(six.id), "locale": "de"})
    page = await stage.http.get(bought.headers["location"])

    [order] = stage.double.orders(DOMAIN)
    location = f"{HONEY}?variant={six.id}&locale=de&order={order.id}"
    assert (bought.status_code, bought.headers["location"]) == (303, location)
    assert f'Ihre Bestellung ist eingegangen: <a href="/{DOMAIN}/orders/{order.id}">#1001</a>' in page.text
    assert stage.double.available(DOMAIN, six.id) == 7
    assert f'name="id" value="{six.id}" checked>' in page.text
    assert '<html lang="de">' in page.text
    assert 'data-out="Ausverkauft"' in page.text


@pytest.mark.parametrize("quantity", ["0", "-1", "2.5", "12345678", "many"])
async def test_a_quantity_that_is_none_is_refused_and_shown_again(stage: PlatformStage, quantity: str) -> None:
    refusal = await stage.http.post(f"/{DOMAIN}/cart/add", data={"id": str(stage.variants[1].id), "quantity": quantity})

    assert refusal.status_code == 422
    assert "A quantity is a whole number from 1 to 9999999." in refusal.text
    assert f'required value="{quantity}">' in refusal.text
    assert stage.double.orders(DOMAIN) == []


async def test_several_of_a_variant_are_bought_at_once(stage: PlatformStage) -> None:
    six = stage.variants[1]

    bought = await stage.http.post(f"/{DOMAIN}/cart/add", data={"id": str(six.id), "quantity": "3"})

    assert bought.status_code == 303
    assert stage.double.available(DOMAIN, six.id) == 5


async def test_a_theme_shows_the_number_of_the_shop_until_the_app_is_installed(stage: PlatformStage) -> None:
    await stage.http.post(f"/{DOMAIN}/uninstall")

    page = await stage.http.get(f"{HONEY}?locale=de")

    assert "<live-stock" not in page.text
    assert [page.text.count(f">{number} auf Lager<") for number in (50, 8, 4)] == [2, 2, 2]


async def test_a_product_page_says_that_a_variant_is_sold_out(stage: PlatformStage) -> None:
    stage.double.count(DOMAIN, stage.variants[2].id, 0)

    refusal = await stage.http.post(f"/{DOMAIN}/cart/add", data={"id": str(stage.variants[2].id)})

    assert refusal.status_code == 422
    assert "12-pack is sold out." in refusal.text


async def test_a_sold_out_pack_is_marked_and_another_one_is_chosen(stage: PlatformStage) -> None:
    single, six = stage.variants[:2]
    stage.double.count(DOMAIN, single.id, 0)

    page = await stage.http.get(HONEY)
    admin = await stage.http.get(f"/{DOMAIN}")

    assert re.findall(r'<div class="pack( sold-out)?">', page.text) == [" sold-out", "", ""]
    assert ["disabled" in radio for radio in re.findall(r'<input type="radio"[^>]*', page.text)] == [True, False, False]
    assert f'name="id" value="{six.id}" checked>' in page.text
    assert re.findall(r"<button[^>]*type=\"submit\"( disabled)?>Sell one", admin.text) == [" disabled", "", "", "", ""]


async def test_a_product_says_what_it_is_and_what_a_pack_saves(stage: PlatformStage) -> None:
    page = await stage.http.get(HONEY)

    assert "Mild blossom honey" in page.text
    assert "€5.50 each," in page.text
    assert "you save €3.00" in page.text


async def test_a_larger_pack_by_weight_has_a_price_for_comparison(stage: PlatformStage) -> None:
    page = await stage.http.get(f"/{DOMAIN}/products/green-tea?locale=de")

    assert "6,00\N{NO-BREAK SPACE}€ pro 100\N{NO-BREAK SPACE}g," in page.text
    assert "Sie sparen 2,50\N{NO-BREAK SPACE}€" in page.text


async def test_a_product_that_is_sold_out_cannot_be_bought(stage: PlatformStage) -> None:
    for variant in stage.variants[1:]:
        stage.double.count(DOMAIN, variant.id, 0)
    single_left = await stage.http.get(f"{HONEY}?variant={stage.variants[1].id}")
    stage.double.count(DOMAIN, stage.variants[0].id, 0)
    nothing_left = await stage.http.get(HONEY)

    assert f'name="id" value="{stage.variants[0].id}" checked>' in single_left.text
    assert '<button class="button" type="submit" data-currency="EUR">' in single_left.text
    assert '<button class="button" type="submit" data-currency="EUR" disabled>' in nothing_left.text


async def test_the_titles_of_the_demo_are_in_the_language_of_the_visitor(stage: PlatformStage) -> None:
    page = await stage.http.get(f"{HONEY}?locale=de")
    shop_page = await stage.http.get(f"/{DOMAIN}", headers={"accept-language": "de"})

    assert "<h1><bdi>Honiggläser</bdi></h1>" in page.text
    assert "<bdi>6er\N{NON-BREAKING HYPHEN}Pack</bdi>" in page.text
    assert "<bdi>Grüner Tee</bdi>" in shop_page.text


async def test_the_page_of_the_shop_leads_to_each_product(stage: PlatformStage) -> None:
    page = await stage.http.get(f"/{DOMAIN}")

    assert f'<a href="{HONEY}?variant={stage.variants[0].id}">' in page.text


async def test_products_that_are_not_there_have_no_page(stage: PlatformStage) -> None:
    [gone] = stage.double.add_product(DOMAIN, "Gone", [NewVariant("Gone", stock=1)])
    stage.double.remove_variant(DOMAIN, gone.id)
    paths = (f"/{DOMAIN}/products/soap", f"/{DOMAIN}/products/gone", "/other.myshopify.com/products/honey-jars")

    for path in paths:
        assert (await stage.http.get(path)).status_code == 404
    for id in ("", "x", "7", "9" * 30):
        assert (await stage.http.post(f"/{DOMAIN}/cart/add", data={"id": id})).status_code == 404


async def test_titles_of_others_are_shown_as_text(stage: PlatformStage) -> None:
    stage.double.add_product(DOMAIN, "<b>Soap</b> / 100 g", [NewVariant('"><i>', stock=1)])

    page = await stage.http.get(f"/{DOMAIN}/products/b-soap-b-100-g")

    assert "<bdi>&lt;b&gt;Soap&lt;/b&gt; / 100 g</bdi>" in page.text
    assert "<i>" not in page.text
