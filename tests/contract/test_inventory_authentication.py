"""The inventory's contract, section Authentication, sentence by sentence, beside a platform that checks everything.

All tests share a service; where one changes a shop, the shop is its own.
"""

import time
from collections.abc import AsyncGenerator
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
import pytest_asyncio

from holdfast.inventory.installs.access import shop_access
from holdfast.inventory.shopify import signatures
from holdfast.inventory.shops import operations as shops
from tests.contract.requirements import requirement
from tests.helpers.databases import scratch_database
from tests.helpers.inventory_service import TOOLS, Shop, unlimited
from tests.helpers.platform_shop import BASE_URL, DOMAIN, SECRET, PlatformScene, open_platform_scene
from tests.inventory.samples import ARGUMENTS

pytestmark = pytest.mark.asyncio(loop_scope="module")

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
REQUIRED = {"read_products", "write_inventory", "read_orders", "read_locations"}
SCOPES = {"read_inventory", "write_inventory", "read_pools", "write_pools"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(inventory_template: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[PlatformScene]:
    with scratch_database(inventory_template, "contract") as url:
        async with open_platform_scene(unlimited(url, tmp_path_factory.mktemp("data"))) as scene:
            yield scene


@pytest_asyncio.fixture(loop_scope="module")
async def shop(scene: PlatformScene) -> Shop:
    return await scene.inventory.create_shop()


def is_refused(answer: httpx2.Response, status: int = 401) -> bool:
    """Whether an answer is the error body of the contract, with this status."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert body.keys() == {"error", "message"}
    return all(isinstance(text, str) and text for text in body.values())


# 1. The agent endpoint requires a per-shop Bearer token.


@requirement("inventory.auth.1.bearer")
@pytest.mark.parametrize("header", ["", "Bearer ", f"Bearer hf_{'x' * 43}", "Bearer a.b.c", "Basic YTpi"])
async def test_the_agent_endpoint_without_a_valid_token_is_answered_with_401(scene: PlatformScene, header: str) -> None:
    headers = {"authorization": header} if header else {}

    posted = await scene.inventory.http.post("/mcp", json=PING, headers=headers)
    opened = await scene.inventory.http.get("/mcp", headers={**headers, "accept": "text/event-stream"})

    assert is_refused(posted)
    assert is_refused(opened)


@requirement("inventory.auth.1.bearer")
async def test_the_agent_endpoint_accepts_the_key_of_a_shop(shop: Shop) -> None:
    assert (await shop.post_message(PING)).json() == {"jsonrpc": "2.0", "id": 1, "result": {}}


# 2. The key can be copied or generated.  3. Regenerating it makes the previous one invalid at once.


@requirement("inventory.auth.2.key")
async def test_the_key_of_a_shop_can_be_copied(scene: PlatformScene, shop: Shop) -> None:
    assert await scene.inventory.database.transact(lambda tx: shops.show_key(tx, shop.id)) == shop.key


@requirement("inventory.auth.2.key", "inventory.auth.3.regenerate")
async def test_a_generated_key_works_and_the_one_before_it_does_not(scene: PlatformScene, shop: Shop) -> None:
    old = shop.key
    assert (await shop.post_message(PING)).status_code == 200

    shop.key = await scene.inventory.database.transact(lambda tx: shops.regenerate_key(tx, shop.id))

    assert (await shop.post_message(PING)).status_code == 200
    assert is_refused(await shop.post_message(PING, authorization=f"Bearer {old}"))


# 4. The scopes of a key; it reaches its own shop alone.


@requirement("inventory.auth.4.scopes")
async def test_every_tool_needs_one_of_the_four_scopes(scene: PlatformScene) -> None:
    assert {tool.scope for tool in TOOLS.values()} == SCOPES


@requirement("inventory.auth.4.scopes")
@pytest.mark.parametrize("scope", sorted(SCOPES))
async def test_a_key_without_a_scope_may_not_call_the_tools_of_this_scope(scene: PlatformScene, scope: str) -> None:
    shop = await scene.inventory.create_shop(*(SCOPES - {scope}))

    for name, tool in TOOLS.items():
        if tool.scope == scope:
            answer = await shop.send_call(name, ARGUMENTS[name])
            assert (name, answer.status_code) == (name, 403)
            assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]


@requirement("inventory.auth.4.own-shop")
async def test_a_key_reaches_the_data_of_its_own_shop_alone(scene: PlatformScene, shop: Shop) -> None:
    other = await scene.inventory.create_shop()
    pool = await other.create_pool(50)

    assert (await shop.refusal("get_pool", pool_id=pool["id"]))["code"] == "not_found"
    assert (await shop.call("list_pools"))["pools"] == []


# 5. Merchants install by OAuth 2.0 with four scopes; pages inside the platform exchange session tokens.


@requirement("inventory.auth.5.begin", "inventory.auth.5.scopes")
async def test_auth_sends_the_merchant_to_the_platform_and_names_where_to_come_back_to(scene: PlatformScene) -> None:
    begun = await scene.begin()

    assert begun.status_code == 302
    query = parse_qs(urlsplit(begun.headers["location"]).query)
    assert query["redirect_uri"] == [f"{BASE_URL}/auth/install"]
    assert set(query["scope"][0].split(",")) == REQUIRED
    assert urlsplit(begun.headers["location"]).path == f"/{DOMAIN}/admin/oauth/authorize"


@requirement("inventory.auth.5.scopes")
@pytest.mark.parametrize("scope", sorted(REQUIRED))
async def test_a_merchant_who_refuses_a_scope_does_not_install_the_app(scene: PlatformScene, scope: str) -> None:
    begun = await scene.begin()
    fewer = ",".join(sorted(REQUIRED - {scope}))
    location = begun.headers["location"].partition("&scope=")
    begun.headers["location"] = f"{location[0]}&scope={fewer}&{location[2].partition('&')[2]}"

    page = await scene.come_back(await scene.agree(begun))

    assert page.status_code == 403
    assert await scene.inventory.sql("select from installs") == []


@requirement("inventory.auth.5.install")
async def test_a_merchant_who_agrees_has_the_app_and_a_key_that_works(scene: PlatformScene) -> None:
    page = await scene.install()

    assert page.status_code == 200
    id = (await scene.find_shop()).id
    key = await scene.inventory.database.transact(lambda tx: shops.show_key(tx, id))
    assert key in page.text
    shop = await scene.find_shop(key)
    assert await shop.call("list_pools") == {"pools": [], "next_cursor": None}
    assert (await shop_access(scene.steps, shop.id)).domain == DOMAIN


@requirement("inventory.auth.5.session-token")
async def test_a_page_inside_the_platform_shows_who_it_is_by_a_session_token(scene: PlatformScene) -> None:
    domain = "ben.myshopify.com"
    scene.platform.open(domain)
    scene.platform.install(domain)
    token = scene.platform.oauth.session_token(domain)

    answer = await scene.inventory.http.post("/auth/session", headers={"authorization": f"Bearer {token}"})
    refusal = await scene.inventory.http.post("/auth/session", headers={"authorization": f"Bearer {token[:-1]}"})

    assert (answer.status_code, answer.json()["shop"]) == (200, domain)
    shop_id = (await scene.inventory.database.read(lambda reader: shops.find(reader, domain))).id
    assert (await shop_access(scene.steps, shop_id)).token
    assert is_refused(refusal)
    assert refusal.headers["x-shopify-retry-invalid-session-request"] == "1"


# 6. The storefront endpoint is authenticated by the app proxy's signature.


@requirement("inventory.auth.6.proxy")
async def test_the_storefront_endpoint_answers_what_the_app_proxy_signed_and_nothing_else(
    scene: PlatformScene, shop: Shop
) -> None:
    signed = signatures.sign_proxy_query(shop.domain, SECRET.encode(), time.time())
    forged = signatures.sign_proxy_query(shop.domain, b"another secret", time.time())
    bearer = {"authorization": f"Bearer {shop.key}"}
    ask = scene.inventory.http.get

    answer = await ask(f"/storefront/availability?{signed}")

    assert answer.status_code == 200
    assert answer.json().keys() == {"shared_inventory_id", "variants", "stream_url"}
    for query in (forged, f"shop={shop.domain}", ""):
        assert is_refused(await ask(f"/storefront/availability?{query}", headers=bearer))
