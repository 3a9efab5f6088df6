"""The metadata of the authorization server (RFC 8414) and of the protected resource (RFC 9728)."""

import httpx2
import pytest
from mcp.client.auth.utils import should_use_client_metadata_url
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata

from holdfast.events.settings import Settings
from tests.events.oauth_server.oauth_server_scene import OAuthServerScene
from tests.helpers.events_service import Service, running_events

METADATA = "/.well-known/oauth-authorization-server"
RESOURCE = "/.well-known/oauth-protected-resource/mcp"
ENDPOINTS = ("/oauth/token", "/oauth/register", "/oauth/revoke")


async def test_the_metadata_names_the_issuer_it_was_read_from_to_the_letter(scene: OAuthServerScene) -> None:
    metadata = (await scene.service.http.get(METADATA)).json()

    assert metadata["issuer"] == "http://events.test"
    assert {name: metadata[name] for name in metadata if name.endswith("_endpoint")} == {
        "authorization_endpoint": "http://events.test/oauth/authorize",
        "token_endpoint": "http://events.test/oauth/token",
        "registration_endpoint": "http://events.test/oauth/register",
        "revocation_endpoint": "http://events.test/oauth/revoke",
    }
    assert metadata["scopes_supported"] == ["read_events", "write_events", "manage_keys"]


async def test_the_metadata_says_that_clients_use_s256_and_may_sign(scene: OAuthServerScene) -> None:
    metadata = (await scene.service.http.get(METADATA)).json()

    for endpoint in ("token", "revocation"):
        assert metadata[f"{endpoint}_endpoint_auth_methods_supported"] == ["none", "private_key_jwt"]
        algorithms = metadata[f"{endpoint}_endpoint_auth_signing_alg_values_supported"]
        assert {"RS256", "ES256"} <= {*algorithms}
        assert not [name for name in algorithms if name == "none" or name.startswith("HS")]
    assert metadata["code_challenge_methods_supported"] == ["S256"]
    assert metadata["response_types_supported"] == ["code"]
    assert metadata["grant_types_supported"] == ["authorization_code", "refresh_token"]
    assert metadata["authorization_response_iss_parameter_supported"] is True


async def test_the_metadata_lets_the_official_client_use_a_metadata_document(scene: OAuthServerScene) -> None:
    metadata = OAuthMetadata.model_validate((await scene.service.http.get(METADATA)).json())

    assert should_use_client_metadata_url(metadata, "https://app.example/client.json")


async def test_the_protected_resource_names_our_authorization_server_and_a_401_links_to_it(
    scene: OAuthServerScene,
) -> None:
    resource = ProtectedResourceMetadata.model_validate((await scene.service.http.get(RESOURCE)).json())
    assert [str(server).rstrip("/") for server in resource.authorization_servers] == ["http://events.test"]
    assert str(resource.resource) == "http://events.test/mcp"
    assert resource.scopes_supported == ["read_events", "write_events", "manage_keys"]

    refusal = await scene.service.http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert refusal.status_code == 401
    assert f'resource_metadata="http://events.test{RESOURCE}"' in refusal.headers["www-authenticate"]
    # Clients ask for these first: that of making keys must be asked for expressly.
    assert 'scope="read_events write_events"' in refusal.headers["www-authenticate"]


@pytest.mark.parametrize("path", ENDPOINTS)
async def test_pages_of_any_site_may_use_the_endpoints_of_programs(scene: OAuthServerScene, path: str) -> None:
    preflight = await scene.service.http.options(path, headers={"Origin": "https://app.example"})
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == "*"
    assert "POST" in preflight.headers["access-control-allow-methods"]

    refusal = await scene.service.http.post(path, headers={"Origin": "https://app.example"})
    assert refusal.status_code == 400
    assert refusal.headers["access-control-allow-origin"] == "*"
    assert refusal.headers["cache-control"] == "no-store"
    assert "access-control-allow-credentials" not in refusal.headers


async def test_pages_of_other_sites_may_read_the_metadata_and_never_the_consent_page(scene: OAuthServerScene) -> None:
    origin = {"Origin": "https://app.example"}
    assert (await scene.service.http.get(METADATA, headers=origin)).headers["access-control-allow-origin"] == "*"

    page = await scene.person.http.get("/oauth/authorize", params=scene.app.query(), headers=origin)
    assert page.status_code == 200
    assert not [name for name in page.headers if name.startswith("access-control-")]
    preflight = await scene.person.http.options("/oauth/authorize", headers=origin)
    assert preflight.status_code == 405
    assert not [name for name in preflight.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("settings_of", [{}, {"oauth_builtin": True, "oauth_issuer": "https://login.example.com"}])
async def test_the_built_in_authorization_server_is_off_by_default_and_beside_another_server(
    settings: Settings, settings_of: dict[str, object]
) -> None:
    async with running_events(settings.model_copy(update=settings_of)) as service:
        for path in (METADATA, *ENDPOINTS):
            assert (await _ask(service, path)).status_code == 404, path
        resource = (await service.http.get(RESOURCE)).json()
        assert resource.get("authorization_servers") == ([settings_of["oauth_issuer"]] if settings_of else None)


async def _ask(service: Service, path: str) -> httpx2.Response:
    return await service.http.request("GET" if path == METADATA else "POST", path)
