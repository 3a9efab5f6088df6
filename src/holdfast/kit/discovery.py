"""What a service says about itself to programs that do not know it yet: the documents both services have.

Each is written once, when the service starts, from the table of operations and what agents are told at `/mcp`, and all
are public. A service adds documents of its own with `document`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from holdfast.kit.mcp import Agents
from holdfast.kit.mcp.endpoint import VERSIONS
from holdfast.kit.operation import Operations

JSON = "application/json"
CARD = "application/mcp-server-card+json"
AI_CATALOG = "application/ai-catalog+json"
LINKSET = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
HTML = "text/html"
MARKDOWN = "text/markdown"
TEXT = "text/plain"

CARD_PATH = "/mcp/server-card"
RESOURCE_PATH = "/.well-known/oauth-protected-resource"

SECONDS = 3600
"""How long others may remember a document."""

CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET",
    "Access-Control-Allow-Headers": "Content-Type, If-None-Match, MCP-Protocol-Version",
    "Access-Control-Expose-Headers": "ETag",
}


@dataclass(frozen=True)
class Introduction:
    """A service, as the documents introduce it.

    agents          what agents are told at `/mcp`, which the documents must not contradict
    description     at most 100 characters
    manual          path of the text that takes an agent from no credentials to its first call
    key             where an API key comes from, in a sentence
    credential      what may be sent as a bearer token, in a sentence
    by_oauth        whether an OAuth client gets its credential by itself
    api_key_header  the header that takes an API key beside `Authorization`, if any
    """

    agents: Agents
    operations: Operations
    description: str
    manual: str
    key: str
    credential: str
    by_oauth: bool
    api_key_header: str | None = None

    @property
    def base_url(self) -> str:
        return self.agents.base_url

    @property
    def endpoint(self) -> str:
        return f"{self.base_url}/mcp"

    @property
    def noun(self) -> str:
        """What the service deals in: the last part of its name."""
        return self.agents.name.rpartition("/")[2]

    def tools(self) -> str:
        """The tools with their scopes, as a list in Markdown."""
        return "\n".join(f"- `{each.name}` ({each.scope}): {each.summary}" for each in self.operations if each.tool)


def reverse_dns(base_url: str, noun: str) -> str:
    """A server's name in reverse-DNS form, such as `com.example.stock/inventory`."""
    return f"{'.'.join(reversed(_host(base_url).split('.')))}/{noun}"


def routes(introduction: Introduction, resource: Mapping[str, Any], llms: str) -> list[BaseRoute]:
    """The documents both services have.

    resource    the metadata of `/mcp` as a protected resource
    llms        the service in a page (llmstxt.org)
    """
    card = json(server_card(introduction))
    a2a = json(agent_card(introduction))
    metadata = json(resource)
    return [
        document(CARD_PATH, card, CARD),
        document("/.well-known/mcp.json", card),
        document("/.well-known/mcp/server-card.json", card),
        document("/.well-known/ai-catalog.json", json(ai_catalog(introduction)), AI_CATALOG),
        document("/.well-known/agent.json", a2a),
        document("/.well-known/agent-card.json", a2a),
        document(RESOURCE_PATH, metadata),
        document(f"{RESOURCE_PATH}/mcp", metadata),
        document("/llms.txt", llms.encode(), TEXT),
    ]


def server_card(introduction: Introduction) -> dict[str, Any]:
    """The MCP server card (SEP-2127)."""
    agents = introduction.agents
    return {
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": agents.name,
        "version": agents.version,
        "title": agents.title,
        "description": introduction.description,
        "websiteUrl": f"{agents.base_url}/llms.txt",
        "remotes": [
            {
                "type": "streamable-http",
                "url": introduction.endpoint,
                "headers": [
                    {
                        "name": "Authorization",
                        "description": introduction.credential,
                        "value": "Bearer {api_key}",
                        "variables": {
                            "api_key": {"description": introduction.key, "isSecret": True, "isRequired": True}
                        },
                        "isRequired": not introduction.by_oauth,
                        "isSecret": True,
                    }
                ],
                "supportedProtocolVersions": list(VERSIONS),
            }
        ],
    }


def ai_catalog(introduction: Introduction) -> dict[str, Any]:
    """The AI catalog, which says where the server card is."""
    base = introduction.base_url
    entry = {
        "identifier": f"urn:air:{_host(base)}:mcp:{introduction.noun}",
        "type": CARD,
        "url": f"{base}{CARD_PATH}",
    }
    return {"specVersion": "1.0", "entries": [entry]}


def agent_card(introduction: Introduction) -> dict[str, Any]:
    """The A2A agent card, version 1.0, with what readers of 0.3 look for beside it.

    The binding says what is spoken at the address, which is MCP.
    """
    agents, endpoint, header = introduction.agents, introduction.endpoint, introduction.api_key_header
    bearer = {"scheme": "Bearer", "description": introduction.credential}
    schemes: dict[str, Any] = {"bearer": {"httpAuthSecurityScheme": bearer}}
    if header:
        schemes["apiKey"] = {
            "apiKeySecurityScheme": {"location": "header", "name": header, "description": introduction.key}
        }
    return {
        "name": agents.title,
        "description": f"{introduction.description} Spoken to over the Model Context Protocol.",
        "version": agents.version,
        "documentationUrl": f"{agents.base_url}{introduction.manual}",
        "supportedInterfaces": [{"url": endpoint, "protocolBinding": "MCP", "protocolVersion": "1.0"}],
        "url": endpoint,
        "preferredTransport": "MCP",
        "protocolVersion": "0.3.0",
        "capabilities": {"streaming": False, "pushNotifications": False},
        "defaultInputModes": [JSON],
        "defaultOutputModes": [JSON],
        "securitySchemes": schemes,
        "securityRequirements": [{"schemes": {scheme: {"list": []}}} for scheme in schemes],
        "skills": [
            {
                "id": tool.name,
                "name": tool.title,
                "description": tool.summary,
                "tags": [tool.scope or introduction.noun],
            }
            for tool in introduction.operations
            if tool.tool
        ],
    }


def protected_resource(introduction: Introduction, scopes: Sequence[str], **more: Any) -> dict[str, Any]:
    """RFC 9728. `more` says which authorization servers there are, or what to do without one."""
    return {
        "resource": introduction.endpoint,
        "scopes_supported": list(scopes),
        "bearer_methods_supported": ["header"],
        "resource_name": introduction.agents.title,
        "resource_documentation": f"{introduction.base_url}{introduction.manual}",
        **more,
    }


def filled(template: Path, **values: str) -> str:
    """A text with its `{names}` filled in."""
    text = template.read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def json(value: Mapping[str, Any]) -> bytes:
    """A document as it is served: indented, for people look at it too."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2)


def document(path: str, body: bytes, media_type: str = JSON, headers: Mapping[str, str] | None = None) -> Route:
    """A document that pages of every origin may read, that may be kept, and that is sent once while it stays as it is.

    headers    what it says beside that
    """
    etag = f'"{sha256(body).hexdigest()[:32]}"'
    headers = {**CORS, "Cache-Control": f"public, max-age={SECONDS}", "ETag": etag, **(headers or {})}

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


def _host(base_url: str) -> str:
    """The host as a domain; what has none is local."""
    host = urlsplit(base_url).hostname or "localhost"
    try:
        ip_address(host)
    except ValueError:
        return host
    return "localhost"
