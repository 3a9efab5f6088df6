"""The pages on which newcomers sell and watch, as browsers get them."""

import re
from html import unescape
from urllib.parse import SplitResult, parse_qsl, urlsplit

import httpx2
import jwt

from holdfast_demo.shopify.orders import SaleLine
from holdfast_demo.shopify.shops import DOMAIN_RULE, NewVariant
from tests.demo.shopify.stage import ADDRESS, CLIENT, DOMAIN, SECRET, PlatformStage, run_platform

SHOP = f"/{DOMAIN}"
ORDERS = f"{SHOP}?tab=orders"


async def press(stage: PlatformStage, button: str, **fields: object) -> httpx2.Response:
    """What a button of the shop's page is answered."""
    return await stage.http.post(f"{SHOP}/{button}", data={name: str(value) for name, value in fields.items()})


async def test_a_newcomer_opens_a_shop_and_finds_honey_in_it() -> None:
    async with run_platform() as stage:
        empty = await stage.http.get("/")
        opened = await stage.http.post("/", data={"domain": "My-Shop.myshopify.com"})
        page = await stage.http.get(opened.headers["location"])
        again = await stage.http.post("/", data={"domain": "my-shop.myshopify.com"})
        wrong = await stage.http.post("/", data={"domain": "my-shop.example.com"})
        listed = await stage.http.get("/")

    assert "There is no shop yet." in empty.text
    assert "Honey jars" in page.text
    assert 'href="/my-shop.myshopify.com/admin/apps/holdfast"' in page.text
    assert (again.status_code, wrong.status_code) == (422, 422)
    assert "is there already" in again.text
    assert f"This is not a domain of a shop. {DOMAIN_RULE}" in wrong.text
    assert 'id="domain-note">Letters from a to z, digits and hyphens, then .myshopify.com.' in empty.text
    assert '<a href="/my-shop.myshopify.com">' in listed.text


async def test_orders_are_found_by_their_number_and_by_what_was_sold(stage: PlatformStage) -> None:
    for variant in stage.variants[:2]:
        await press(stage, "sell", variant=variant.id)

    async def numbers(search: str, language: str = "en") -> list[str]:
        page = await stage.http.get(SHOP, params={"tab": "orders", "q": search}, headers={"Accept-Language": language})
        return re.findall(r"<h2>(#\d+)", page.text)

    assert await numbers("") == ["#1002", "#1001"]
    assert await numbers("1001") == ["#1001"]
    assert await numbers(" 6-PACK ") == ["#1002"]
    assert await numbers("honey jars") == ["#1002", "#1001"]
    assert await numbers("honiggläser", "de") == ["#1002", "#1001"]
    assert await numbers("einzeln", "de") == ["#1001"]
    assert await numbers("einzeln") == []
    nothing = await stage.http.get(SHOP, params={"tab": "orders", "q": "<soap>"})
    assert "No order found." in nothing.text
    assert 'value="&lt;soap&gt;"' in nothing.text


async def test_a_pack_is_sold_and_the_page_shows_the_rest_and_the_sent_webhooks(stage: PlatformStage) -> None:
    await stage.subscribe("ORDERS_CREATE")

    sold = await press(stage, "sell", variant=stage.variants[1].id)
    await stage.recorder.wait_for("orders/create")
    page = await stage.http.get(SHOP)
    orders = await stage.http.get(ORDERS)
    messages = await stage.http.get(f"{SHOP}?tab=developers")

    assert (sold.status_code, sold.headers["location"]) == (303, SHOP)
    assert re.search("<strong data-count=[^>]*>7</strong>", page.text)
    assert "#1001" in orders.text
    [order] = stage.double.orders(DOMAIN)
    in_admin = await stage.http.get(f"{SHOP}/admin/orders/{order.id}")
    assert in_admin.headers["location"] == f"{ORDERS}#order-{order.id}"
    assert f'id="order-{order.id}"' in orders.text
    assert (await stage.http.get(f"{SHOP}/admin/orders/1")).status_code == 404
    assert "orders/create" in messages.text


