"""The metadata of the endpoint speaks of an authorization server when there is one, and else of keys alone."""

import re

import httpx2
import pytest
from mcp.client.auth.utils import build_protected_resource_metadata_discovery_urls
from mcp.shared.auth import ProtectedResourceMetadata
from pydantic import ValidationError

from holdfast.events.oauth.model import SCOPES
from tests.events.agents.documents import BASE_URL, ISSUER, RESOURCES, document
from tests.events.agents.handbook import Handbook
from tests.helpers.events_service import Service


async def test_the_metadata_without_an_authorization_server_says_that_keys_are_the_way(
    http: httpx2.AsyncClient,
) -> None:
    metadata = await document(http, RESOURCES[0])

    assert "authorization_servers" not in metadata
    assert "POST /api/organizers/register" in metadata["x-auth-note"]
    assert metadata["resource"] == f"{BASE_URL}/mcp"
    assert metadata["bearer_methods_supported"] == ["header"]
    assert [(method["type"], method.get("scheme", method.get("name"))) for method in metadata["x-auth-methods"]] == [
        ("http", "bearer"),
        ("apiKey", "X-API-Key"),
    ]
    with pytest.raises(ValidationError, match="authorization_servers"):
        ProtectedResourceMetadata.model_validate(metadata)


async def test_with_an_authorization_server_the_official_client_understands_the_metadata(
    beside_issuer: Service,
) -> None:
    for url in build_protected_resource_metadata_discovery_urls(None, f"{BASE_URL}/mcp"):
        response = await beside_issuer.http.get(url)
        metadata = ProtectedResourceMetadata.model_validate(response.json())
        assert str(metadata.resource) == f"{BASE_URL}/mcp"
        assert [str(server).rstrip("/") for server in metadata.authorization_servers] == [ISSUER]
        assert response.json()["authorization_servers"] == [ISSUER]  # to the letter: it is compared
        assert metadata.scopes_supported == list(SCOPES)
        assert metadata.bearer_methods_supported == ["header"]
        assert "x-auth-note" not in response.json()
        assert len(response.json()["x-auth-methods"]) == 2


async def test_a_challenge_names_the_metadata_exactly_when_there_is_an_authorization_server(
    service: Service, beside_issuer: Service
) -> None:
    for headers in ({}, {"Authorization": "Bearer nonsense"}, {"X-API-Key": "nonsense"}):
        for site, named, scopes in (
            (service, [], []),
            (beside_issuer, [f"{BASE_URL}{RESOURCES[1]}"], ["read_events write_events"]),
        ):
            response = await site.http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers)
            challenge = response.headers["www-authenticate"]
            assert response.status_code == 401
            assert re.findall(r'resource_metadata="([^"]*)"', challenge) == named
            assert challenge.startswith('Bearer realm="test.events/events"')
            assert ("error=" in challenge) == bool(headers)
            assert re.findall(r'scope="([^"]*)"', challenge) == scopes


async def test_agents_read_about_access_tokens_exactly_when_they_are_accepted(
    service: Service, beside_issuer: Service
) -> None:
    without, with_issuer = [await document(site.http, "/agents.md") for site in (service, beside_issuer)]

    assert "access token" not in without
    assert ISSUER in with_issuer
    assert [name for name, _ in Handbook(with_issuer).table("scope", "allows")] == list(SCOPES)
