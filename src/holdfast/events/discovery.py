"""What the service says about itself to programs that do not know it yet; see `kit/discovery.py`.

The texts stand beside this file: `agents.md` for an agent that begins, `docs.md`, `llms.txt`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from starlette.routing import BaseRoute

from holdfast.events.oauth.model import SCOPES
from holdfast.events.organizers.operations import HEADER
from holdfast.events.problems import ALL
from holdfast.events.settings import Settings
from holdfast.kit import discovery, openapi, reference
from holdfast.kit.discovery import (
    CARD_PATH,
    HTML,
    JSON,
    LINKSET,
    MARKDOWN,
    RESOURCE_PATH,
    Introduction,
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


def routes(introduction: Introduction, documents: Documents, spec: Spec, settings: Settings) -> list[BaseRoute]:
    """Every discovery document, and the reference for people."""
    catalog = {"Link": f'<{introduction.base_url}{CATALOG_PATH}>; rel="api-catalog"'}
    return [
        *discovery.routes(introduction, protected_resource(introduction, settings), llms(introduction)),
        *(document(path, each.text.encode(), each.entry.mime_type, catalog) for path, each in documents.items()),
        document(CATALOG_PATH, discovery.json(api_catalog(introduction.base_url)), LINKSET, catalog),
        document("/docs", openapi.page(spec).encode(), HTML),
    ]


def documents(operations: Operations, spec: Spec, settings: Settings) -> Documents:
    """What is a resource of the agent endpoint as well: the instructions, the documentation, the catalog, OpenAPI."""
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
        # Twice as long if it were indented, and nobody reads it by eye.
        "/openapi.json": Document(
            Entry("holdfast://openapi", "openapi", "OpenAPI", "The operations as OpenAPI 3.1.", JSON),
            msgspec.json.encode(spec).decode(),
        ),
    }


def agents(operations: Operations, settings: Settings) -> str:
    """What an agent does from no credentials to an event with people registered."""
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
        "registrations_per_minute": str(settings.registrations_per_minute),
        "organizers_per_hour": str(settings.organizers_per_hour),
        "photos_per_minute": str(settings.photos_per_minute),
        "joins_per_minute": str(settings.joins_per_minute),
    }


def _tokens(settings: Settings) -> str:
    """What to know of access tokens, where there are any."""
    if not settings.oauth_issuer:
        return ""
    base, issuer = settings.base_url, settings.oauth_issuer
    scopes = "\n".join(f"| `{scope}` | {meaning} |" for scope, meaning in SCOPES.items())
    return f"""
### With an access token instead of a key

Access tokens of `{issuer}` are accepted as bearer tokens at `{base}/mcp`, and only there; the
[metadata of the endpoint]({base}{RESOURCE_PATH}/mcp) says so to OAuth clients. A token acts for the organizer it is
linked to, which is by the verified e-mail address it carries, and may do what its scopes allow. `tools/list` shows the
tools it may call; a call of another is HTTP 403 with the scope that is missing.

| scope | allows |
|---|---|
{scopes}
"""


def docs(spec: Spec, settings: Settings) -> str:
    """The documentation."""
    kinds = sorted((*EVERYWHERE, *ALL), key=lambda kind: (kind.status, kind.code))
    problems = [f"| {kind.status} | `{kind.code}` | {kind.meaning} | {kind.hint} |" for kind in kinds]
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


def llms(introduction: Introduction) -> str:
    """The service in a page, for language models (llmstxt.org)."""
    return filled(
        HERE / "llms.txt",
        base_url=introduction.base_url,
        description=introduction.description,
        instructions=introduction.agents.instructions.strip(),
        tools=introduction.tools(),
    )


def catalog(operations: Operations, spec: Spec, settings: Settings) -> dict[str, Any]:
    """The API catalog: what there is to call, and where to read about it."""
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
    """RFC 9727: the same in links, for programs that know no service by name."""

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


def protected_resource(introduction: Introduction, settings: Settings) -> dict[str, Any]:
    """RFC 9728. Without an authorization server a note says what to do instead."""
    methods = [
        {"type": "http", "scheme": "bearer", "description": introduction.credential},
        {"type": "apiKey", "in": "header", "name": HEADER, "description": introduction.key},
    ]
    if settings.oauth_issuer:
        more: dict[str, Any] = {"authorization_servers": [settings.oauth_issuer]}
    else:
        more = {"x-auth-note": AUTH_NOTE}
    return discovery.protected_resource(introduction, [*SCOPES], **{"x-auth-methods": methods}, **more)
