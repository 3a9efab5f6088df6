"""The page on which a cart is paid at a shop of our own, where the app's function looks at it first."""

import json
from collections.abc import AsyncGenerator

import httpx2
import pytest

from holdfast_demo.shopify import checkout
from holdfast_demo.shopify.admin_api import metafields
from holdfast_demo.shopify.checkout import CheckoutStopped
from holdfast_demo.shopify.orders import SaleLine
from tests.demo.shopify.stage import DOMAIN, PlatformStage, run_platform_with_app

SINGLE, SIX = 0, 1


@pytest.fixture
async def stage() -> AsyncGenerator[PlatformStage]:
    async with run_platform_with_app() as stage:
        for variant, units in ((SINGLE, 1), (SIX, 6)):
            write(stage, variant, json.dumps({"v": 1, "until": "2999-01-01", "pools": [[4, units, 50]]}))
            stage.double.count(DOMAIN, stage.variants[variant].id, 50 // units)
        yield stage


def write(stage: PlatformStage, variant: int, value: str) -> None:
    metafield = {"ownerId": stage.variants[variant].gid, "namespace": "$app:stock", "key": "pools", "type": "json"}
    metafields.write(stage.double.state, stage.double.shop(DOMAIN), [{**metafield, "value": value}])


async def pay(stage: PlatformStage, *quantities: int, language: str = "en") -> httpx2.Response:
    form = {f"variant-{variant.id}": str(n) for variant, n in zip(stage.variants, (*quantities, 0), strict=False)}
    return await stage.http.post(f"/{DOMAIN}/cart", data=form, headers={"accept-language": language})


async def test_a_cart_that_takes_too_much_of_a_pool_is_stopped_before_payment(stage: PlatformStage) -> None:
    page = await stage.http.get(f"/{DOMAIN}/cart")
    assert page.status_code == 200
    assert "does not run here" not in page.text

    stopped = await pay(stage, 45, 1)

    assert stopped.status_code == 422
    assert "There is not enough left for" in stopped.text
    assert 'value="45"' in stopped.text
    assert "Jeweils allein" in (await pay(stage, 45, 1, language="de-DE")).text
    assert stage.double.orders(DOMAIN) == []

    paid = await pay(stage, 44, 1)

    (order,) = stage.double.orders(DOMAIN)
    assert (paid.status_code, paid.headers["location"]) == (303, f"/{DOMAIN}/orders/{order.id}")
    assert [(line.variant, line.quantity) for line in order.lines] == [
        (stage.variants[SINGLE].id, 44),
        (stage.variants[SIX].id, 1),
    ]


async def test_a_cart_that_is_stopped_says_what_it_costs_and_leaves_unwanted_fields_empty(stage: PlatformStage) -> None:
    form = {f"variant-{variant.id}": "" for variant in stage.variants}
    form |= {f"variant-{stage.variants[SINGLE].id}": "45", f"variant-{stage.variants[SIX].id}": "1"}

    stopped = await stage.http.post(f"/{DOMAIN}/cart", data=form)

    prices = [float(stage.variants[number].price) for number in (SINGLE, SIX)]
    assert stopped.status_code == 422
    assert f'<output id="total">€{45 * prices[0] + prices[1]:.2f}</output>' in stopped.text
    assert 'value="0"' not in stopped.text


async def test_the_function_gets_exactly_the_fields_of_its_query(stage: PlatformStage) -> None:
    check = checkout.cart_check()
    assert check
    shop, sold = stage.double.shop(DOMAIN), [SaleLine(stage.variants[SIX].id, 3)]
    write(stage, SINGLE, json.dumps({"text": "x" * checkout.MAX_METAFIELD_BYTES}))

    function_input = check.input_of(
        checkout.function_cart(stage.double.state, shop, sold, language="DE", step="CART_INTERACTION")
    )
    large = checkout.function_cart(
        stage.double.state, shop, [SaleLine(stage.variants[SINGLE].id, 3)], language="DE", step="CART"
    )

    assert function_input.keys() == {"buyerJourney", "localization", "shop", "cart"}
    assert function_input["localization"] == {"language": {"isoCode": "DE"}}
    assert function_input["cart"]["lines"] == [
        {
            "quantity": 3,
            "merchandise": {
                "__typename": "ProductVariant",
                "id": stage.variants[SIX].gid,
                "title": stage.variants[SIX].title,
                "product": {"title": stage.variants[SIX].product_title},
                "numbers": {"jsonValue": {"v": 1, "until": "2999-01-01", "pools": [[4, 6, 50]]}},
            },
        }
    ]
    assert large["cart"]["lines"][0]["merchandise"]["metafield"](None, key="pools", namespace="$app:stock") is None


async def test_a_shop_without_the_app_has_no_check(stage: PlatformStage) -> None:
    with pytest.raises(CheckoutStopped):
        await stage.double.buy(DOMAIN, SaleLine(stage.variants[SINGLE].id, 45), SaleLine(stage.variants[SIX].id, 1))
    stage.double.uninstall(DOMAIN)

    await stage.double.buy(DOMAIN, SaleLine(stage.variants[SINGLE].id, 45), SaleLine(stage.variants[SIX].id, 1))

    assert len(stage.double.orders(DOMAIN)) == 1


async def test_a_form_that_is_no_cart_is_refused_with_the_reason(stage: PlatformStage) -> None:
    for form in ({f"variant-{stage.variants[0].id}": "many"}, {"variant-x": "1"}, {"other": "1"}, {}):
        answer = await stage.http.post(f"/{DOMAIN}/cart", data=form)
        assert answer.status_code == 422, form
    assert (await stage.http.get("/nobody.myshopify.com/cart")).status_code == 404
    assert (await stage.http.post("/nobody.myshopify.com/cart", data={})).status_code == 404
