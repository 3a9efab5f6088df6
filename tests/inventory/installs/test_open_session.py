"""POST /auth/session: pages inside the platform's admin sign in with a session token."""

import base64
import time
from typing import Any

import httpx2

from holdfast.inventory.installs.access import shop_access
from tests.helpers.platform_shop import DOMAIN, PlatformScene, key_in
from tests.inventory.sync.platform_rows import withdraw_access

NESTED = base64.urlsafe_b64encode(b'{"x":' + b"[" * 2_000).rstrip(b"=").decode()
"""The header of a token, nested too deeply to be read."""


async def open_session(scene: PlatformScene, token: str | None) -> httpx2.Response:
    headers = {"authorization": f"Bearer {token}"} if token is not None else {}
    return await scene.inventory.http.post("/auth/session", headers=headers)


async def test_a_shop_that_only_the_platform_knows_of_is_installed_by_token_exchange(scene: PlatformScene) -> None:
    scene.platform.install(DOMAIN)

    answer = await open_session(scene, scene.platform.oauth.session_token(DOMAIN))

    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    data = answer.json()
    shop = await scene.find_shop(data["api_key"])
    assert data["shop"] == DOMAIN
    assert (await shop.read_storefront()).json()["shared_inventory_id"] == data["shared_inventory_id"]
    assert (await shop_access(scene.steps, shop.id)).token


async def test_a_shop_that_is_connected_is_named_and_nothing_is_exchanged(scene: PlatformScene) -> None:
    key = key_in((await scene.install()).text)
    before = await scene.row("generation", "platform_tokens")

    data = (await open_session(scene, scene.platform.oauth.session_token(DOMAIN))).json()

    assert (data["shop"], data["api_key"]) == (DOMAIN, None)
    shop = await scene.find_shop(key)
    assert await shop.call("list_pools") == {"pools": [], "next_cursor": None}
    assert await scene.row("generation", "platform_tokens") == before


async def test_a_shop_with_withdrawn_tokens_is_connected_again_when_its_merchant_opens_the_app(
    scene: PlatformScene,
) -> None:
    await scene.install()
    await withdraw_access(scene.inventory)
    await scene.inventory.sql("update installs set broken = 'The access was withdrawn.'")

    assert (await open_session(scene, scene.platform.oauth.session_token(DOMAIN))).status_code == 200

    assert await scene.row("broken") == (None,)
    assert (await shop_access(scene.steps, (await scene.find_shop()).id)).token


async def test_a_session_token_that_is_none_is_refused_so_that_a_fresh_one_is_sent(scene: PlatformScene) -> None:
    changed: list[dict[str, Any]] = [
        {"aud": "another app"},
        {"iss": "https://ben.myshopify.com/admin"},
        {"exp": 0},
        {"nbf": time.time() + 60},
    ]
    tokens = [scene.platform.oauth.session_token(DOMAIN, **claims) for claims in changed]

    for token in (*tokens, None, "", "a.b.c", "hf_" + "a" * 43, f"{NESTED}.e30.{'A' * 43}"):
        answer = await open_session(scene, token)

        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_session_token"), token
        assert answer.headers["x-shopify-retry-invalid-session-request"] == "1"
    assert await scene.inventory.sql("select from shops") == []


async def test_a_session_token_of_a_shop_without_the_app_is_refused_by_the_platform(scene: PlatformScene) -> None:
    answer = await open_session(scene, scene.platform.oauth.session_token(DOMAIN))

    assert (answer.status_code, answer.json()["error"]) == (400, "platform_refused")
    assert "Install the app at the shop" in answer.json()["message"]
    assert "code" not in answer.json()["message"]
    assert "x-shopify-retry-invalid-session-request" not in answer.headers
