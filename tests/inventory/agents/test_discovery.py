"""A program that knows only the address finds every endpoint, and every document is true."""

import re
from typing import Any

import httpx2
import jsonschema
import pytest
from jsonschema import Draft202012Validator
from mcp.client.auth.utils import build_protected_resource_metadata_discovery_urls
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from pydantic import ValidationError

from holdfast.inventory import api
from holdfast.inventory.shops.model import SCOPES
from holdfast.kit.process.discovery import reverse_dns
from tests.helpers.discovery import AGENT_CARD, CARD_SCHEMA, SERVER_CARD, addresses
from tests.helpers.inventory_service import Inventory
from tests.inventory.agents.conftest import BASE_URL

CARDS = ("/.well-known/mcp.json", "/mcp/server-card", "/.well-known/mcp/server-card.json")
JSON_DOCUMENTS = (
    *CARDS,
    "/.well-known/ai-catalog.json",
    "/.well-known/agent.json",
    "/.well-known/agent-card.json",
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
)
DOCUMENTS = (*JSON_DOCUMENTS, "/auth.md", "/llms.txt")


async def document(inventory: Inventory, path: str) -> Any:
    response = await inventory.http.get(path)
    assert response.status_code == 200, response.text
    return response.json()


async def test_every_document_can_be_read_by_any_page_and_kept_for_an_hour(inventory: Inventory) -> None:
    http = inventory.http
    for path in DOCUMENTS:
        response = await http.get(path)
        assert response.status_code == 200
        assert response.headers["access-control-allow-origin"] == "*"
        assert response.headers["access-control-expose-headers"] == "ETag"
        assert response.headers["cache-control"] == "public, max-age=3600"
        head = await http.head(path)
        assert (head.status_code, head.headers["etag"]) == (200, response.headers["etag"])


async def test_an_unchanged_document_is_answered_with_304(inventory: Inventory) -> None:
    http = inventory.http
    for path in DOCUMENTS:
        etag = (await http.get(path)).headers["etag"]
        for condition in (etag, f"W/{etag}", f'"x", {etag}', "*"):
            response = await http.get(path, headers={"If-None-Match": condition})
            assert (response.status_code, response.content, response.headers["etag"]) == (304, b"", etag)
            assert response.headers["access-control-allow-origin"] == "*"
        assert (await http.get(path, headers={"If-None-Match": '"x"'})).status_code == 200


async def test_a_document_is_compressed_for_clients_that_take_that_under_an_etag_of_its_own(
    inventory: Inventory,
) -> None:
    for path in DOCUMENTS:
        plain = await inventory.http.get(path, headers={"Accept-Encoding": "identity"})
        small = await inventory.http.get(path, headers={"Accept-Encoding": "gzip"})

        assert "content-encoding" not in plain.headers
        assert small.headers["content-encoding"] == "gzip"
        assert plain.headers["vary"] == small.headers["vary"] == "Accept-Encoding"
        assert plain.headers["etag"] != small.headers["etag"]
        assert small.content == plain.content


async def test_a_preflight_request_for_a_document_is_answered(inventory: Inventory) -> None:
    http = inventory.http
    response = await http.options("/mcp/server-card", headers={"Access-Control-Request-Headers": "If-None-Match"})

    assert response.status_code == 204
    assert response.headers["access-control-allow-methods"] == "GET"
    assert "If-None-Match" in response.headers["access-control-allow-headers"]


async def test_every_document_has_its_media_type(inventory: Inventory) -> None:
    kinds = {
        "/mcp/server-card": "application/mcp-server-card+json",
        "/.well-known/ai-catalog.json": "application/ai-catalog+json",
        "/auth.md": "text/markdown; charset=utf-8",
        "/llms.txt": "text/plain; charset=utf-8",
    }
    http = inventory.http
    for path in DOCUMENTS:
        response = await http.get(path)
        assert response.headers["content-type"] == kinds.get(path, "application/json")


