"""The official client against a real port, and the official types against every answer."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.client import ConnectMode
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated
from mcp_types.methods import validate_server_result

from tests.helpers.agents import STATELESS, Agent, Kitchen
from tests.helpers.events_service import eventually
from tests.helpers.serving import bind_port, serve_app
from tests.kit.mcp.pantry import OPERATIONS, Pantry

ERAS: list[tuple[ConnectMode, str]] = [("auto", STATELESS), (STATELESS, STATELESS), ("legacy", "2025-11-25")]


@pytest.fixture
async def address(pantry_url: str) -> AsyncIterator[tuple[Pantry, str]]:
    """The pantry behind a port."""
    port = bind_port()
    pantry = Pantry(pantry_url)
    async with serve_app(pantry.service.app(background=False), port):
        yield pantry, f"{port.url}/mcp"


@contextlib.asynccontextmanager
async def client(address: tuple[Pantry, str], mode: ConnectMode, **options: Any) -> AsyncGenerator[Client]:
    """The official client with a key that may do everything."""
    pantry, url = address
    headers = {"Authorization": f"Bearer {await pantry.key('read_jars', 'write_jars')}"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, **options) as client,
    ):
        yield client


@pytest.mark.parametrize(("mode", "version"), ERAS)
async def test_the_official_client_works_in_both_eras(
    address: tuple[Pantry, str], mode: ConnectMode, version: str
) -> None:
    async with client(address, mode) as agent:
        assert agent.protocol_version == version
        assert len((await agent.list_tools()).tools) == len([operation for operation in OPERATIONS if operation.tool])
        filled = await agent.call_tool("fill_jar", {"jar_id": 1, "grams": 7})
        assert filled.structured_content == {"id": 1, "label": "Beans", "content": 7}
        refusal = await agent.call_tool("fill_jar", {"jar_id": 1, "grams": 1_000_000})
        assert refusal.is_error
        listed = await agent.list_resources()
        assert [resource.uri for resource in listed.resources] == ["pantry://rules", "jar://1", "jar://2"]
        assert [resource.uri for resource in (await agent.list_resources(cursor=listed.next_cursor)).resources] == [
            "jar://3"
        ]
        assert len((await agent.list_resource_templates()).resource_templates) == 1
        (content,) = (await agent.read_resource("jar://1")).contents
        assert content.uri == "jar://1"
        with pytest.raises(MCPError, match="jar://99"):
            await agent.read_resource("jar://99")
        with pytest.raises(MCPError, match="Unknown tool"):
            await agent.call_tool("nothing", {})


async def test_the_official_client_is_notified_of_changes_in_the_handshake_era(address: tuple[Pantry, str]) -> None:
    heard: asyncio.Queue[Any] = asyncio.Queue()

    async def note(message: Any) -> None:
        await heard.put(message)

    async with client(address, "legacy", message_handler=note) as agent, asyncio.timeout(10):
        await eventually(lambda: is_listened_to(address[0]))
        await agent.call_tool("fill_jar", {"jar_id": 2, "grams": 1})
        notification = await heard.get()

    assert (notification.method, str(notification.params.uri)) == ("notifications/resources/updated", "jar://2")


async def is_listened_to(pantry: Pantry) -> bool:
    return pantry.feed.has_readers


async def test_the_official_client_is_notified_of_changes_in_2026(address: tuple[Pantry, str]) -> None:
    async with (
        client(address, "auto") as agent,
        asyncio.timeout(10),
        agent.listen(resource_subscriptions=["jar://2"]) as changes,
    ):
        assert changes.honored.resource_subscriptions == ["jar://2"]
        await agent.call_tool("fill_jar", {"jar_id": 2, "grams": 1})
        assert await anext(changes) == ResourceUpdated(uri="jar://2")
        address[0].service.streams.close()
        with pytest.raises(StopAsyncIteration):
            await anext(changes)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", STATELESS])
async def test_answers_are_what_the_official_types_of_each_version_say(kitchen: Kitchen, version: str) -> None:
    agent: Agent = await kitchen.agent("read_jars", "write_jars", version=version)
    requests: list[tuple[str, dict[str, Any] | None]] = [
        ("tools/list", None),
        ("tools/call", {"name": "get_jar", "arguments": {"jar_id": 1}}),
        ("tools/call", {"name": "get_jar", "arguments": {}}),
        ("tools/call", {"name": "empty_jar", "arguments": {"jar_id": 1}}),
        ("resources/list", None),
        ("resources/templates/list", None),
        ("resources/read", {"uri": "jar://1"}),
        ("resources/read", {"uri": "pantry://rules"}),
    ]
    requests += (
        [("server/discover", None)]
        if version == STATELESS
        else [
            ("initialize", {"protocolVersion": version}),
            ("ping", None),
            ("resources/subscribe", {"uri": "jar://1"}),
            ("resources/unsubscribe", {"uri": "jar://1"}),
        ]
    )
    for method, params in requests:
        validate_server_result(method, version, await agent.result(method, params))
