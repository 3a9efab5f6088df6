"""An agent at the catalog of a shop."""

import contextlib
from collections.abc import AsyncGenerator

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.helpers.serving import bind_port, running_already, serve_app
from tests.inventory.sync.sync_scene import SyncScene


@contextlib.asynccontextmanager
async def open_agent(scene: SyncScene) -> AsyncGenerator[Client]:
    """The official client of a shop that has been imported."""
    port = bind_port()
    url = f"{port.url}/mcp"
    headers = {"Authorization": f"Bearer {scene.shop.key}"}
    async with (
        serve_app(running_already(scene.inventory.app), port),
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http)) as agent,
    ):
        yield agent
