"""Agents call `POST /mcp`, and find it without knowing anything but the address.

What the protocol wants beside this is held in `tests/kit/mcp` and `tests/events/agents`.
"""

from typing import Any

import pytest

from tests.contract.requirements import requirement
from tests.helpers.events_service import Client, Service, running_events, unlimited

METHODS: dict[str, dict[str, Any]] = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    "tools/list": {},
    "tools/call": {"name": "list_events", "arguments": {}},
    "resources/list": {},
    "resources/read": {"uri": "holdfast://catalog"},
}


async def call(client: Client, method: str, params: Any, id: str | int = 1, **headers: str) -> Any:
    """The answer to one JSON-RPC request."""
    body = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return await client.http.post("/mcp", json=body, headers=headers)


@requirement("agent.endpoint")
@pytest.mark.parametrize("id", [7, "seven"])
@pytest.mark.parametrize("method", METHODS)
async def test_methods_of_the_contract_are_answered_with_the_id_of_the_request(
    service: Service, method: str, id: str | int
) -> None:
    ada = await service.organizer()
    response = await call(ada, method, METHODS[method], id, **{"X-API-Key": str(ada.key)})

    assert response.status_code == 200
    answer = response.json()
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", id)
    assert answer["result"]


@requirement("agent.key")
async def test_an_agent_may_send_its_key_in_either_header(service: Service) -> None:
    ada = await service.organizer()

    for header, value in (("X-API-Key", f"{ada.key}"), ("Authorization", f"Bearer {ada.key}")):
        assert (await call(ada, "tools/list", {}, **{header: value})).status_code == 200


@requirement("agent.key")
@pytest.mark.parametrize("method", METHODS)
async def test_an_agent_without_a_key_is_answered_with_401(service: Service, method: str) -> None:
    response = await call(service.anonymous, method, METHODS[method])

    assert (response.status_code, response.json()["code"]) == (401, "missing_api_key")


@requirement("agent.tools")
async def test_events_and_registrations_are_managed_with_tools(service: Service) -> None:
    ada = await service.organizer()
    tools = (await call(ada, "tools/list", {}, **{"X-API-Key": str(ada.key)})).json()["result"]["tools"]

    assert {
        *("list_events", "get_event", "create_event", "update_event", "cancel_event", "get_price_history"),
        *("list_registrations", "get_registration", "create_registration", "update_registration"),
        *("delete_registration", "list_users", "list_organizers"),
        *("list_api_keys", "create_api_key", "revoke_api_key"),
    } <= {tool["name"] for tool in tools}


@requirement("agent.resources")
@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("holdfast://agents", "/agents.md"),
        ("holdfast://docs", "/docs.md"),
        ("holdfast://catalog", "/api"),
        ("holdfast://openapi", "/openapi.json"),
    ],
)
async def test_the_docs_and_the_catalog_are_resources(service: Service, uri: str, path: str) -> None:
    ada = await service.organizer()
    key = {"X-API-Key": str(ada.key)}
    listed = (await call(ada, "resources/list", {}, **key)).json()["result"]["resources"]
    (read,) = (await call(ada, "resources/read", {"uri": uri}, **key)).json()["result"]["contents"]

    assert uri in [resource["uri"] for resource in listed]
    assert read["text"] == (await service.anonymous.get(path)).text


@requirement("discovery.documents")
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/.well-known/agent-card.json", "application/json"),
        ("/.well-known/agent.json", "application/json"),
        ("/.well-known/oauth-protected-resource", "application/json"),
        ("/llms.txt", "text/plain; charset=utf-8"),
        ("/agents.md", "text/markdown; charset=utf-8"),
        ("/docs.md", "text/markdown; charset=utf-8"),
    ],
)
async def test_a_document_of_discovery_needs_no_key(service: Service, path: str, kind: str) -> None:
    response = await service.anonymous.get(path)

    assert (response.status_code, response.headers["content-type"]) == (200, kind)
    assert response.content


@requirement("discovery.resource")
async def test_the_metadata_without_an_authorization_server_explains_that_keys_are_the_only_way(
    service: Service,
) -> None:
    metadata = (await service.anonymous.get("/.well-known/oauth-protected-resource")).json()

    assert metadata["resource"] == "http://events.test/mcp"
    assert "authorization_servers" not in metadata
    assert "API keys" in metadata["x-auth-note"]
    assert {method["type"] for method in metadata["x-auth-methods"]} == {"http", "apiKey"}


@requirement("discovery.resource")
async def test_the_metadata_with_an_authorization_server_names_its_issuer(
    service: Service, database_url: str, tmp_path: Any
) -> None:
    issuer = "https://auth.example.com"
    settings = unlimited(database_url, tmp_path).model_copy(update={"oauth_issuer": issuer})

    async with running_events(settings) as configured:
        metadata = (await configured.anonymous.get("/.well-known/oauth-protected-resource")).json()

    assert metadata["authorization_servers"] == [issuer]
    assert "x-auth-note" not in metadata
