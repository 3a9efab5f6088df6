"""A change through one process reaches the streams of another."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.inventory.service import INVENTORY
from holdfast.inventory.settings import Settings
from holdfast.inventory.shopify import signatures
from holdfast.inventory.shops import operations as shops
from tests.helpers.inventory_service import PACKS, SINGLE, SIX_PACK, TWELVE_PACK, client_secret
from tests.helpers.processes import Process, running_processes

STATELESS = {"mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen"}


class Far:
    """A shop's agent that calls through one process, and its streams at another."""

    def __init__(self, here: Process, other: Process, key: str, domain: str, secret: bytes) -> None:
        self.here = here
        self.other = other
        self.domain = domain
        self.secret = secret
        self.http = httpx2.AsyncClient(headers={"authorization": f"Bearer {key}"}, timeout=30)

    async def call(self, tool: str, **arguments: Any) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        return (await self.http.post(f"{self.here.url}/mcp", json=message)).json()["result"]["structuredContent"]

    @contextlib.asynccontextmanager
    async def listening(self, method: str, url: str, **options: Any) -> AsyncGenerator[AsyncIterator[Any]]:
        """The events of a stream at the other process, each as its data."""
        async with self.http.stream(method, url, **options) as response:
            assert response.status_code == 200, await response.aread()
            yield events(response)

    def get_stream(self, **headers: str) -> contextlib.AbstractAsyncContextManager[AsyncIterator[Any]]:
        return self.listening("GET", f"{self.other.url}/mcp", headers={"accept": "text/event-stream", **headers})

    def listen_stream(self, *uris: str) -> contextlib.AbstractAsyncContextManager[AsyncIterator[Any]]:
        about: dict[str, Any] = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params: dict[str, Any] = {
            "_meta": about,
            "notifications": {"resourceSubscriptions": [*uris], "resourcesListChanged": True},
        }
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": "ears", "method": "subscriptions/listen", "params": params}
        return self.listening("POST", f"{self.other.url}/mcp", json=body, headers=STATELESS)

    @contextlib.asynccontextmanager
    async def storefront_stream(self) -> AsyncGenerator[AsyncIterator[Any]]:
        query = signatures.sign_proxy_query(self.domain, self.secret, time.time())
        availability = await self.http.get(f"{self.other.url}/storefront/availability?{query}")
        async with self.listening("GET", availability.json()["stream_url"]) as heard:
            yield heard


async def events(response: httpx2.Response) -> AsyncIterator[Any]:
    async for line in response.aiter_lines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


@pytest.fixture
async def far(inventory_url: str, settings: Settings, tmp_path: Path) -> AsyncIterator[Far]:
    database = INVENTORY.database(settings)
    async with database.pool:
        shop, key = await database.transact(lambda tx: shops.add(tx, "far.myshopify.com"))
    with running_processes(inventory_url, tmp_path, 2, service="inventory") as (here, other):
        far = Far(here, other, key, shop.domain, client_secret(settings))
        async with far.http:
            yield far


async def test_a_change_through_one_process_reaches_every_kind_of_stream_at_another(far: Far) -> None:
    change = await far.call("create_pool", name="Honey jars", quantity=50, members=PACKS)
    pool = f"pool://{change['pool']['id']}"
    async with (
        asyncio.timeout(20),
        far.get_stream() as get_stream,
        far.listen_stream(pool) as listen_stream,
        far.storefront_stream() as storefront_stream,
    ):
        acknowledged = await anext(listen_stream)
        snapshot = await anext(storefront_stream)
        await far.call("adjust_pool_quantity", pool_id=change["pool"]["id"], delta=-6)

        by_get, by_listen, numbers = (
            await anext(get_stream),
            await anext(listen_stream),
            await anext(storefront_stream),
        )

    assert acknowledged["params"]["notifications"] == {"resourcesListChanged": True, "resourceSubscriptions": [pool]}
    assert snapshot["variants"] == {SINGLE: 50, SIX_PACK: 8, TWELVE_PACK: 4}
    assert by_get == {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": pool}}
    assert (by_listen["method"], by_listen["params"]["uri"]) == ("notifications/resources/updated", pool)
    assert by_listen["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "ears"}
    assert numbers["variants"] == {SINGLE: 44, SIX_PACK: 7, TWELVE_PACK: 3}


async def test_a_stream_resumed_at_a_restarted_process_reports_the_changes_in_between(far: Far) -> None:
    old, changed = [(await far.call("create_pool", name=name, quantity=50))["pool"] for name in ("Honey", "Jam")]
    async with far.http.stream("GET", f"{far.other.url}/mcp", headers={"accept": "text/event-stream"}) as response:
        first = await anext(line async for line in response.aiter_lines() if line.startswith("id: "))
    last = first.removeprefix("id: ")
    far.other.kill()
    await far.call("adjust_pool_quantity", pool_id=changed["id"], delta=-6)
    far.other.start()

    async with asyncio.timeout(20), far.get_stream(**{"last-event-id": last}) as heard:
        messages = [await anext(heard) for _ in range(4)]

    uris = [message["params"]["uri"] for message in messages[:3]]
    assert uris == [f"pool://{changed['id']}", f"pool://{changed['id']}/history", "sync://status"]
    assert messages[3]["method"] == "notifications/resources/list_changed"
    assert f"pool://{old['id']}" not in uris


async def test_a_new_pool_is_streamed_as_a_change_of_the_list(far: Far) -> None:
    async with asyncio.timeout(20), far.listen_stream() as heard:
        await anext(heard)
        await far.call("create_pool", name="Lids")

        message = await anext(heard)

    assert message["method"] == "notifications/resources/list_changed"


async def test_streams_end_at_once_when_their_process_stops(far: Far) -> None:
    async with (
        asyncio.timeout(20),
        far.listen_stream() as heard,
        far.get_stream() as messages,
        far.storefront_stream() as numbers,
    ):
        await anext(heard)
        await anext(numbers)
        stopped = asyncio.create_task(asyncio.to_thread(far.other.stop))
        last = [message async for message in heard]

        assert [message async for message in messages] == []
        assert [message async for message in numbers] == []
        assert await stopped == 143

    assert [answer["id"] for answer in last] == ["ears"]
    assert last[0]["result"]["resultType"] == "complete"
