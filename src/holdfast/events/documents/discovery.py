"""The discovery documents of the events service, for programs that do not know it yet; see `kit/discovery.py`.

The texts are files in this folder: `agents.md` for an agent that begins, `docs.md`, `llms.txt`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from starlette.routing import BaseRoute

from holdfast.events.documents import page, reference
from holdfast.events.oauth.model import SCOPES
from holdfast.events.oauth.own_server import ASKED
from holdfast.events.organizers.operations import HEADER
from holdfast.events.problems import ALL
from holdfast.events.settings import Settings
from holdfast.kit import discovery
from holdfast.kit.discovery import (
    CARD_PATH,
    JSON,
    LINKSET,
    MARKDOWN,
    RESOURCE_PATH,
    ServiceDescription,
    document,
    filled,
)
from holdfast.kit.mcp import Document, Entry
from holdfast.kit.mcp.endpoint import VERSIONS
from holdfast.kit.operation import Operations
from holdfast.kit.problems import EVERYWHERE

CATALOG_PATH = "/.well-known/api-catalog"

HERE = Path(__file__).parent

Spec = Mapping[str, Any]
Documents = Mapping[str, Document]
"""Documents by their path."""


def routes(described: ServiceDescription, documents: Documents, spec: Spec, settings: Settings) -> list[BaseRoute]:
    """Every discovery document, and the reference for people."""
    catalog = {"Link": f'<{described.base_url}{CATALOG_PATH}>; rel="api-catalog"'}
    return [
        *discovery.routes(described, protected_resource(described, settings), llms(described)),
        *(document(path, each.text.encode(), each.entry.mime_type, catalog) for path, each in documents.items()),
        document(CATALOG_PATH, discovery.json(api_catalog(described.base_url)), LINKSET, catalog),
        *page.routes(spec),
    ]


def documents(operations: Operations, spec: Spec, settings: Settings) -> Documents:
    """The documents that are also resources of `/mcp`: the instructions, the documentation, the catalog, OpenAPI."""
    return {
        "/agents.md": Document(
            Entry("holdfast://agents", "agents", "For agents", "From nothing to an event with people.", MARKDOWN),
            agents(operations, settings),
        ),
        "/docs.md": Document(
            Entry("holdfast://docs", "docs", "Documentation", "Every operation, object and error.", MARKDOWN),
            docs(spec, settings),
        ),
        "/api": Document(
            Entry("holdfast://catalog", "catalog", "API catalog", "The operations as JSON.", JSON),
            discovery.json(catalog(operations, spec, settings)).decode(),
        ),
        # Not indented: that would double its length, and only programs read it.
        "/openapi.json": Document(
            Entry("holdfast://openapi", "openapi", "OpenAPI", "The operations as OpenAPI 3.1.", JSON),
            msgspec.json.encode(spec).decode(),
        ),
    }


def agents(operations: Operations, settings: Settings) -> str:
    """The instructions for agents, from no credentials to an event with people registered."""
    tools = [f"| `{each.name}` | {each.summary} |" for each in operations if each.tool]
    return filled(
        HERE / "agents.md",
        base_url=settings.base_url,
        versions=", ".join(VERSIONS),
        tools="\n".join(["| tool | what it does |", "|---|---|", *tools]),
        tokens=_tokens(settings),
        **_limits(settings),
    )


def _limits(settings: Settings) -> dict[str, str]:
    return {
        "messages_per_second": str(settings.messages_per_second),
        "registrations_per_minute": str(settings.registrations_per_minute),
        "organizers_per_hour": str(settings.organizers_per_hour),
        "photos_per_minute": str(settings.photos_per_minute),
        "joins_per_minute": str(settings.joins_per_minute),
        "keys_share": str(settings.keys_share),
        "keys_per_hour": str(settings.keys_per_hour),
        "keys_per_organizer": str(settings.keys_per_organizer),
        "events_per_organizer": f"{settings.events_per_organizer:,}",
        "text_per_organizer": f"{settings.text_per_organizer:,}",
        "queues_per_organizer": str(settings.queues_per_organizer),
        "photos_per_organizer": f"{settings.photos_per_organizer:,}",
    }


def _tokens(settings: Settings) -> str:
    """The section on access tokens; empty if none are accepted."""
    base, issuer = settings.base_url, settings.authorization_server
    if not issuer:
        return ""
    scopes = "\n".join(f"| `{scope}` | {meaning} |" for scope, meaning in SCOPES.items())
    how = _OWN_TOKENS if settings.has_own_server else _TOKENS_OF_ANOTHER
    return f"""
### With an access token instead of a key

Access tokens of `{issuer}` are accepted as bearer tokens at `{base}/mcp`, and only there; the
[metadata of the endpoint]({base}{RESOURCE_PATH}/mcp) says so to OAuth clients. {how} `tools/list` shows the
tools it may call; a call of another is HTTP 403 with the scope that is missing.

