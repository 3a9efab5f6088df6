"""`set_webhook` has what happens in a shop posted to a program."""

from holdfast.inventory.webhooks.operations import MAX_ENDPOINTS
from tests.helpers.inventory_service import Shop

URL = "https://shop.example.com/webhooks"


async def test_a_new_endpoint_shows_its_secret_once(shop: Shop) -> None:
    made = (await shop.call("set_webhook", url=URL))["endpoint"]

    [listed] = (await shop.call("list_webhooks"))["data"]

    assert made["secret"].startswith("whsec_")
    assert listed == {name: value for name, value in made.items() if name != "secret"}


async def test_an_endpoint_is_changed_by_its_id(shop: Shop) -> None:
    made = (await shop.call("set_webhook", url=URL))["endpoint"]

    await shop.call("set_webhook", endpoint_id=made["id"], types=["stock.low"], active=False)

    [changed] = (await shop.call("list_webhooks"))["data"]
    assert (changed["url"], changed["types"], changed["status"]) == (URL, ["stock.low"], "paused")


async def test_an_endpoint_that_a_shop_does_not_have_is_not_found(shop: Shop) -> None:
    refusal = await shop.refusal("set_webhook", endpoint_id=2**31 - 1, active=False)

    assert refusal["code"] == "not_found"


async def test_a_type_that_is_not_sent_is_refused_with_the_choices(shop: Shop) -> None:
    refusal = await shop.refusal("set_webhook", url=URL, types=["stock.lost"])

    assert refusal["code"] == "validation_failed"
    assert refusal["errors"]["types"][0].startswith("stock.lost is not a type of message; choose from ")


async def test_a_shop_has_at_most_so_many_endpoints(shop: Shop) -> None:
    for _ in range(MAX_ENDPOINTS):
        await shop.call("set_webhook", url=URL)

    refusal = await shop.refusal("set_webhook", url=URL)

    assert refusal["code"] == "too_many_endpoints"
    assert refusal["message"] == f"The shop has {MAX_ENDPOINTS} endpoints of webhooks, and may have no more."
