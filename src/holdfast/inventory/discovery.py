"""What the service says about itself to programs that do not know it yet: its discovery documents.

Each is written once, when the service starts, from the table of operations and the settings; all are public.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from holdfast.inventory.agents.model import JWT_BEARER, SERVICE_AUTH
from holdfast.inventory.shops.model import SCOPES
from holdfast.kit.mcp import Agents
from holdfast.kit.mcp.endpoint import VERSIONS
from holdfast.kit.operation import Operation, Operations

CARD = "application/mcp-server-card+json"
MARKDOWN = "text/markdown"

SECONDS = 3600
"""How long others may remember a document."""

CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET",
    "Access-Control-Allow-Headers": "Content-Type, If-None-Match",
    "Access-Control-Expose-Headers": "ETag",
}


def name(base_url: str) -> str:
    """The server's name in reverse-DNS form, such as `com.example.stock/inventory`."""
    return f"{'.'.join(reversed(_host(base_url).split('.')))}/inventory"


def routes(agents: Agents, operations: Operations, description: str) -> list[BaseRoute]:
    """Every discovery document.

    agents         what agents are told at `/mcp`, which the documents must not contradict
    description    of the service, at most 100 characters
    """
    base = agents.base_url
    tools = [operation for operation in operations if operation.tool]
    card = _json(server_card(agents, description))
    a2a = _json(agent_card(agents, description, tools))
    resource = _json(protected_resource(agents))
    return [
        _document("/mcp/server-card", card, CARD),
        _document("/.well-known/mcp.json", card),
        _document("/.well-known/mcp/server-card.json", card),
        _document("/.well-known/ai-catalog.json", _json(catalog(base)), "application/ai-catalog+json"),
        _document("/.well-known/agent.json", a2a),
        _document("/.well-known/agent-card.json", a2a),
        _document("/.well-known/oauth-authorization-server", _json(authorization_server(base))),
        _document("/.well-known/oauth-protected-resource", resource),
        _document("/.well-known/oauth-protected-resource/mcp", resource),
        _document("/auth.md", auth(base).encode(), MARKDOWN),
        _document("/llms.txt", llms(agents, description, tools).encode(), "text/plain"),
    ]


def server_card(agents: Agents, description: str) -> dict[str, Any]:
    """The MCP server card (SEP-2127)."""
    key = {"description": "The shop's API key, from the app's settings under API access.", "isSecret": True}
    return {
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": agents.name,
        "version": agents.version,
        "title": agents.title,
        "description": description,
        "websiteUrl": f"{agents.base_url}/llms.txt",
        "remotes": [
            {
                "type": "streamable-http",
                "url": f"{agents.base_url}/mcp",
                "headers": [
                    {
                        "name": "Authorization",
                        "description": "The shop's API key, or an access token: see /auth.md.",
                        "value": "Bearer {api_key}",
                        "variables": {"api_key": {**key, "isRequired": True}},
                        "isRequired": True,
                        "isSecret": True,
                    }
                ],
                "supportedProtocolVersions": list(VERSIONS),
            }
        ],
    }


def catalog(base_url: str) -> dict[str, Any]:
    """The AI catalog, which says where the server card is."""
    entry = {
        "identifier": f"urn:air:{_host(base_url)}:mcp:inventory",
        "type": CARD,
        "url": f"{base_url}/mcp/server-card",
    }
    return {"specVersion": "1.0", "entries": [entry]}


def agent_card(agents: Agents, description: str, tools: Sequence[Operation]) -> dict[str, Any]:
    """The A2A agent card, version 1.0, with what readers of 0.3 look for beside it.

    The binding says what is spoken at the address, which is MCP.
    """
    endpoint = f"{agents.base_url}/mcp"
    return {
        "name": agents.title,
        "description": f"{description} Spoken to over the Model Context Protocol.",
        "version": agents.version,
        "documentationUrl": f"{agents.base_url}/llms.txt",
        "supportedInterfaces": [{"url": endpoint, "protocolBinding": "MCP", "protocolVersion": "1.0"}],
        "url": endpoint,
        "preferredTransport": "MCP",
        "protocolVersion": "0.3.0",
        "capabilities": {"streaming": False, "pushNotifications": False},
        "defaultInputModes": ["application/json"],
        "defaultOutputModes": ["application/json"],
        "securitySchemes": {
            "bearer": {
                "httpAuthSecurityScheme": {
                    "scheme": "Bearer",
                    "description": f"A shop's API key, or an access token: see {agents.base_url}/auth.md.",
                }
            }
        },
        "securityRequirements": [{"schemes": {"bearer": {"list": []}}}],
        "skills": [
            {"id": tool.name, "name": tool.title, "description": tool.summary, "tags": [tool.scope or "inventory"]}
            for tool in tools
        ],
    }


