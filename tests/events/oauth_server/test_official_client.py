"""The official client connects by a click, refreshes, and is cut off, over real HTTP."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from pydantic import AnyUrl

from holdfast.events.oauth_server import grants
from holdfast.events.oauth_server.model import Disconnect, ListConnections
from holdfast.events.settings import Settings
from holdfast.kit.contract.caller import person
from tests.events.oauth_server.oauth_server_scene import ClientStorage, ConsentingPerson, sign_in_person
from tests.events.oauth_server.published import PublishedSite, publish_site
from tests.helpers.events_service import Client as Organizer
from tests.helpers.events_service import Service
from tests.helpers.serving import serve_events


class ClientScene:
    """A computer with the client, and an organizer at its browser.

    site    publishes the metadata document of the client; None: it has none
    """

    def __init__(
        self, service: Service, url: str, ada: Organizer, browser: ConsentingPerson, site: PublishedSite | None
    ) -> None:
        self.site = site
        self.service = service
        self.url = url
        self.ada = ada
        self.browser = browser
        self.storage = ClientStorage()
        self.visits = 0
        self._answer: dict[str, str] = {}

    def provider(self) -> OAuthClientProvider:
        about = OAuthClientMetadata(client_name="Inspector", redirect_uris=[AnyUrl("http://localhost:3000/callback")])
        document = self.site.address if self.site else None
        return OAuthClientProvider(f"{self.url}/mcp", about, self.storage, self.open, self.back, document)

    async def open(self, address: str) -> None:
        """The client opens the browser, where the organizer allows what it asks for."""
        self.visits += 1
        parts = urlsplit(address)
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{self.url}/oauth/authorize"
        self._answer = await self.browser.allow(dict(parse_qsl(parts.query)))

    async def back(self) -> AuthorizationCodeResult:
        """The browser comes back to the client."""
        return AuthorizationCodeResult.model_validate(self._answer)

    async def slug(self, provider: OAuthClientProvider) -> Any:
        """The organizer for whom the client acts, according to a tool."""
        async with (
            httpx2.AsyncClient(auth=provider, timeout=30) as http,
            Client(streamable_http_client(f"{self.url}/mcp", http_client=http)) as client,
        ):
            result = await client.call_tool("list_organizers", {})
            assert result.structured_content
            return result.structured_content["data"][0]["slug"]


@contextlib.asynccontextmanager
async def open_client_scene(settings: Settings, site: PublishedSite | None = None) -> AsyncGenerator[ClientScene]:
    resources = {"documents": site.outbound} if site else {}
    async with serve_events(settings, resources=resources, oauth_builtin=True) as service:
        ada = await service.organizer()
        yield ClientScene(service, service.base_url, ada, await sign_in_person(service, ada.id), site)


@pytest.fixture
async def scene(settings: Settings) -> AsyncIterator[ClientScene]:
    async with open_client_scene(settings) as scene:
        yield scene


async def test_the_official_client_connects_calls_refreshes_and_is_cut_off(scene: ClientScene) -> None:
    provider = scene.provider()
    assert await scene.slug(provider) == scene.ada.slug
    first = scene.storage.tokens
    assert first
    assert first.scope == "read_events write_events"

    assert await scene.slug(provider) == scene.ada.slug
    assert scene.storage.tokens == first

    provider.context.token_expiry_time = 1.0
    assert await scene.slug(provider) == scene.ada.slug
    second = scene.storage.tokens
    assert second
    assert {first.access_token, first.refresh_token}.isdisjoint({second.access_token, second.refresh_token})
    assert scene.visits == 1

    me = person(1, scene.ada.id)
    database = scene.service.database
    [connection] = await database.read(lambda reader: grants.list_connections(reader, me, ListConnections()))
    assert (connection.name, connection.scopes) == ("Inspector", ["read_events", "write_events"])
    command = Disconnect(client_id=connection.client_id)
    await database.transact(lambda tx: grants.disconnect(tx, me, command))

    assert await scene.slug(provider) == scene.ada.slug
    assert scene.visits == 2


async def test_the_official_client_refreshes_after_a_restart_in_which_it_forgot_where(scene: ClientScene) -> None:
    await scene.slug(scene.provider())
    assert scene.storage.tokens
    scene.storage.tokens = scene.storage.tokens.model_copy(update={"access_token": ""})

    assert await scene.slug(scene.provider()) == scene.ada.slug
    assert scene.visits == 1


async def test_the_official_client_connects_by_its_metadata_document(settings: Settings, tmp_path: Path) -> None:
    async with publish_site(tmp_path) as site, open_client_scene(settings, site) as scene:
        provider = scene.provider()
        assert await scene.slug(provider) == scene.ada.slug
        assert scene.storage.about
        assert scene.storage.about.client_id == site.address
        assert await scene.service.run_sql("select id from oauth_clients") == [(site.address,)]

        provider.context.token_expiry_time = 1.0
        assert await scene.slug(provider) == scene.ada.slug
        assert scene.visits == 1
