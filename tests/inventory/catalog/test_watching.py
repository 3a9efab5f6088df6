"""A watcher of `sync://status` gets the progress of an import until it is done."""

import asyncio
from typing import Any

import msgspec
from mcp import Client
from mcp.client.subscriptions import ResourceUpdated

from holdfast.inventory.availability.cache import STATUS
from holdfast.inventory.catalog import importing
from tests.inventory.catalog.watching import open_agent
from tests.inventory.sync.sync_scene import SyncScene


async def read_import(agent: Client) -> Any:
    """What the resource says of the import."""
    (content,) = (await agent.read_resource(STATUS)).contents
    return msgspec.json.decode(getattr(content, "text", ""))["imported"]


async def test_a_watcher_is_notified_until_the_import_is_done(scene: SyncScene) -> None:
    async with (
        asyncio.timeout(20),
        open_agent(scene) as agent,
        agent.listen(resource_subscriptions=[STATUS]) as changes,
    ):
        assert changes.honored.resource_subscriptions == [STATUS]
        await scene.transact(lambda tx: importing.begin(tx, scene.shop.id))
        assert await anext(changes) == ResourceUpdated(uri=STATUS)
        begun = await read_import(agent)

        bringing = asyncio.create_task(scene.finish_import())
        while (now := await read_import(agent))["status"] != "done":
            assert await anext(changes) == ResourceUpdated(uri=STATUS)
        await bringing

    assert (begun["status"], begun["stored"]) == ("running", 0)
    assert (now["stored"], now["error"]) == (10, None)


async def test_a_watcher_is_notified_at_the_end_of_a_push_of_levels(scene: SyncScene) -> None:
    async with (
        asyncio.timeout(20),
        open_agent(scene) as agent,
        agent.listen(resource_subscriptions=[STATUS]) as changes,
    ):
        assert await scene.sync_due() == 1
        assert await anext(changes) == ResourceUpdated(uri=STATUS)


async def test_a_sync_status_resource_is_listed_for_agents_that_may_read_it(scene: SyncScene) -> None:
    async with open_agent(scene) as agent:
        listed = (await agent.list_resources()).resources
        templates = (await agent.list_resource_templates()).resource_templates

    assert [resource.uri for resource in listed] == [STATUS]
    assert STATUS not in [template.uri_template for template in templates]
    await scene.inventory.regenerate_key(scene.shop, "read_pools")
    other = await scene.shop.post_message({"jsonrpc": "2.0", "id": 1, "method": "resources/list"})
    assert other.json()["result"]["resources"] == []
