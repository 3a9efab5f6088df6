"""Installing the app: from `/auth` to the platform and back."""

import hmac
import re
import time
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from holdfast.inventory.installs import operations
from holdfast.inventory.installs.access import shop_access
from holdfast.inventory.installs.routes import InstallStates
from holdfast.inventory.shopify import signatures
from holdfast.inventory.shopify.domains import REQUIRED
from holdfast.inventory.shopify.platform_tokens import GrantedTokens
from holdfast.inventory.shops import operations as shops
from holdfast.kit.contract.problems import Problem
from holdfast.kit.security.service_secret import Secret
from tests.helpers.inventory_service import Inventory
from tests.helpers.platform_shop import BASE_URL, CLIENT, DOMAIN, KEY_PATTERN, SECRET, PlatformScene, key_in


async def test_the_merchant_is_sent_to_the_platform_with_the_four_scopes(scene: PlatformScene) -> None:
    answer = await scene.begin()

    assert answer.status_code == 302
    place = urlsplit(answer.headers["location"])
    assert f"{place.scheme}://{place.netloc}{place.path}" == (
        scene.inventory.settings.platform_address.replace("{shop}", DOMAIN) + "/admin/oauth/authorize"
    )
    parameters = {name: values[0] for name, values in parse_qs(place.query).items()}
    assert parameters == {
        "client_id": CLIENT,
        "scope": "read_products,write_inventory,read_orders,read_locations",
        "redirect_uri": f"{BASE_URL}/auth/install",
        "state": parameters["state"],
    }
    assert len(parameters["state"]) == 43
    assert answer.headers["cache-control"] == "no-store"


async def test_the_state_is_in_a_cookie_for_a_minute_that_only_the_end_of_the_install_gets(
    scene: PlatformScene,
) -> None:
    cookie = (await scene.begin()).headers["set-cookie"]

    value, _, attributes = cookie.partition("; ")
    assert re.fullmatch(r"__Secure-install=[\w-]{43}\.\d+\.[0-9a-f]{64}", value)
    assert attributes == "Path=/auth/install; Max-Age=60; HttpOnly; Secure; SameSite=Lax"


async def test_a_new_shop_gets_its_key_once_and_the_platform_can_be_called(scene: PlatformScene) -> None:
    page = await scene.install()

    assert page.status_code == 200, page.text
    shop = await scene.find_shop(key_in(page.text))
    assert await shop.call("list_pools") == {"pools": [], "next_cursor": None}
    assert f"{BASE_URL}/mcp" in page.text
    assert "The settings of the app show it at any time." in page.text
    assert page.headers["set-cookie"].startswith("__Secure-install=; Path=/auth/install; Max-Age=0;")
    assert (await shop_access(scene.steps, shop.id)).token
    scopes, uninstalled, broken = await scene.row("scopes, uninstalled_at, broken")
    assert (sorted(scopes), uninstalled, broken) == (sorted(REQUIRED), None, None)


async def test_tokens_are_encrypted_where_they_are_stored(scene: PlatformScene) -> None:
    await scene.install()
    shop = await scene.find_shop()
    token = (await shop_access(scene.steps, shop.id)).token

    rows = await scene.inventory.sql("select platform_tokens::text from platform_tokens")

    assert token not in str(rows)
    assert scene.inventory.database.resources.secret.unseal((await scene.row("sealed", "platform_tokens"))[0])


async def test_the_end_of_an_install_is_shown_in_the_language_of_the_browser(scene: PlatformScene) -> None:
    query = await scene.agree(await scene.begin())

    page = await scene.come_back(query, **{"accept-language": "de"})

    assert "Ihr Shop ist verbunden" in page.text


async def test_a_shop_that_installs_again_keeps_its_key_and_its_pools(scene: PlatformScene) -> None:
    first = await scene.install()
    shop = await scene.find_shop(key_in(first.text))
    pool = await shop.create_pool(50)

    again = await scene.install()

    assert again.status_code == 200
    assert not KEY_PATTERN.search(again.text)
    assert "are as they were" in again.text
    assert await shop.on_hand(pool["id"]) == 50


