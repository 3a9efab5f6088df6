"""The official client of the agents' protocol, as a program on the computer of a person with a browser."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from playwright.async_api import Page, expect
from pydantic import AnyUrl

from tests.events.oauth_server.oauth_server_scene import ClientStorage


class AgentProgram:
    """The official client as a program on the organizer's computer: it opens pages in the organizer's browser."""

    def __init__(self, page: Page, address: str, callback: str) -> None:
        self._page = page
        self._address = address
        self._callback = callback

    async def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Connect, and call a tool."""
        about = OAuthClientMetadata(client_name="Mira", redirect_uris=[AnyUrl(self._callback)])
        provider = OAuthClientProvider(self._address, about, ClientStorage(), self._open, self._back)
        async with (
            httpx2.AsyncClient(auth=provider, timeout=60) as http,
            Client(streamable_http_client(self._address, http_client=http)) as client,
        ):
            result = await client.call_tool(tool, arguments)
        assert not result.is_error, result
        return result

    async def _open(self, address: str) -> None:
        await self._page.goto(address)
        await expect(self._page.get_by_role("heading", level=1)).to_have_text("Let Mira act for you?")
        await self.allow(self._page)
        await self._page.wait_for_url(f"{self._callback}?**")

    async def allow(self, page: Page) -> None:
        """What the organizer does on the page that asks."""
        await page.get_by_role("button", name="Allow").click()

    async def _back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult.model_validate(dict(parse_qsl(urlsplit(self._page.url).query)))
