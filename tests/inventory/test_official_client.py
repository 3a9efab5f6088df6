"""The official MCP client at work in a running service, in both eras of the protocol."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.client import ConnectMode
from mcp.client.streamable_http import streamable_http_client

from holdfast.inventory.api import OPERATIONS
from holdfast.inventory.service import INVENTORY
from holdfast.inventory.settings import Settings
from holdfast.inventory.shops import operations as shops
from tests.helpers.inventory_service import PACKS, SINGLE, SIX_PACK, TWELVE_PACK
from tests.helpers.processes import Process, running_processes

ERAS: list[tuple[ConnectMode, str]] = [("auto", "2026-07-28"), ("legacy", "2025-11-25")]


@pytest.fixture
async def key(settings: Settings) -> str:
    """The key of a shop."""
    database = INVENTORY.database(settings)
    async with database.pool:
        _, key = await database.transact(lambda tx: shops.add(tx, "client.myshopify.com"))
    return key


@pytest.fixture
async def process(inventory_url: str, key: str, tmp_path: Path) -> AsyncIterator[Process]:
    """The service, in a process of its own."""
    with running_processes(inventory_url, tmp_path, 1, service="inventory") as (process,):
        yield process


@pytest.mark.parametrize(("mode", "version"), ERAS)
async def test_the_official_client_makes_a_pool_sells_a_6_pack_and_reads_what_is_left(
    process: Process, key: str, mode: ConnectMode, version: str
) -> None:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as http,
        Client(streamable_http_client(f"{process.url}/mcp", http_client=http), mode=mode) as agent,
    ):

        async def call(tool: str, **arguments: Any) -> Any:
            return (await agent.call_tool(tool, arguments)).structured_content

        assert agent.protocol_version == version
        assert [tool.name for tool in (await agent.list_tools()).tools] == [operation.name for operation in OPERATIONS]
        assert await call("list_pools") == {"pools": [], "next_cursor": None}
        made = await call("create_pool", name="Honey jars", quantity=50, members=PACKS)
        await call("adjust_pool_quantity", pool_id=made["pool"]["id"], delta=-6, reason="One 6-pack was sold.")
        left = await call("get_availability", pool_id=made["pool"]["id"])
        status, listed = (await agent.list_resources()).resources
        (read,) = (await agent.read_resource(listed.uri)).contents

    assert left["variants"] == {SINGLE: 44, SIX_PACK: 7, TWELVE_PACK: 3}
    assert str(status.uri) == "sync://status"
    assert listed.title == "Honey jars"
    assert '"on_hand":44' in getattr(read, "text", "")