async def test_every_address_a_document_names_answers(inventory: Inventory) -> None:
    http = inventory.http
    named: set[str] = set()
    for path in DOCUMENTS:
        response = await http.get(path)
        named |= set(addresses(response.json() if path in JSON_DOCUMENTS else response.text))
    named -= {BASE_URL, CARD_SCHEMA}  # the names of the issuer and of a schema
    assert {f"{BASE_URL}/mcp", f"{BASE_URL}/oauth/token", f"{BASE_URL}/api/agent/identity"} < named
    for url in named:
        response = await http.get(url)
        expected = {"/mcp": 401, "/oauth/token": 405, "/api/agent/identity": 405}
        assert response.status_code == expected.get(url.removeprefix(BASE_URL), 200), url


async def test_the_server_card_is_the_same_at_all_its_addresses(inventory: Inventory) -> None:
    http = inventory.http
    assert len({(await http.get(path)).content for path in CARDS}) == 1
    assert len({(await http.get(f"/.well-known/{path}.json")).content for path in ("agent", "agent-card")}) == 1


async def test_the_server_card_has_what_its_schema_demands(inventory: Inventory) -> None:
    card = await document(inventory, "/.well-known/mcp.json")

    jsonschema.validate(card, SERVER_CARD, Draft202012Validator)
    (remote,) = card["remotes"]
    (header,) = remote["headers"]
    assert (remote["url"], header["name"], header["isRequired"]) == (f"{BASE_URL}/mcp", "Authorization", True)


async def test_the_server_card_says_what_the_server_says_of_itself(inventory: Inventory) -> None:
    http = inventory.http
    card = (await http.get("/mcp/server-card")).json()
    key = (await inventory.create_shop()).key
    for version in card["remotes"][0]["supportedProtocolVersions"]:
        server_info = await introduction(http, key, version)
        assert (server_info["name"], server_info["version"]) == (card["name"], card["version"]), version
    with pytest.raises(AssertionError):
        await introduction(http, key, "2024-10-07")


CLIENT = {"name": "test", "version": "1"}


