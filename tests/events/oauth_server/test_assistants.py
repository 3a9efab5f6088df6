"""Recorded requests of assistants are replayed: each of them connects, calls a tool, and refreshes."""

import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.events.settings import Settings
from tests.events.oauth_server.assistants import ASSISTANTS, STATELESS, Assistant
from tests.events.oauth_server.published import Site, published
from tests.events.oauth_server.scene import App, Scene, furnished, issued
from tests.events.oauth_server.signed_assertions import SigningClient

KEYS = "/oauth/jwks.json"


@pytest.mark.parametrize("assistant", ASSISTANTS, ids=lambda assistant: assistant.name)
async def test_assistants_connect_call_a_tool_and_refresh(
    with_server: Settings, tmp_path: Path, assistant: Assistant
) -> None:
    if assistant.document:
        async with (
            published(tmp_path, *assistant.document) as site,
            furnished(with_server, documents=site.outbound) as scene,
        ):
            await _connect(scene, assistant, site)
    else:
        async with furnished(with_server) as scene:
            await _connect(scene, assistant, None)


async def _connect(scene: Scene, assistant: Assistant, site: Site | None) -> None:
    http = scene.service.http
    server = await _authorization_server(http)
    if site:
        signer = _published(assistant, site)
        app = App(http, site.about, server["issuer"])
    else:
        signer = None
        registration = await http.post(server["registration_endpoint"], json={**assistant.about})
        app = App(http, registration.json(), server["issuer"])

    answer = await scene.person.allow(app.query(redirect_uri=assistant.redirect, scope=assistant.scope))
    assert answer["iss"] == server["issuer"]
    tokens = issued(await app.redeem(answer["code"], redirect_uri=assistant.redirect, **_proof(assistant, signer)))
    await _first_calls(scene, assistant, tokens)

    later = issued(await app.refresh(tokens["refresh_token"], **_proof(assistant, signer)))
    assert await scene.works(later)


def _proof(assistant: Assistant, signer: SigningClient | None) -> dict[str, str | None]:
    """The fields by which an assistant proves who it is."""
    return signer.proof() if signer and assistant.sends == "assertion" else {}


async def _authorization_server(http: httpx2.AsyncClient) -> dict[str, Any]:
    """The metadata of the authorization server, found from a 401 as assistants find it."""
    refused = await http.post("/mcp", json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}})
    assert refused.status_code == 401
    match = re.search(r'resource_metadata="(http[^"]+)"', refused.headers["www-authenticate"])
    assert match
    resource = (await http.get(match[1])).json()
    assert resource["resource"] == "http://events.test/mcp"
    [issuer] = resource["authorization_servers"]
    metadata = (await http.get(f"{issuer}/.well-known/oauth-authorization-server")).json()
    assert metadata["issuer"] == issuer
    assert "S256" in metadata["code_challenge_methods_supported"]
    assert metadata["client_id_metadata_document_supported"] is True
    assert metadata["token_endpoint_auth_methods_supported"][0] == "none"
    return metadata


def _published(assistant: Assistant, site: Site) -> SigningClient:
    """Publish the document of an assistant, and its keys. Returns what signs with them."""
    signer = SigningClient(site.address)
    site.about = {**assistant.about, "client_id": site.address}
    if "jwks_uri" in site.about:
        site.about["jwks_uri"] = f"{site.origin}{KEYS}"
    site.says()
    site.publishes(KEYS, signer.jwks)
    return signer


async def _first_calls(scene: Scene, assistant: Assistant, tokens: dict[str, Any]) -> None:
    """What an assistant asks first, in the revision of the protocol that it asks for."""
    agent = scene.agent(tokens, assistant.revision)
    if assistant.revision == STATELESS:
        discovered = await agent.result("server/discover")
        assert STATELESS in discovered["supportedVersions"]
    else:
        hello = {
            "protocolVersion": assistant.revision,
            "capabilities": {"elicitation": {}, "roots": {"listChanged": True}},
            "clientInfo": {"name": assistant.name, "version": "1"},
        }
        discovered = await agent.result("initialize", hello)
        assert discovered["protocolVersion"] == assistant.revision
        arrived = await agent.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert arrived.status_code == 202
    assert discovered["instructions"]
    tools = (await agent.result("tools/list"))["tools"]
    assert "list_events" in {tool["name"] for tool in tools}
    result = await agent.call("list_organizers")
    assert [organizer["slug"] for organizer in result["structuredContent"]["data"]] == [scene.ada.slug]
