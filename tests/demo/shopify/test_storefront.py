"""The app proxy of a storefront: which requests it passes on to the app, and how it signs them."""

from urllib.parse import parse_qsl

from holdfast.inventory.shopify.signatures import verify_proxy_query
from holdfast_demo.shopify.app_proxy import signature
from tests.demo.shopify.stage import DOMAIN, SECRET, PlatformStage

AVAILABILITY = f"/{DOMAIN}/apps/holdfast/availability"


async def test_a_visitor_is_passed_on_to_the_app_with_a_signature_and_without_cookies(stage: PlatformStage) -> None:
    answer = await stage.http.get(AVAILABILITY, headers={"Cookie": "who=ada", "If-None-Match": '"7"'})
    [visit] = stage.visits

    assert verify_proxy_query(visit.url.query.encode(), [SECRET.encode()], stage.double.state.now()) == DOMAIN
    assert visit.url.path == "/-app/storefront/availability"
    assert "cookie" not in visit.headers
    assert visit.headers["x-forwarded-host"] == DOMAIN
    assert visit.headers["if-none-match"] == '"7"'
    assert answer.json() == {"variants": {}}
    assert answer.headers["etag"] == '"7"'
    assert "set-cookie" not in answer.headers


async def test_the_signature_of_the_app_proxy_covers_parameters_of_the_visitor(stage: PlatformStage) -> None:
    await stage.http.get(f"{AVAILABILITY}?extra=1&extra=2&shop=victim.myshopify.com")
    [visit] = stage.visits

    parameters = parse_qsl(visit.url.query, keep_blank_values=True)
    assert parameters[:3] == [("extra", "1"), ("extra", "2"), ("shop", "victim.myshopify.com")]
    signed = [pair for pair in parameters if pair[0] != "signature"]
    assert dict(parameters)["signature"] == signature(signed, SECRET)


async def test_the_signature_of_the_app_proxy_is_that_of_the_documentation() -> None:
    parameters = (
        "extra=1&extra=2&shop=shop-name.myshopify.com&logged_in_customer_id=1"
        "&path_prefix=%2Fapps%2Fawesome_reviews&timestamp=1317327555"
    )

    assert (
        signature(parse_qsl(parameters), "hush") == "4c68c8624d737112c91818c11017d24d334b524cb5c2b8ba08daa056f7395ddb"
    )


async def test_a_shop_that_does_not_exist_passes_no_visitor_on(stage: PlatformStage) -> None:
    assert (await stage.http.get("/other.myshopify.com/apps/holdfast/availability")).status_code == 404
    assert stage.visits == []
