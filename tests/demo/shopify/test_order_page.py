"""The page that confirms an order to its customer."""

import re

from tests.demo.shopify.stage import DOMAIN, PlatformStage


async def test_paying_for_a_cart_leads_to_a_page_with_the_number_and_the_lines_of_the_order(
    stage: PlatformStage,
) -> None:
    single, six = stage.variants[:2]

    paid = await stage.http.post(f"/{DOMAIN}/cart", data={f"variant-{single.id}": "2", f"variant-{six.id}": "1"})
    page = await stage.http.get(paid.headers["location"])

    [order] = stage.double.orders(DOMAIN)
    assert (paid.status_code, paid.headers["location"]) == (303, f"/{DOMAIN}/orders/{order.id}")
    assert "Order <strong>#1001</strong>" in page.text
    lines = re.findall(r"<span>(\d+) \S <bdi>Honey jars</bdi>, <bdi>(.*?)</bdi></span>", page.text)
    assert lines == [("2", "Single"), ("1", "6-pack")]
    assert "Total <strong>€45.00</strong>" in page.text
    assert f'href="/{DOMAIN}?tab=orders#order-{order.id}"' in page.text


async def test_an_order_that_does_not_exist_has_no_page(stage: PlatformStage) -> None:
    for path in (f"/{DOMAIN}/orders/7", "/other.myshopify.com/orders/7"):
        assert (await stage.http.get(path)).status_code == 404
