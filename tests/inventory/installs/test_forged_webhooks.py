"""A visitor of a storefront has the platform sign a text of the visitor's choice: no webhook can be made of it.

The app proxy and webhooks are signed with one secret, and the proxy's message has nothing between its parameters. So
parameters can be chosen that make the message JSON. What is left to the visitor is to learn the signature.
"""

import base64
import re
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import httpx2
import pytest

from holdfast.inventory.shopify import signatures
from holdfast_demo.shopify.app_proxy import signature
from tests.helpers.inventory_service import Inventory, Shop
from tests.helpers.platform_shop import DOMAIN, SECRET, PlatformScene, key_in
from tests.helpers.platform_webhooks import handle

VICTIM = "ada.myshopify.com"
ATTACKER = "mallory.myshopify.com"

CHOSEN = [('\n{"a":"', f'","myshopify_domain":"{VICTIM}","shop_domain":"{VICTIM}","b":"'), ("~", '"}')]
"""Parameters with which the proxy's message is a JSON object about another shop."""

PATHS = (
    *("/storefront/nope", "/storefront/availability", "/storefront/availability/", "/storefront/stream"),
    *("/storefront/stream/", "/storefront", "/storefront/", "/webhooks/shopify", "/webhooks/shopify/", "/webhooks/x"),
    *("/auth", "/auth/", "/auth/install", "/auth/install/", "/auth/session", "/auth/session/", "/auth/nope"),
)
"""What can be asked under the addresses that the platform signs requests for."""

ELSEWHERE = (
    *("/", "/nope", "/sign-in", "/sign-in/", "/console", "/console/", "/console/pools/1", "/console/nope", "/account"),
    *(
        "/console/variant",
        "/mcp",
        "/mcp/",
        "/healthz/",
        "/openapi.json",
        "/oauth/token",
        "/oauth/authorize",
        "/auth.md/",
    ),
    *("/console/enter", "/console/variants", "/console/holds", "/.well-known/nope", "/api/nope"),
)


@pytest.fixture
async def scene(scene: PlatformScene) -> PlatformScene:
    scene.platform.open(ATTACKER)
    scene.platform.state.transport = scene.inventory.http._transport  # pyright: ignore[reportPrivateUsage] - the service in this process
    return scene


@pytest.fixture
async def shop(scene: PlatformScene) -> Shop:
    """The shop of another merchant, with a pool of 50."""
    shop = await scene.find_shop(key_in((await scene.install()).text))
    await shop.create_golden_pool()
    return shop


async def visit(scene: PlatformScene, path: str, parameters: Any = CHOSEN) -> httpx2.Response:
    """Open an address of the attacker's storefront, as a browser does."""
    query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in parameters)
    headers = {"accept": "text/html"}
    return await scene.browser.get(f"/{ATTACKER}/apps/holdfast/{path}?{query}", headers=headers)


def signed_for(answer: httpx2.Response) -> list[list[tuple[str, str]]]:
    """Every query with a signature that an answer gives back."""
    texts = [answer.text.replace("&amp;", "&"), *answer.headers.values()]
    queries = [query for text in texts for query in re.findall(r"\?([^\"'<> ]*signature=[0-9a-f]{64}[^\"'<> ]*)", text)]
    return [parse_qsl(urlsplit(f"?{query}").query, keep_blank_values=True) for query in queries]


def message(parameters: list[tuple[str, str]]) -> bytes:
    return "".join(sorted(f"{name}={value}" for name, value in parameters)).encode()


async def send(inventory: Inventory, topic: str, body: bytes, signed: str, shop: str = VICTIM) -> httpx2.Response:
    """Send a webhook that nobody but the platform could have signed."""
    headers = {
        "x-shopify-topic": topic,
        "x-shopify-shop-domain": shop,
        "x-shopify-webhook-id": "forged",
        "x-shopify-hmac-sha256": base64.b64encode(bytes.fromhex(signed)).decode(),
        "content-type": "application/json",
    }
    return await inventory.http.post("/webhooks/shopify", content=body, headers=headers)


@pytest.mark.parametrize("path", ["nope", "availability/", "availability", "stream", "stream/", "", "../auth/"])
async def test_no_answer_contains_a_signature_usable_for_a_webhook(scene: PlatformScene, shop: Shop, path: str) -> None:
    answer = await visit(scene, path)

    assert SECRET not in answer.text
    for query in signed_for(answer):
        parameters = [(name, value) for name, value in query if name not in {"signature", "lang"}]
        forged = await send(scene.inventory, "app/uninstalled", message(parameters), dict(query)["signature"])
        await handle(scene.inventory)
        assert (forged.status_code, await shop.on_hand(1)) == (401, 50)
    assert signed_for(answer) == []


async def test_a_text_signed_for_the_app_proxy_is_refused_as_a_webhook(scene: PlatformScene, shop: Shop) -> None:
    parameters = [
        *CHOSEN,
        *(
            ("shop", ATTACKER),
            ("logged_in_customer_id", ""),
            ("path_prefix", "/apps/holdfast"),
            ("timestamp", "1763640000"),
        ),
    ]
    body, signed = message(parameters), signature(parameters, SECRET)
    assert signatures.sign_webhook(body, SECRET.encode()) == base64.b64encode(bytes.fromhex(signed))

    for topic in ("app/uninstalled", "shop/redact", "orders/create", "customers/redact"):
        assert (await send(scene.inventory, topic, body, signed)).status_code == 401
    assert await scene.inventory.sql("select from webhooks") == []


SECRET_WORD = "5ecret0f7heQuery"
HIDDEN = "&".join(
    f"{name}={SECRET_WORD}"
    for name in (
        *("signature", "hmac", "id_token", "code", "state", "shop", "host", "sig", "exp", "session", "a", SECRET_WORD),
        *("timestamp", "logged_in_customer_id", "path_prefix", "embedded", "locale"),
    )
)


@pytest.mark.parametrize("accept", ["text/html", "application/json", ""])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
async def test_no_answer_and_no_log_repeats_the_query_of_the_platform(
    scene: PlatformScene, method: str, accept: str, subtests: pytest.Subtests, capfd: pytest.CaptureFixture[str]
) -> None:
    for path in PATHS:
        with subtests.test(path=path):
            answer = await scene.inventory.http.request(method, f"{path}?{HIDDEN}", headers={"accept": accept})
            bare = await scene.inventory.http.request(method, path, headers={"accept": accept})
            assert SECRET_WORD not in answer.text + str(answer.headers)
            assert answer.status_code >= 400
            if answer.status_code == bare.status_code:
                assert answer.content == bare.content
    captured = capfd.readouterr()
    assert SECRET_WORD not in captured.out + captured.err


@pytest.mark.parametrize("accept", ["text/html", "application/json"])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_no_answer_of_other_addresses_repeats_an_unknown_parameter(
    scene: PlatformScene, method: str, accept: str, subtests: pytest.Subtests
) -> None:
    query = "&".join(
        f"{name}={SECRET_WORD}" for name in ("signature", "hmac", "id_token", "timestamp", "z", SECRET_WORD)
    )
    for path in ELSEWHERE:
        for more in ("", f"&shop={DOMAIN}"):
            with subtests.test(path=path, more=more):
                answer = await scene.inventory.http.request(
                    method, f"{path}?{query}{more}", headers={"accept": accept}, follow_redirects=False
                )
                assert SECRET_WORD not in answer.text + str(answer.headers)