async def test_orders_are_sent_cancelled_and_taken_back_by_buttons(stage: PlatformStage) -> None:
    for _ in range(3):
        await press(stage, "sell", variant=stage.variants[0].id)
    first, second, third = (order.id for order in stage.double.orders(DOMAIN))

    await press(stage, "send", order=first)
    await press(stage, "cancel", order=second)
    returned = await press(stage, "return", order=third)
    page = await stage.http.get(returned.headers["location"])
    refusal = await press(stage, "return", order=third)

    assert stage.double.available(DOMAIN, stage.variants[0].id) == 49
    assert [page.text.count(f">{status}</span>") for status in ("Sent", "Cancelled", "Returned")] == [1, 1, 1]
    assert page.text.count("(1 came back)") == 2
    assert re.findall(r"<button[^>]*>([^<]*)<span", page.text) == ["Return one pack"]
    assert refusal.status_code == 422
    assert "Nothing of this order is left" in refusal.text


async def test_stock_is_counted_by_hand(stage: PlatformStage) -> None:
    place = stage.double.locations(DOMAIN)[0].id
    page = await stage.http.get(f"{SHOP}/variants/{stage.variants[0].id}")

    counted = await press(stage, "count", variant=stage.variants[0].id, location=place, available=12)
    wrong = await press(stage, "count", variant=stage.variants[0].id, location=place, available="a dozen")
    huge = await press(stage, "count", variant=stage.variants[0].id, location=place, available=10**12)

    assert 'name="available" inputmode="numeric" maxlength="11" required autocomplete="off" value="50"' in page.text
    assert "sold and not sent yet" not in page.text
    assert counted.status_code == 303
    assert stage.double.available(DOMAIN, stage.variants[0].id) == 12
    assert "A whole number is expected as available." in wrong.text
    assert huge.status_code == 422


async def test_the_page_of_a_shop_says_that_a_variant_is_sold_out(stage: PlatformStage) -> None:
    stage.double.count(DOMAIN, stage.variants[2].id, 0)

    refusal = await press(stage, "sell", variant=stage.variants[2].id)

    assert refusal.status_code == 422
    assert "12-pack is sold out." in refusal.text


async def test_the_app_is_shown_in_a_frame_with_a_session_token_and_removed(stage: PlatformStage) -> None:
    opened = await stage.http.get(f"{SHOP}/admin/apps/holdfast")
    deeper = await stage.http.get(f"{SHOP}/admin/apps/{CLIENT}/console/settings")
    framed = frame_address(opened)
    parameters = dict(parse_qsl(framed.query))

    removed = await press(stage, "uninstall")
    page = await stage.http.get(SHOP)

    assert jwt.decode(parameters["id_token"], SECRET, ["HS256"], audience=CLIENT)["dest"] == f"https://{DOMAIN}"
    assert (parameters["shop"], parameters["embedded"]) == (DOMAIN, "1")
    assert f"{framed.scheme}://{framed.netloc}{framed.path}" == f"{ADDRESS}/-app/console"
    assert frame_address(deeper).path.endswith("/-app/console/settings")
    assert f"frame-src {ADDRESS}/-app" in opened.headers["content-security-policy"]
    assert (await stage.http.get(f"{SHOP}/admin")).text == page.text
    assert removed.status_code == 303
    assert "Holdfast is not installed" in page.text
    assert (await press(stage, "uninstall")).status_code == 422


async def test_an_app_that_is_not_there_yet_is_installed_in_the_admin(stage: PlatformStage) -> None:
    await press(stage, "uninstall")

    page = await stage.http.get(f"{SHOP}/admin/apps/holdfast")
    agreed = await stage.http.post(f"{SHOP}/admin/apps/holdfast")
    opened = await stage.http.get(f"{SHOP}/admin/apps/holdfast")

    assert "<iframe" not in page.text
    assert "read_locations" in page.text
    assert agreed.status_code == 303
    assert frame_address(opened).query
    for gone in (f"{SHOP}/admin/apps/another", "/nobody.myshopify.com/admin/apps/holdfast"):
        assert (await stage.http.get(gone)).status_code == 404
        assert (await stage.http.post(gone)).status_code == 404