async def test_a_shop_that_an_operator_has_added_can_be_connected_later(scene: PlatformScene) -> None:
    _, key = await scene.inventory.database.transact(lambda tx: shops.add(tx, DOMAIN))

    page = await scene.install()

    assert not KEY_PATTERN.search(page.text)
    shop = await scene.find_shop(key)
    assert await shop.call("list_pools") == {"pools": [], "next_cursor": None}
    assert (await shop_access(scene.steps, shop.id)).token


async def test_a_link_of_the_platform_to_auth_is_accepted_only_with_a_valid_signature(scene: PlatformScene) -> None:
    now = time.time()
    good = signatures.sign_query({"shop": DOMAIN}, SECRET.encode(), now)
    forged = signatures.sign_query({"shop": DOMAIN}, b"another secret", now)
    old = signatures.sign_query({"shop": DOMAIN}, SECRET.encode(), now - 91)

    assert [(await scene.begin(query)).status_code for query in (good, forged, old)] == [302, 401, 401]


NO_SHOPS = [
    "",
    "shop=",
    "shop=ada",
    "shop=ADA.myshopify.com",
    "shop=evil.example.com",
    "shop=ada.myshopify.com.evil.example.com",
    "shop=ada.myshopify.com%0d%0aSet-Cookie:%20a=b",
    "shop=evil.example.com%2fada.myshopify.com",
    "shop=ada.myshopify.com&shop=ben.myshopify.com",
    "shop=%ff",
]


async def test_an_install_for_an_invalid_shop_domain_is_refused_without_a_redirect(scene: PlatformScene) -> None:
    for query in NO_SHOPS:
        answer = await scene.begin(query)

        assert (query, answer.status_code in {400, 422}) == (query, True)
        assert "location" not in answer.headers
        assert "Your shop is not connected" in answer.text


async def assert_refused(scene: PlatformScene, query: str, status: int, text: str) -> None:
    """Come back from the platform: assert that it is refused, and that nothing is stored."""
    page = await scene.come_back(query)

    assert (page.status_code, text in page.text) == (status, True), page.text
    assert await scene.inventory.sql("select from shops") == []


async def test_an_install_finished_in_another_browser_is_refused(scene: PlatformScene) -> None:
    query = await scene.agree(await scene.begin())
    scene.cookie = ""
    await assert_refused(scene, query, 400, "in another browser")


async def test_an_install_finished_with_the_cookie_of_another_one_is_refused(scene: PlatformScene) -> None:
    query = await scene.agree(await scene.begin())
    await scene.begin()
    await assert_refused(scene, query, 400, "in another browser")


async def test_an_install_finished_with_the_cookie_of_another_shop_is_refused(scene: PlatformScene) -> None:
    query = await scene.agree(await scene.begin())
    state = parse_qs(query)["state"][0]
    states = InstallStates(scene.inventory.database.resources.secret, BASE_URL)
    _, (_, cookie) = states.begin("ben.myshopify.com", time.time())
    value = cookie.decode().partition(";")[0].partition("=")[2]
    scene.cookie = f"{states.cookie_name}={state}.{value.partition('.')[2]}"
    await assert_refused(scene, query, 400, "in another browser")


async def test_an_install_with_a_forged_signature_is_refused(scene: PlatformScene) -> None:
    query = await scene.agree(await scene.begin())
    parameters = {name: values[0] for name, values in parse_qs(query).items() if name != "hmac"}
    forged = {**parameters, "hmac": signatures.query_signature(parameters, b"another secret")}
    await assert_refused(scene, urlencode(forged), 401, "does not come from your shop")


async def test_an_install_without_a_signature_is_refused(scene: PlatformScene) -> None:
    await scene.begin()
    await assert_refused(scene, f"shop={DOMAIN}&code=1", 401, "does not come from your shop")


