"""What the assistants of people send when they connect is replayed: each of them connects, calls, and refreshes.

As others have seen it up to 2026-11-28.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import httpx2
import pytest

from holdfast.events.settings import Settings
from tests.events.oauth_server.oauth_server_scene import App, OAuthServerScene, issued_tokens, serve_oauth_scene
from tests.events.oauth_server.published import PublishedSite, publish_site
from tests.events.oauth_server.signed_assertions import SigningClient

KEYS = "/oauth/jwks.json"
STATELESS = "2026-07-28"


class Assistant(NamedTuple):
    """An assistant.

    document    host and path of its metadata document; None: it registers itself
    about       its metadata, without the id
    redirect    the redirect address that it names in requests
    revision    the revision of the protocol that it asks for first
    sends       what it sends to prove who it is: nothing, or a signed assertion
    scope       the scopes that it asks for; None: it names none
    """

    name: str
    document: tuple[str, str] | None
    about: Mapping[str, Any]
    redirect: str
    revision: str
    sends: Literal["nothing", "assertion"] = "nothing"
    scope: str | None = "read_events write_events"


def _about(name: str, redirects: Sequence[str], **more: Any) -> dict[str, Any]:
    return {
        "client_name": name,
        "redirect_uris": [*redirects],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        **more,
    }


CLAUDE = "https://claude.ai/api/mcp/auth_callback"
CHATGPT = "https://chatgpt.com/connector_platform_oauth_redirect"
CHATGPT_OF_ONE = "https://chatgpt.com/connector/oauth/IbUR3zxyNQ16"
CURSOR = (
    "cursor://anysphere.cursor-mcp/oauth/callback",
    "https://www.cursor.com/agents/mcp/oauth/callback",
    "http://localhost:8787/callback",
)
CODEX = "http://127.0.0.1:63546/callback/6MFBM1In3Ey-"
SIGNS = {
    "token_endpoint_auth_method": "private_key_jwt",
    "token_endpoint_auth_signing_alg": "RS256",
    "jwks_uri": "/oauth/jwks.json",
}
"""The members of a client that prefers to sign. The address of its keys is at its own site."""

BOTH = {**SIGNS, "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"]}

ASSISTANTS = (
    Assistant(
        "Claude",
        ("claude.ai", "/oauth/mcp-oauth-client-metadata"),
        _about("Claude", [CLAUDE, "https://claude.com/api/mcp/auth_callback"]),
        CLAUDE,
        STATELESS,
    ),
    Assistant("Claude before its document", None, _about("Claude", [CLAUDE]), CLAUDE, "2025-11-25"),
    Assistant(
        "Claude Code",
        ("claude.ai", "/oauth/claude-code-client-metadata"),
        _about("Claude Code", ["http://localhost/callback", "http://127.0.0.1/callback"]),
        "http://localhost:55611/callback",
        STATELESS,
    ),
    Assistant(
        "ChatGPT, without a proof",
        ("chatgpt.com", "/oauth/client.json"),
        _about("ChatGPT", [CHATGPT], **BOTH),
        CHATGPT,
        "2025-11-25",
    ),
    Assistant(
        "ChatGPT, signing",
        ("chatgpt.com", "/oauth/client.json"),
        _about("ChatGPT", [CHATGPT], **BOTH),
        CHATGPT,
        STATELESS,
        "assertion",
    ),
    Assistant(
        "ChatGPT, which only signs",
        ("chatgpt.com", "/oauth/IbUR3zxyNQ16/client.json"),
        _about("ChatGPT", [CHATGPT_OF_ONE], **SIGNS),
        CHATGPT_OF_ONE,
        STATELESS,
        "assertion",
        scope=None,
    ),
    Assistant("Cursor", None, _about("Cursor", CURSOR), CURSOR[0], "2025-11-25"),
    Assistant("Cursor's agents", None, _about("Cursor", CURSOR), CURSOR[1], "2025-11-25"),
    Assistant(
        "VS Code",
        ("vscode.dev", "/oauth/client-metadata.json"),
        _about("Visual Studio Code", ["http://127.0.0.1:33418/", "http://localhost/", "https://vscode.dev/redirect"]),
        "http://127.0.0.1:51234/",
        "2025-11-25",
    ),
    Assistant(
        "VS Code in a browser",
        ("vscode.dev", "/oauth/client-metadata.json"),
        _about("Visual Studio Code", ["http://127.0.0.1:33418/", "https://vscode.dev/redirect"]),
        "https://vscode.dev/redirect",
        "2025-11-25",
    ),
    Assistant(
        "Gemini CLI",
        None,
        _about("Gemini CLI MCP Client", ["http://localhost:43121/oauth/callback"], scope="read_events"),
        "http://localhost:43121/oauth/callback",
        "2025-06-18",
        scope="read_events",
    ),
    Assistant(
        "Antigravity",
        None,
        _about("Antigravity", ["https://antigravity.google/oauth-callback"]),
        "https://antigravity.google/oauth-callback",
        "2025-06-18",
    ),
    Assistant(
        "Windsurf",
        None,
        _about("Windsurf", ["http://localhost:40211/auth/callback"]),
        "http://localhost:40211/auth/callback",
        "2025-06-18",
    ),
    Assistant(
        "Zed",
        ("zed.dev", "/oauth/client-metadata.json"),
        _about("Zed", ["http://127.0.0.1/callback"]),
        "http://127.0.0.1:50112/callback",
        "2025-11-25",
    ),
    Assistant(
        "Codex",
        ("chatgpt.com", "/oauth/codex/client.json"),
        _about("Codex", ["http://127.0.0.1/callback", "http://localhost/callback"]),
        CODEX,
        "2025-06-18",
    ),
    Assistant("Codex before its document", None, _about("Codex", [CODEX]), CODEX, "2025-06-18"),
)


@pytest.mark.parametrize("assistant", ASSISTANTS, ids=lambda assistant: assistant.name)
async def test_assistants_connect_call_a_tool_and_refresh(
    with_server: Settings, tmp_path: Path, assistant: Assistant
) -> None:
    if assistant.document:
        async with (
            publish_site(tmp_path, *assistant.document) as site,
            serve_oauth_scene(with_server, documents=site.outbound) as scene,
        ):
            await _connect(scene, assistant, site)
    else:
        async with serve_oauth_scene(with_server) as scene:
            await _connect(scene, assistant, None)


async def _connect(scene: OAuthServerScene, assistant: Assistant, site: PublishedSite | None) -> None:
    http = scene.service.http
    server = await _authorization_server(http)
    if site:
        signer = _publish_assistant(assistant, site)
        app = App(http, site.about, server["issuer"])
    else:
        signer = None
        registration = await http.post(server["registration_endpoint"], json={**assistant.about})
        app = App(http, registration.json(), server["issuer"])

    answer = await scene.person.allow(app.query(redirect_uri=assistant.redirect, scope=assistant.scope))
    assert answer["iss"] == server["issuer"]
    tokens = issued_tokens(
        await app.redeem(answer["code"], redirect_uri=assistant.redirect, **_proof(assistant, signer))
    )
    await _first_calls(scene, assistant, tokens)

    later = issued_tokens(await app.refresh(tokens["refresh_token"], **_proof(assistant, signer)))
    assert await scene.works(later)


def _proof(assistant: Assistant, signer: SigningClient | None) -> dict[str, str | None]:
    """The fields by which an assistant proves who it is."""
    return signer.proof() if signer and assistant.sends == "assertion" else {}


async def _authorization_server(http: httpx2.AsyncClient) -> dict[str, Any]:
    """The metadata of the authorization server, found from a 401 as assistants find it."""
    refusal = await http.post("/mcp", json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}})
    assert refusal.status_code == 401
    match = re.search(r'resource_metadata="(http[^"]+)"', refusal.headers["www-authenticate"])
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


def _publish_assistant(assistant: Assistant, site: PublishedSite) -> SigningClient:
    """Publish the document of an assistant, and its keys. Returns what signs with them."""
    signer = SigningClient(site.address)
    site.about = {**assistant.about, "client_id": site.address}
    if "jwks_uri" in site.about:
        site.about["jwks_uri"] = f"{site.origin}{KEYS}"
    site.says()
    site.publishes(KEYS, signer.jwks)
    return signer


async def _first_calls(scene: OAuthServerScene, assistant: Assistant, tokens: dict[str, Any]) -> None:
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