| scope | allows |
|---|---|
{scopes}
"""


_OWN_TOKENS = (
    "An OAuth client gets one by itself: it opens a page in the browser of the person you work for, who signs in, "
    "reads what you ask for, and allows it. A token acts for that organizer, may do what its scopes allow, and is good "
    "for an hour. A refresh token gets the next one, once each, until the person disconnects you."
)
_TOKENS_OF_ANOTHER = (
    "A token acts for the organizer it is linked to, which is by the verified e-mail address it carries, and may do "
    "what its scopes allow."
)


def docs(spec: Spec, settings: Settings) -> str:
    """The documentation."""
    types = sorted((*EVERYWHERE, *ALL), key=lambda each: (each.status, each.code))
    problems = [f"| {each.status} | `{each.code}` | {each.meaning} | {each.hint} |" for each in types]
    return filled(
        HERE / "docs.md",
        base_url=settings.base_url,
        version=spec["info"]["version"],
        description=spec["info"]["description"],
        operations=reference.operations(spec),
        objects=reference.objects(spec),
        **_limits(settings),
        problems="\n".join(["| status | code | meaning | what to do |", "|---|---|---|---|", *problems]),
    )


def llms(described: ServiceDescription) -> str:
    """The service on one page, for language models (llmstxt.org)."""
    return filled(
        HERE / "llms.txt",
        base_url=described.base_url,
        description=described.description,
        instructions=described.agents.instructions.strip(),
        tools=described.tools(),
    )


def catalog(operations: Operations, spec: Spec, settings: Settings) -> dict[str, Any]:
    """The API catalog: the operations, and where they are documented."""
    base = settings.base_url
    info: Mapping[str, str] = spec["info"]
    return {
        "name": info["title"],
        "version": info["version"],
        "description": info["description"],
        "base_url": base,
        "authentication": {
            "header": HEADER,
            "alternative": "Authorization: Bearer <API_KEY>",
            "how_to_get_a_key": "POST /api/organizers/register",
        },
        "agent_endpoint": {
            "url": f"{base}/mcp",
            "protocol": "Model Context Protocol, streamable HTTP",
            "versions": list(VERSIONS),
        },
        "documentation": {
            "agents": f"{base}/agents.md",
            "docs": f"{base}/docs.md",
            "openapi": f"{base}/openapi.json",
            "reference": f"{base}/docs",
            "site_map": f"{base}/llms.txt",
        },
        "endpoints": [
            {
                "name": each.name,
                "method": each.method,
                "path": each.path,
                "description": each.summary,
                "authentication": "none" if each.public else "api_key",
                "tool": each.name if each.tool else None,
            }
            for each in operations
            if each.route
        ],
    }


def api_catalog(base_url: str) -> dict[str, Any]:
    """The API catalog of RFC 9727: links to the documents, for programs that know no service in particular."""

    def links(*paths: tuple[str, str]) -> list[dict[str, str]]:
        return [{"href": f"{base_url}{path}", "type": kind} for path, kind in paths]

    return {
        "linkset": [
            {
                "anchor": f"{base_url}/api",
                "service-desc": links(("/openapi.json", JSON)),
                "service-doc": links(("/docs", "text/html"), ("/docs.md", MARKDOWN), ("/agents.md", MARKDOWN)),
                "service-meta": links(("/api", JSON)),
                "status": links(("/readyz", "text/plain")),
            },
            {
                "anchor": f"{base_url}/mcp",
                "service-desc": links((CARD_PATH, discovery.CARD)),
                "service-doc": links(("/agents.md", MARKDOWN)),
                "service-meta": links((f"{RESOURCE_PATH}/mcp", JSON)),
                "status": links(("/readyz", "text/plain")),
            },
        ]
    }


AUTH_NOTE = (
    "No authorization server is configured, so OAuth is not offered: API keys are the only credentials. "
    "POST /api/organizers/register gives one to anybody, without credentials; see /agents.md."
)


def protected_resource(described: ServiceDescription, settings: Settings) -> dict[str, Any]:
    """The RFC 9728 document. Without an authorization server, a note in it says how to get a key."""
    methods = [
        {"type": "http", "scheme": "bearer", "description": described.credential},
        {"type": "apiKey", "in": "header", "name": HEADER, "description": described.key},
    ]
    if settings.authorization_server:
        more: dict[str, Any] = {"authorization_servers": [settings.authorization_server]}
    else:
        more = {"x-auth-note": AUTH_NOTE}
    # Clients ask for all that is listed here. What an app rarely needs it must ask for expressly.
    scopes = ASKED if settings.has_own_server else [*SCOPES]
    return discovery.protected_resource(described, scopes, **{"x-auth-methods": methods}, **more)
