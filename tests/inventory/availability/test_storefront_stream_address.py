"""The address of a storefront's stream: absolute, signed, good for a quarter of an hour, and for one shop."""

import time

import httpx2
import pytest

from holdfast.inventory.availability.storefront import TOKEN_SECONDS
from tests.helpers.exchange import read_stream
from tests.helpers.inventory_service import Inventory, Shop


async def stream_url(shop: Shop) -> str:
    return (await shop.read_storefront()).json()["stream_url"]


async def assert_refused(shop: Shop, url: str) -> str:
    response = await shop.http.get(url)
    assert response.status_code == 401, response.text
    assert response.json().keys() == {"error", "message"}
    assert response.headers["access-control-allow-origin"] == "*"
    return response.json()["error"]


async def test_the_address_of_a_storefront_stream_is_valid_for_a_quarter_of_an_hour(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = httpx2.URL(await stream_url(shop))
    left = int(url.params["exp"]) - time.time()
    assert TOKEN_SECONDS - 61 < left <= TOKEN_SECONDS == 15 * 60

    later = time.time() + left + 1
    monkeypatch.setattr(time, "time", lambda: later)

    assert await assert_refused(shop, str(url)) == "invalid_stream_token"


@pytest.mark.parametrize(
    "changes",
    [
        {"shop": "victim.myshopify.com"},
        {"exp": "4102444800"},
        {"sig": "0" * 64},
        {"sig": "ü"},
        {"sig": ""},
        {"exp": ""},
        {"exp": "now"},
        {"more": "1"},
    ],
    ids=str,
)
async def test_an_address_that_was_changed_is_refused(shop: Shop, changes: dict[str, str]) -> None:
    url = httpx2.URL(await stream_url(shop))

    assert await assert_refused(shop, str(url.copy_merge_params(changes))) == "invalid_stream_token"


async def test_an_address_without_a_token_is_refused(shop: Shop) -> None:
    assert await assert_refused(shop, f"/storefront/stream?shop={shop.domain}") == "invalid_stream_token"
    assert await assert_refused(shop, f"/storefront/stream?{shop.signed_query()}") == "invalid_stream_token"


async def test_an_open_stream_outlives_the_expiry_of_its_address(
    shop: Shop, inventory: Inventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = await shop.create_golden_pool()
    async with read_stream(inventory.app, await stream_url(shop)) as reader:
        await reader.next()
        later = time.time() + TOKEN_SECONDS + 60
        monkeypatch.setattr(time, "time", lambda: later)

        await shop.call("adjust_pool_quantity", pool_id=pool["id"], delta=-6)

        assert (await reader.next())["event"] == "change"


async def test_the_address_of_a_storefront_stream_is_the_same_for_a_minute_and_then_new(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that an answer can be served again as it is, and is never given with an address about to expire."""
    now = 1_800_000_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    first, again = await shop.read_storefront(), await shop.read_storefront()
    now += 61
    later = await shop.read_storefront(**{"if-none-match": first.headers["etag"]})

    assert first.content == again.content
    assert later.status_code == 200
    assert later.json()["stream_url"] != first.json()["stream_url"]


async def test_the_address_of_one_shop_opens_no_other(shop: Shop, inventory: Inventory) -> None:
    other = await inventory.create_shop()
    mine, theirs = httpx2.URL(await stream_url(shop)), httpx2.URL(await stream_url(other))

    mixed = mine.copy_merge_params({"sig": theirs.params["sig"]})

    assert mine.params["sig"] != theirs.params["sig"]
    assert await assert_refused(shop, str(mixed)) == "invalid_stream_token"