def authorization_server(base_url: str) -> dict[str, Any]:
    """RFC 8414. No grant needs a browser, so there is no authorization endpoint, and no response type."""
    return {
        "issuer": base_url,
        "token_endpoint": f"{base_url}/oauth/token",
        "jwks_uri": f"{base_url}/.well-known/jwks.json",
        "scopes_supported": list(SCOPES),
        "response_types_supported": [],
        "grant_types_supported": [JWT_BEARER],
        "token_endpoint_auth_methods_supported": ["none"],
        "service_documentation": f"{base_url}/auth.md",
        "agent_auth": {
            "skill": f"{base_url}/auth.md",
            "identity_endpoint": f"{base_url}/api/agent/identity",
            "identity_types_supported": [SERVICE_AUTH],
        },
    }


def protected_resource(agents: Agents) -> dict[str, Any]:
    """RFC 9728."""
    return {
        "resource": f"{agents.base_url}/mcp",
        "authorization_servers": [agents.base_url],
        "scopes_supported": list(SCOPES),
        "bearer_methods_supported": ["header"],
        "resource_name": agents.title,
        "resource_documentation": f"{agents.base_url}/auth.md",
    }


def auth(base_url: str) -> str:
    """What an agent does from no credentials to a first tool call."""
    text = Path(__file__).with_name("auth.md").read_text(encoding="utf-8")
    return text.replace("{base_url}", base_url)


def llms(agents: Agents, description: str, tools: Sequence[Operation]) -> str:
    """The service in a page, for language models (llmstxt.org)."""
    listed = "\n".join(f"- `{tool.name}` ({tool.scope}): {tool.summary}" for tool in tools)
    base = agents.base_url
    return f"""# {agents.title}

> {description}

Agents call tools at {base}/mcp (Model Context Protocol over streamable HTTP, JSON-RPC 2.0) with the header
`Authorization: Bearer <API_KEY>`. A key belongs to one shop and reaches that shop's data only.

{agents.instructions.strip()}

The tools, each with the scope it needs:

{listed}

## Access

- [Credentials]({base}/auth.md): from no credentials to a first tool call, with lines that run as printed
- [Protected resource]({base}/.well-known/oauth-protected-resource/mcp): RFC 9728 metadata of the agent endpoint
- [Authorization server]({base}/.well-known/oauth-authorization-server): RFC 8414 metadata, with the `agent_auth` block
- [Signing keys]({base}/.well-known/jwks.json): the public keys of assertions and access tokens

## Optional

- [Server card]({base}/.well-known/mcp.json): the agent endpoint, for MCP clients
- [Agent card]({base}/.well-known/agent-card.json): the same in the words of A2A
- [AI catalog]({base}/.well-known/ai-catalog.json): where the server card is
"""


def _host(base_url: str) -> str:
    """The host as a domain; what has none is local."""
    host = urlsplit(base_url).hostname or "localhost"
    try:
        ip_address(host)
    except ValueError:
        return host
    return "localhost"


def _json(document: Mapping[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def _document(path: str, body: bytes, media_type: str = "application/json") -> Route:
    etag = f'"{sha256(body).hexdigest()[:32]}"'
    headers = {**CORS, "Cache-Control": f"public, max-age={SECONDS}", "ETag": etag}

    async def show(request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=CORS)
        if _has(request.headers.getlist("if-none-match"), etag):
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type=media_type)

    return Route(path, show, methods=["GET", "OPTIONS"])


def _has(conditions: Sequence[str], etag: str) -> bool:
    """Whether a client has what the tag stands for already (RFC 9110, section 13.1.2)."""
    tags = {tag.strip().removeprefix("W/") for condition in conditions for tag in condition.split(",")}
    return not tags.isdisjoint({etag, "*"})
