"""Signatures of storefront requests: only fresh ones of the platform for this shop are accepted."""

import time
from urllib.parse import parse_qsl, urlencode

import httpx2
import pytest

from holdfast.inventory.settings import Settings
from holdfast.inventory.shopify import signatures
from tests.helpers.inventory_service import Inventory, Shop, client_secret, running_inventory


def signed_query(shop: Shop, *, at: float = 0, secret: bytes | None = None, domain: str | None = None) -> str:
    """A query as the platform would send it, this many seconds from now."""
    return signatures.sign_proxy_query(domain or shop.domain, secret or client_secret(shop.settings), time.time() + at)


def with_parameters(query: str, **parameters: str) -> str:
    return urlencode({**dict(parse_qsl(query, keep_blank_values=True)), **parameters})


async def send_query(shop: Shop, query: str, method: str = "GET") -> httpx2.Response:
    return await shop.http.request(method, f"/storefront/availability?{query}")


def refusal(response: httpx2.Response) -> tuple[int, str]:
    """The status and the slug of an error, whose body has just the two members of the contract."""
    body = response.json()
    assert body.keys() == {"error", "message"}
    assert all(isinstance(text, str) and text for text in body.values())
    assert "etag" not in response.headers
    assert response.headers["cache-control"] == "no-store"
    return response.status_code, body["error"]


FORGED = "0" * 64


@pytest.mark.parametrize(
    "changes",
    [
        {"signature": FORGED},
        {"signature": ""},
        {"signature": "ü" * 64},
        {"signature": "\ud7ff\U0001f600"},
        {"shop": "victim.myshopify.com"},
        {"timestamp": "1763640000"},
        {"logged_in_customer_id": "7"},
        {"path_prefix": "/apps/other"},
        {"path_prefix": ""},
        {"extra": "1"},
    ],
    ids=str,
)
async def test_a_storefront_request_changed_after_signing_is_refused(shop: Shop, changes: dict[str, str]) -> None:
    assert refusal(await send_query(shop, with_parameters(signed_query(shop), **changes))) == (401, "invalid_signature")


@pytest.mark.parametrize("name", ["shop", "signature", "timestamp", "logged_in_customer_id", "path_prefix"])
async def test_parameters_of_the_platform_must_be_in_a_request_exactly_once(shop: Shop, name: str) -> None:
    pairs = parse_qsl(signed_query(shop), keep_blank_values=True)
    without = [pair for pair in pairs if pair[0] != name]
    twice = [*pairs, (name, dict(pairs)[name])]

    for wrong in (without, twice):
        assert refusal(await send_query(shop, urlencode(wrong))) == (401, "invalid_signature")


@pytest.mark.parametrize(
    "query", ["", "shop=", "signature=%FF", "%", "=", "&&&", "shop=a;b", "a" * 5000], ids=lambda query: query[:12]
)
async def test_an_unsigned_storefront_request_is_refused(shop: Shop, query: str) -> None:
    assert refusal(await send_query(shop, query)) == (401, "invalid_signature")
    assert refusal(await send_query(shop, f"shop={shop.domain}&{query}")) == (401, "invalid_signature")


@pytest.mark.parametrize(("at", "status"), [(-120, 401), (-80, 200), (0, 200), (80, 200), (120, 401)])
async def test_a_signature_is_good_for_ninety_seconds_either_way(shop: Shop, at: float, status: int) -> None:
    response = await send_query(shop, signed_query(shop, at=at))

    assert response.status_code == status
    assert status == 200 or refusal(response) == (401, "invalid_signature")


async def test_a_request_signed_with_the_secret_of_another_app_is_refused(shop: Shop) -> None:
    assert refusal(await send_query(shop, signed_query(shop, secret=b"hush"))) == (401, "invalid_signature")


async def test_both_secrets_are_accepted_during_a_rotation(settings: Settings) -> None:
    rotated = settings.model_copy(update={"client_secret": "new" * 11, "old_client_secret": "old" * 11})
    async with running_inventory(rotated) as inventory:
        shop = await inventory.create_shop()

        for secret in (b"new" * 11, b"old" * 11):
            assert (await send_query(shop, signed_query(shop, secret=secret))).status_code == 200
        assert (await send_query(shop, signed_query(shop, secret=b"older" * 11))).status_code == 401


async def test_a_shop_that_is_not_known_is_not_found(shop: Shop) -> None:
    assert refusal(await send_query(shop, signed_query(shop, domain="stranger.myshopify.com"))) == (404, "not_found")


async def test_a_shop_added_after_a_404_is_found(shop: Shop, inventory: Inventory) -> None:
    number = shop.id + 1
    domain = f"late-{number}.myshopify.com"
    assert (await send_query(shop, signed_query(shop, domain=domain))).status_code == 404
    await inventory.sql("insert into shops (domain) values (%(domain)s)", domain=domain)
    await inventory.sql("insert into shared_inventories (shop_id) select max(id) from shops")

    assert (await send_query(shop, signed_query(shop, domain=domain))).json()["variants"] == {}


async def test_a_key_of_an_agent_is_refused_by_the_storefront(shop: Shop) -> None:
    response = await shop.http.get(
        f"/storefront/availability?shop={shop.domain}", headers={"authorization": f"Bearer {shop.key}"}
    )

    assert refusal(response) == (401, "invalid_signature")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_a_storefront_allows_get_and_head_only(shop: Shop, method: str) -> None:
    response = await send_query(shop, signed_query(shop), method)

    assert refusal(response) == (405, "method_not_allowed")
    assert response.headers["allow"] == "GET, HEAD"


async def test_a_head_request_has_the_headers_of_a_get(shop: Shop) -> None:
    got, head = await send_query(shop, signed_query(shop)), await send_query(shop, signed_query(shop), "HEAD")

    assert head.status_code == 200
    assert {name: head.headers[name] for name in ("etag", "content-length", "content-type")} == {
        name: got.headers[name] for name in ("etag", "content-length", "content-type")
    }
