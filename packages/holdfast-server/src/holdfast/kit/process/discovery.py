"""The discovery documents of both services. They describe a service to programs that do not know it yet.

Each is built once, when the service starts, from the table of operations and the `EndpointConfig` of `/mcp`. All of
them are public. A service adds further documents with `document`.
"""

import gzip
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import ErrorBody, Problem
from holdfast.kit.http.answers import PlainEndpoint, accepts_gzip, has_version
from holdfast.kit.http.handler import Access, Handler, Header, Reply, Request, encode, envelope
from holdfast.kit.http.index import Route
from holdfast.kit.mcp import EndpointConfig
from holdfast.kit.mcp.endpoint import VERSIONS
from holdfast.kit.operations.operation import Operations
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.pages.language import Language, language_of
from holdfast.kit.pages.site import security_headers
from holdfast.kit.security.signed_tokens import PUBLISHED_TTL_SECONDS

JSON = "application/json"
CARD = "application/mcp-server-card+json"
AI_CATALOG = "application/ai-catalog+json"
LINKSET = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
HTML = "text/html"
MARKDOWN = "text/markdown"
TEXT = "text/plain"

CARD_PATH = "/mcp/server-card"
RESOURCE_PATH = "/.well-known/oauth-protected-resource"

CACHE_MAX_AGE_SECONDS = 3600
"""Seconds for which clients may cache a document."""

CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET",
    "Access-Control-Allow-Headers": "Content-Type, If-None-Match, MCP-Protocol-Version",
    "Access-Control-Expose-Headers": "ETag",
}


@dataclass(frozen=True)
class ServiceDescription:
    """The facts about a service that the documents describe.

    agents          the endpoint for agents at `/mcp`, whose name, version and texts the documents repeat
    description     at most 100 characters
    manual          the path of the text that leads an agent without credentials to its first call
    key             a sentence that says how to get an API key
    credential      a sentence that says what may be sent as a bearer token
    by_oauth        whether an OAuth client can get its credential without a person's help
    api_key_header  the header that accepts an API key in addition to `Authorization`, if any
    """

    agents: EndpointConfig
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
        """The last part of the service's name, such as `inventory`."""
        return self.agents.name.rpartition("/")[2]

    def tools(self) -> str:
        """The tools with their scopes, as a list in Markdown."""
        return "\n".join(f"- `{tool.name}` ({tool.scope}): {tool.summary}" for tool in self.operations if tool.tool)


def reverse_dns(base_url: str, noun: str) -> str:
    """A server's name in reverse-DNS form, such as `com.example.stock/inventory`."""
    return f"{'.'.join(reversed(_host(base_url).split('.')))}/{noun}"


def routes(service: ServiceDescription, resource: Mapping[str, Any], llms: str) -> list[Route]:
    """The routes of the documents that both services have.

    resource    the metadata of `/mcp` as a protected resource
    llms        the service on one page (llmstxt.org)
    """
    card = json(server_card(service))
    a2a = json(agent_card(service))
    metadata = json(resource)
    return [
        document(CARD_PATH, card, CARD),
        document("/.well-known/mcp.json", card),
        document("/.well-known/mcp/server-card.json", card),
        document("/.well-known/ai-catalog.json", json(ai_catalog(service)), AI_CATALOG),
        document("/.well-known/agent.json", a2a),
        document("/.well-known/agent-card.json", a2a),
        document(RESOURCE_PATH, metadata),
        document(f"{RESOURCE_PATH}/mcp", metadata),
        document("/llms.txt", llms.encode(), TEXT),
    ]


def server_card(service: ServiceDescription) -> dict[str, Any]:
    """The MCP server card (SEP-2127)."""
    agents = service.agents
    return {
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": agents.name,
        "version": agents.version,
        "title": agents.title,
        "description": service.description,
        "websiteUrl": f"{agents.base_url}/llms.txt",
        "remotes": [
            {
                "type": "streamable-http",
                "url": service.endpoint,
                "headers": [
                    {
                        "name": "Authorization",
                        "description": service.credential,
                        "value": "Bearer {api_key}",
                        "variables": {"api_key": {"description": service.key, "isSecret": True, "isRequired": True}},
                        "isRequired": not service.by_oauth,
                        "isSecret": True,
                    }
                ],
                "supportedProtocolVersions": list(VERSIONS),
            }
        ],
    }


def ai_catalog(service: ServiceDescription) -> dict[str, Any]:
    """The AI catalog, which has the URL of the server card."""
    base = service.base_url
    entry = {
        "identifier": f"urn:air:{_host(base)}:mcp:{service.noun}",
        "type": CARD,
        "url": f"{base}{CARD_PATH}",
    }
    return {"specVersion": "1.0", "entries": [entry]}


def agent_card(service: ServiceDescription) -> dict[str, Any]:
    """The A2A agent card, version 1.0, with the members that readers of version 0.3 need.

    The binding names the protocol of the URL, which is MCP.
    """
    agents, endpoint, header = service.agents, service.endpoint, service.api_key_header
    bearer = {"scheme": "Bearer", "description": service.credential}
    schemes: dict[str, Any] = {"bearer": {"httpAuthSecurityScheme": bearer}}
    if header:
        schemes["apiKey"] = {"apiKeySecurityScheme": {"location": "header", "name": header, "description": service.key}}
    return {
        "name": agents.title,
        "description": f"{service.description} Spoken to over the Model Context Protocol.",
        "version": agents.version,
        "documentationUrl": f"{agents.base_url}{service.manual}",
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
                "tags": [tool.scope or service.noun],
            }
            for tool in service.operations
            if tool.tool
        ],
    }