async def test_the_script_for_pages_of_apps_has_a_fresh_session_token_each_time(stage: PlatformStage) -> None:
    script = await stage.http.get("/app-bridge.js")
    tokens = [(await stage.http.get(f"{SHOP}/admin/session-token")).json()["token"] for _ in range(2)]

    assert script.headers["content-type"].startswith("text/javascript")
    assert tokens[0] != tokens[1]
    assert {jwt.decode(token, SECRET, ["HS256"], audience=CLIENT)["sub"] for token in tokens} == {"1"}
    assert (await stage.http.get("/nobody.myshopify.com/admin/session-token")).status_code == 404


def frame_address(page: httpx2.Response) -> SplitResult:
    """The address of what the frame in a page shows."""
    match = re.search(r'<iframe src="([^"]*)"', page.text)
    assert match, page.text
    return urlsplit(unescape(match[1]))


async def test_a_message_is_sent_again_by_a_button(stage: PlatformStage) -> None:
    await stage.subscribe("ORDERS_CREATE")
    await press(stage, "sell", variant=stage.variants[0].id)
    heard = await stage.recorder.wait_for("orders/create")

    await press(stage, "again", webhook=heard.headers["x-shopify-webhook-id"])

    again = await stage.recorder.wait_for("orders/create", 2)
    assert again.body == heard.body


async def test_texts_of_merchants_are_escaped_on_the_pages_of_a_shop(stage: PlatformStage) -> None:
    [made] = stage.double.add_product(DOMAIN, "<script>alert(1)</script>", [NewVariant("<b>bold</b>", stock=1)])
    await press(stage, "sell", variant=made.id)

    for path in (SHOP, f"{SHOP}/variants/{made.id}"):
        page = await stage.http.get(path)
        assert "<script>" not in page.text
        assert "<bdi>&lt;b&gt;bold&lt;/b&gt;</bdi>" in page.text


async def test_pages_of_nothing_say_so(stage: PlatformStage) -> None:
    for path in ("/other.myshopify.com", "/<b>.myshopify.com", f"{SHOP}/variants/7", "/other.myshopify.com/variants/7"):
        page = await stage.http.get(path)
        assert page.status_code == 404
        assert "This page does not exist." in page.text
        assert "<b>" not in page.text
    sold = await stage.http.post("/other.myshopify.com/sell", data={"variant": "7"})
    assert sold.status_code == 404


async def test_the_pages_of_a_shop_are_in_the_language_of_the_browser(stage: PlatformStage) -> None:
    sold = stage.double.sell(DOMAIN, SaleLine(stage.variants[0].id, 1))
    words_by_path = {
        "/": "Demo-Shops",
        SHOP: "Live ansehen",
        ORDERS: "Noch zu versenden",
        f"{SHOP}?tab=developers": "Nachrichten an Holdfast",
        f"{SHOP}/variants/{stage.variants[0].id}": "Bestand von Hand ändern",
        f"{SHOP}/products/honey-jars": "Packung wählen",
        f"{SHOP}/cart": "Bestellen",
        f"{SHOP}/orders/{sold.id}": "6,00\xa0€",
        f"{SHOP}/side-by-side": "Holdfast ist installiert.",
        f"{SHOP}/admin/apps/holdfast": "Zurück zum Shop",
        "/other.myshopify.com": "Diese Seite gibt es nicht.",
    }

    for path, words in words_by_path.items():
        page = await stage.http.get(path, headers={"Accept-Language": "de-DE,de;q=0.9"})
        assert words in page.text, path
        assert '<html lang="de">' in page.text
