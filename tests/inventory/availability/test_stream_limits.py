"""How many streams one address, one key and one shop may have open."""

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from tests.helpers.exchange import Stream, read_stream
from tests.helpers.inventory_service import Inventory, Shop, running_inventory, unlimited

LIMITS = {"streams_per_address": 4, "streams_per_key": 2, "streams_per_shop": 6}


@pytest.fixture
async def bounded_inventory(inventory_url: str, tmp_path: Path) -> AsyncIterator[Inventory]:
    """The service with room for a few streams."""
    async with running_inventory(unlimited(inventory_url, tmp_path, **LIMITS)) as inventory:
        yield inventory


@pytest.fixture
async def open_streams(bounded_inventory: Inventory) -> AsyncIterator[contextlib.AsyncExitStack]:
    """Streams that are open until the test ends."""
    async with contextlib.AsyncExitStack() as stack:
        yield stack


async def open_storefront_stream(
    bounded: Inventory, stack: contextlib.AsyncExitStack, shop: Shop, client: str
) -> Stream:
    """Open a storefront's stream from an address."""
    url = (await shop.read_storefront()).json()["stream_url"]
    return await stack.enter_async_context(read_stream(bounded.app, url, client=client))


async def open_agent_stream(bounded: Inventory, stack: contextlib.AsyncExitStack, shop: Shop, client: str) -> Stream:
    """Open the stream of an agent from an address."""
    headers = {"authorization": f"Bearer {shop.key}", "accept": "text/event-stream"}
    return await stack.enter_async_context(
        read_stream(bounded.app, "http://inventory.test/mcp", client=client, **headers)
    )


def refusal_of(reader: Stream) -> str:
    """What is said by the answer that is no stream."""
    assert reader.status == 429
    assert int(reader.headers["retry-after"]) > 0
    body = json.loads(reader.sent)
    assert body["error"] == "rate_limited"
    return body["message"]


async def test_streams_from_one_address_are_limited(
    bounded_inventory: Inventory, open_streams: contextlib.AsyncExitStack
) -> None:
    shop = await bounded_inventory.create_shop()
    for _ in range(4):
        assert (await open_storefront_stream(bounded_inventory, open_streams, shop, "10.0.0.1")).status == 200

    other = await bounded_inventory.create_shop()
    for next_one in (
        await open_storefront_stream(bounded_inventory, open_streams, other, "10.0.0.1"),
        await open_agent_stream(bounded_inventory, open_streams, other, "10.0.0.1"),
    ):
        assert "At most 4 streams from one address may be open." in refusal_of(next_one)
    assert (await open_storefront_stream(bounded_inventory, open_streams, shop, "10.0.0.2")).status == 200


async def test_addresses_of_one_ipv6_network_count_as_one(
    bounded_inventory: Inventory, open_streams: contextlib.AsyncExitStack
) -> None:
    shop = await bounded_inventory.create_shop()
    for number in range(4):
        assert (
            await open_storefront_stream(bounded_inventory, open_streams, shop, f"2001:db8::{number}")
        ).status == 200

    refusal_of(await open_storefront_stream(bounded_inventory, open_streams, shop, "2001:db8::9"))


async def test_streams_with_one_key_are_limited(
    bounded_inventory: Inventory, open_streams: contextlib.AsyncExitStack
) -> None:
    shop, other = await bounded_inventory.create_shop(), await bounded_inventory.create_shop()
    for number in range(2):
        assert (await open_agent_stream(bounded_inventory, open_streams, shop, f"10.0.0.{number}")).status == 200

    assert "At most 2 streams with one key may be open." in refusal_of(
        await open_agent_stream(bounded_inventory, open_streams, shop, "10.0.0.9")
    )
    assert (await open_agent_stream(bounded_inventory, open_streams, other, "10.0.0.9")).status == 200


async def test_streams_of_one_shop_are_limited(
    bounded_inventory: Inventory, open_streams: contextlib.AsyncExitStack
) -> None:
    shop, other = await bounded_inventory.create_shop(), await bounded_inventory.create_shop()
    assert (await open_agent_stream(bounded_inventory, open_streams, shop, "10.0.0.99")).status == 200
    for number in range(5):
        assert (await open_storefront_stream(bounded_inventory, open_streams, shop, f"10.0.0.{number}")).status == 200

    next_one = await open_storefront_stream(bounded_inventory, open_streams, shop, "10.0.0.77")

    assert "At most 6 streams of one tenant may be open." in refusal_of(next_one)
    assert next_one.headers["access-control-allow-origin"] == "*"
    assert (await open_storefront_stream(bounded_inventory, open_streams, other, "10.0.0.77")).status == 200


async def test_strangers_do_not_keep_the_merchant_from_the_streams_of_a_shop(
    bounded_inventory: Inventory, open_streams: contextlib.AsyncExitStack
) -> None:
    shop = await bounded_inventory.create_shop()
    strangers = [
        await open_storefront_stream(bounded_inventory, open_streams, shop, f"203.0.113.{number // 3}")
        for number in range(6)
    ]

    assert (await open_agent_stream(bounded_inventory, open_streams, shop, "198.51.100.1")).status == 200

    await strangers[2].wait_until_closed()
    assert "At most 6 streams of one tenant may be open." in refusal_of(
        await open_storefront_stream(bounded_inventory, open_streams, shop, "203.0.113.1")
    )


async def test_a_closed_stream_makes_room_for_another(bounded_inventory: Inventory) -> None:
    shop = await bounded_inventory.create_shop()
    for _ in range(10):
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(2):
                assert (await open_agent_stream(bounded_inventory, stack, shop, "10.0.0.1")).status == 200


async def test_requests_are_answered_while_no_stream_may_be_opened(
    bounded_inventory: Inventory, open_streams: contextlib.AsyncExitStack
) -> None:
    shop = await bounded_inventory.create_shop()
    for _ in range(3):
        await open_agent_stream(bounded_inventory, open_streams, shop, "127.0.0.1")

    answer: httpx2.Response = await shop.send_call("list_pools", {})

    assert answer.status_code == 200