def protected_resource(service: ServiceDescription, scopes: Sequence[str], **more: Any) -> dict[str, Any]:
    """The RFC 9728 document. `more` names the authorization servers, or says how to get a credential without one."""
    return {
        "resource": service.endpoint,
        "scopes_supported": list(scopes),
        "bearer_methods_supported": ["header"],
        "resource_name": service.agents.title,
        "resource_documentation": f"{service.base_url}{service.manual}",
        **more,
    }


def fill_template(template: Path, **values: str) -> str:
    """The text of a template with values in place of its `{names}`."""
    text = template.read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def json(value: Mapping[str, Any]) -> bytes:
    """A document as indented JSON, because people read it too."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2)


def document(
    path: str, body: bytes | Callable[[], bytes], media_type: str = JSON, headers: Mapping[str, str] | None = None
) -> Route:
    """A document that pages of every origin may read, and that clients may cache and revalidate by its ETag.

    Clients that accept gzip get it compressed, with an ETag of its own.

    body       its content, or a function that returns it, which is called once, for the first request
    headers    additional headers
    """
    return Route(path, PlainEndpoint(_replies(body, media_type, headers), _encoded(CORS)))


def document_page(path: str, render: Callable[[Language], str]) -> Route:
    """A page that is the same for all visitors, in each language. Like a document it may be cached, and is sent
    compressed.

    render    makes the page, once for a language
    """

    @cache
    def replies(language: Language) -> Callable[[Request], Reply]:
        headers = {name.decode(): value.decode() for name, value in security_headers(language)}
        del headers["cache-control"]
        headers["vary"] = "accept-encoding, accept-language"
        return _replies(lambda: render(language).encode(), HTML, headers)

    def show(request: Request) -> Reply:
        return replies(language_of(request))(request)

    return Route(path, PlainEndpoint(show, _encoded(CORS)))


def _replies(
    body: bytes | Callable[[], bytes], media_type: str, headers: Mapping[str, str] | None
) -> Callable[[Request], Reply]:
    """A function that answers requests for a document."""

    @cache
    def build(compressed: bool) -> EncodedDocument:
        if compressed:
            plain = build(False)
            etag = plain.etag[:-1] + b'-gzip"'
            gzip_headers = {**plain.headers, b"etag": etag, b"content-encoding": b"gzip"}
            return EncodedDocument(gzip.compress(plain.content, mtime=0), etag, gzip_headers)
        content = body if isinstance(body, bytes) else body()
        etag = f'"{sha256(content).hexdigest()[:32]}"'.encode()
        more = {
            b"cache-control": f"public, max-age={CACHE_MAX_AGE_SECONDS}".encode(),
            b"etag": etag,
            b"vary": b"Accept-Encoding",
            **dict(_encoded(headers or {})),
        }
        return EncodedDocument(content, etag, {**dict(_encoded(CORS)), **more})

    declared_type = _with_charset(media_type)

    @cache
    def reply(compressed: bool, is_current: bool) -> Reply:
        built = build(compressed)
        return Reply(
            304 if is_current else 200, b"" if is_current else built.content, [*built.headers.items()], declared_type
        )

    def show(request: Request) -> Reply:
        compressed = accepts_gzip(request.headers.get(b"accept-encoding", b""))
        condition = request.headers.get(b"if-none-match")
        return reply(compressed, condition is not None and has_version(condition, build(compressed).etag))

    return show


def keys_document(
    path: str,
    name: str,
    limits: Limits,
    read: Callable[[], Awaitable[Mapping[str, Any]]],
    error_body: ErrorBody = Problem.body,
) -> Route:
    """The route of public keys (RFC 7517), for pages of every origin. `name`: its name in logs and metrics."""
    headers = [
        (b"cache-control", f"public, max-age={PUBLISHED_TTL_SECONDS}".encode()),
        (b"access-control-allow-origin", b"*"),
    ]

    async def answer(_: Caller, request: Request) -> Reply:
        return Reply(200, encode(await read()), headers)

    return Route(path, Handler(Access(name), limits, answer, envelope(error_body)))


class EncodedDocument(NamedTuple):
    """The content of a document in one encoding, its tag, and its headers."""

    content: bytes
    etag: bytes
    headers: Mapping[bytes, bytes]


def _encoded(headers: Mapping[str, str]) -> list[Header]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


def _with_charset(media_type: str) -> bytes:
    charset = "; charset=utf-8" if media_type.startswith("text/") and "charset=" not in media_type else ""
    return f"{media_type}{charset}".encode()


def _host(base_url: str) -> str:
    """The host if it is a domain, else `localhost`."""
    host = urlsplit(base_url).hostname or "localhost"
    try:
        ip_address(host)
    except ValueError:
        return host
    return "localhost"