async def introduction(http: httpx2.AsyncClient, key: str, version: str) -> dict[str, str]:
    """The name and the version of the server, to a client that speaks a version of the protocol."""
    headers = {"Authorization": f"Bearer {key}", "Accept": "application/json, text/event-stream"}
    prefix = "io.modelcontextprotocol"
    method, params = "initialize", dict[str, Any](protocolVersion=version, capabilities={}, clientInfo=CLIENT)
    if version >= "2026":
        method = "server/discover"
        meta: dict[str, Any] = {f"{prefix}/protocolVersion": version, f"{prefix}/clientCapabilities": {}}
        headers |= {"MCP-Protocol-Version": version, "Mcp-Method": method}
        params = {"_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    response = await http.post("/mcp", json=body, headers=headers)
    assert response.status_code == 200, response.text
    result = response.json()["result"]
    assert version in result.get("supportedVersions", [result.get("protocolVersion")])
    return result["serverInfo"] if "serverInfo" in result else result["_meta"][f"{prefix}/serverInfo"]


@pytest.mark.parametrize(
    ("base_url", "name"),
    [
        ("https://stock.example.com", "com.example.stock/inventory"),
        ("https://stock.example.com:8443", "com.example.stock/inventory"),
        ("http://127.0.0.1:8001", "localhost/inventory"),
        ("http://[::1]:8001", "localhost/inventory"),
        ("http://localhost:8001", "localhost/inventory"),
    ],
)
def test_the_name_of_the_server_is_its_domain_reversed(base_url: str, name: str) -> None:
    assert reverse_dns(base_url, "inventory") == name


async def test_the_catalog_leads_to_the_server_card(inventory: Inventory) -> None:
    http = inventory.http
    catalog = (await http.get("/.well-known/ai-catalog.json")).json()
    assert catalog["specVersion"] == "1.0"
    (entry,) = catalog["entries"]
    assert set(entry) == {"identifier", "type", "url"}
    assert entry["identifier"] == "urn:air:inventory.test:mcp:inventory"
    card = await http.get(entry["url"], headers={"Accept": entry["type"]})
    assert card.headers["content-type"] == entry["type"]


async def test_the_agent_card_has_what_both_versions_of_a2a_demand(inventory: Inventory) -> None:
    card = await document(inventory, "/.well-known/agent.json")

    jsonschema.validate(card, AGENT_CARD, Draft202012Validator)
    (interface,) = card["supportedInterfaces"]
    assert (interface["url"], interface["protocolBinding"]) == (f"{BASE_URL}/mcp", "MCP")
    assert (card["url"], card["preferredTransport"]) == (f"{BASE_URL}/mcp", "MCP")
    (scheme,) = card["securitySchemes"].values()
    assert set(scheme) == {"httpAuthSecurityScheme"}
    assert set(card["securityRequirements"][0]["schemes"]) == set(card["securitySchemes"])


async def test_every_tool_is_a_skill_and_stands_in_llms_txt(inventory: Inventory) -> None:
    http = inventory.http
    skills = {skill["id"] for skill in (await http.get("/.well-known/agent.json")).json()["skills"]}
    text = (await http.get("/llms.txt")).text

    assert skills == {operation.name for operation in api.OPERATIONS}
    assert skills <= set(re.findall(r"^- `(\w+)`", text, re.MULTILINE))


async def test_llms_txt_has_its_format(inventory: Inventory) -> None:
    http = inventory.http
    text = (await http.get("/llms.txt")).text

    assert re.match(r"# [^\n]+\n\n> [^\n]+\n\n", text)
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1
    for section in re.split(r"^## .+\n", text, flags=re.MULTILINE)[1:]:
        assert all(re.fullmatch(r"- \[[^]]+\]\(http[^)]+\): .+", line) for line in section.strip().split("\n"))
    assert "## Optional" in text
    assert len(text) < 50_000


async def test_the_authorization_server_has_what_rfc_8414_demands_of_one_without_a_browser(
    inventory: Inventory,
) -> None:
    metadata = await document(inventory, "/.well-known/oauth-authorization-server")

    assert metadata["issuer"] == BASE_URL  # to the letter: it is compared with the address it was found at
    assert metadata["response_types_supported"] == []
    assert metadata["grant_types_supported"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    assert metadata["token_endpoint"] == f"{BASE_URL}/oauth/token"
    assert metadata["token_endpoint_auth_methods_supported"] == ["none"]
    assert metadata["scopes_supported"] == list(SCOPES)
    assert metadata["agent_auth"]["identity_types_supported"] == ["service_auth"]
    # The official client has no grant without a browser, and asks for an authorization endpoint; the rest it can read.
    OAuthMetadata.model_validate({**metadata, "authorization_endpoint": f"{BASE_URL}/none"})
    with pytest.raises(ValidationError, match="authorization_endpoint"):
        OAuthMetadata.model_validate(metadata)


async def test_the_official_client_finds_and_understands_the_protected_resource(inventory: Inventory) -> None:
    http = inventory.http
    challenge = (await http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})).headers
    named = re.findall(r'resource_metadata="([^"]+)"', challenge["www-authenticate"])
    assert named == [f"{BASE_URL}/.well-known/oauth-protected-resource/mcp"]
    for url in build_protected_resource_metadata_discovery_urls(None, f"{BASE_URL}/mcp"):
        metadata = ProtectedResourceMetadata.model_validate((await http.get(url)).json())
        assert str(metadata.resource) == f"{BASE_URL}/mcp"
        assert [str(server) for server in metadata.authorization_servers] == [BASE_URL]
        assert metadata.scopes_supported == list(SCOPES)
        assert metadata.bearer_methods_supported == ["header"]
