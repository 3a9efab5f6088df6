"""A watcher of `sync://status` gets the progress of an import until it is done."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import msgspec
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated

from holdfast.inventory.availability.cache import STATUS
from holdfast.inventory.catalog import importing
from tests.inventory.sync.scene import Scene
from tests.serving import listener, running_already, serving


@contextlib.asynccontextmanager
async def watching(scene: Scene) -> AsyncGenerator[Client]:
    """The official client of a shop that has been imported."""
    port = listener()
    url = f"http://127.0.0.1:{port.getsockname()[1]}/mcp"
    headers = {"Authorization": f"Bearer {scene.shop.key}"}
    async with (
        serving(running_already(scene.inventory.app), port),
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http)) as agent,
    ):
        yield agent


async def imported(agent: Client) -> Any:
    """What the resource says of the import."""
    (content,) = (await agent.read_resource(STATUS)).contents
    return msgspec.json.decode(getattr(content, "text", ""))["imported"]


async def test_a_watcher_is_notified_until_the_import_is_done(scene: Scene) -> None:
    async with (
        asyncio.timeout(20),
        watching(scene) as agent,
        agent.listen(resource_subscriptions=[STATUS]) as changes,
    ):
        assert changes.honored.resource_subscriptions == [STATUS]
        await scene.transact(lambda tx: importing.begin(tx, scene.shop.id))
        assert await anext(changes) == ResourceUpdated(uri=STATUS)
        begun = await imported(agent)

        bringing = asyncio.create_task(scene.imported())
        while (now := await imported(agent))["status"] != "done":
            assert await anext(changes) == ResourceUpdated(uri=STATUS)
        await bringing

    assert (begun["status"], begun["stored"]) == ("running", 0)
    assert (now["stored"], now["error"]) == (10, None)


async def test_a_watcher_is_notified_at_the_end_of_a_push_of_levels(scene: Scene) -> None:
    async with (
        asyncio.timeout(20),
        watching(scene) as agent,
        agent.listen(resource_subscriptions=[STATUS]) as changes,
    ):
        assert await scene.attend() == 1
        assert await anext(changes) == ResourceUpdated(uri=STATUS)


async def test_a_sync_status_resource_is_listed_for_agents_that_may_read_it(scene: Scene) -> None:
    async with watching(scene) as agent:
        listed = (await agent.list_resources()).resources
        templates = (await agent.list_resource_templates()).resource_templates

    assert [resource.uri for resource in listed] == [STATUS]
    assert STATUS not in [template.uri_template for template in templates]
    await scene.inventory.regenerate(scene.shop, "read_pools")
    other = await scene.shop.post({"jsonrpc": "2.0", "id": 1, "method": "resources/list"})
    assert other.json()["result"]["resources"] == []