async def test_an_install_for_another_shop_than_was_signed_is_refused(scene: PlatformScene) -> None:
    query = await scene.agree(await scene.begin())
    await assert_refused(scene, query.replace("ada.", "ben."), 401, "does not come from your shop")


async def test_an_install_with_a_used_code_is_refused(scene: PlatformScene) -> None:
    query = await scene.agree(await scene.begin())
    parameters = {name: values[0] for name, values in parse_qs(query).items() if name not in {"hmac", "timestamp"}}
    other = signatures.sign_query({**parameters, "code": "0" * 32}, SECRET.encode(), time.time())
    await assert_refused(scene, other, 400, "Each attempt works once")


async def test_an_install_while_the_platform_is_unreachable_is_refused(
    scene: PlatformScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = await scene.agree(await scene.begin())
    platform = scene.inventory.database.resources.platform
    monkeypatch.setattr(platform, "_address", "http://127.0.0.1:9/{shop}")  # nobody listens there
    await assert_refused(scene, query, 503, "cannot be reached right now")


async def test_an_install_with_too_few_scopes_is_refused(scene: PlatformScene) -> None:
    begun = await scene.begin()
    begun.headers["location"] = begun.headers["location"].replace("%2Cread_orders", "")
    await assert_refused(scene, await scene.agree(begun), 403, "it cannot count your stock")


async def test_an_install_finished_a_second_time_is_refused(scene: PlatformScene) -> None:
    query = await scene.agree(await scene.begin())
    assert (await scene.come_back(query)).status_code == 200

    assert (await scene.come_back(query)).status_code == 400
    assert len(await scene.inventory.sql("select from shops")) == 1


async def test_the_state_ends_after_a_minute_and_belongs_to_one_shop_and_one_secret() -> None:
    states = InstallStates(Secret(b"s" * 32), "https://a.test")
    state, (_, header) = states.begin(DOMAIN, 1000.0)
    cookie = header.decode().partition(";")[0].partition("=")[2]
    other = InstallStates(Secret(b"t" * 32), "https://a.test")

    assert states.accepts(DOMAIN, state, cookie, 1060)
    for is_accepted in (
        states.accepts(DOMAIN, state, cookie, 1061),
        states.accepts("ben.myshopify.com", state, cookie, 1000),
        states.accepts(DOMAIN, "", cookie, 1000),
        states.accepts(DOMAIN, "é", cookie, 1000),
        states.accepts(DOMAIN, state, cookie.replace(".1060.", ".9999."), 1000),
        states.accepts(DOMAIN, state, "é", 1000),
        states.accepts(DOMAIN, state, "", 1000),
        other.accepts(DOMAIN, state, cookie, 1000),
    ):
        assert not is_accepted


async def test_a_state_cookie_is_refused_as_a_signature_of_the_platform(scene: PlatformScene) -> None:
    """The key that signs cookies is not the client secret: so a cookie passes for nothing else."""
    cookie = (await scene.begin()).headers["set-cookie"].partition("=")[2].partition(";")[0]
    state, until, signed = cookie.split(".")

    message = f"{DOMAIN} {state} {until}".encode()
    assert hmac.digest(SECRET.encode(), message, "sha256").hex() != signed


async def test_an_app_that_is_not_set_up_says_so(inventory: Inventory) -> None:
    answer = await inventory.http.get(f"/auth?shop={DOMAIN}")

    assert (answer.status_code, "has not set the app up yet" in answer.text) == (503, True)


async def test_a_shop_whose_data_is_being_deleted_cannot_install_the_app(scene: PlatformScene) -> None:
    await scene.install()
    await scene.inventory.sql("update installs set uninstalled_at = now(), redacted_at = now()")
    granted = GrantedTokens("shpat", ",".join(REQUIRED))

    async def again(tx: Any) -> Any:
        return await operations.install(tx, DOMAIN, granted, ())

    with pytest.raises(Problem, match="is being deleted"):
        await scene.inventory.database.transact(again)
