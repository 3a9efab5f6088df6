"""The discovery documents of the events service, for programs that do not know it yet; see `kit/process/discovery.py`.

The texts are files in this folder: `agents.md` for the first steps of an agent, `docs.md`, `llms.txt`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast.events.documents import page, reference
from holdfast.events.oauth.model import SCOPES
from holdfast.events.organizers.operations import API_KEY_HEADER
from holdfast.events.problems import ALL
from holdfast.events.settings import Settings
from holdfast.kit.contract.problems import COMMON_PROBLEMS
from holdfast.kit.http.index import Route
from holdfast.kit.mcp import Document, ResourceEntry
from holdfast.kit.mcp.endpoint import VERSIONS
from holdfast.kit.operations.operation import Operations
from holdfast.kit.process import discovery
from holdfast.kit.process.discovery import (
    CARD_PATH,
    JSON,
    LINKSET,
    MARKDOWN,
    RESOURCE_PATH,
    ServiceDescription,
    document,
    fill_template,
)

CATALOG_PATH = "/.well-known/api-catalog"
OPENAPI_PATH = "/openapi.json"

HERE = Path(__file__).parent

Spec = Mapping[str, Any]
Documents = Mapping[str, Document]
"""Documents by their path."""


def routes(described: ServiceDescription, documents: Documents, settings: Settings) -> list[Route]:
    """The routes of all discovery documents, and of the reference for people."""
    catalog = {"Link": f'<{described.base_url}{CATALOG_PATH}>; rel="api-catalog"'}
    return [
        *discovery.routes(described, protected_resource(described, settings), llms(described)),
        *(document(path, doc.text.encode(), doc.entry.mime_type, catalog) for path, doc in documents.items()),
        document(CATALOG_PATH, discovery.json(api_catalog(described.base_url)), LINKSET, catalog),
        *page.routes(documents[OPENAPI_PATH].text),
    ]


def documents(operations: Operations, openapi: str, settings: Settings) -> Documents:
    """The documents that are also resources of `/mcp`: the instructions, the documentation, the catalog, OpenAPI.

    openapi    the OpenAPI document as JSON
    """
    spec: Spec = msgspec.json.decode(openapi)
    return {
        "/agents.md": Document(
            ResourceEntry(
                "holdfast://agents", "agents", "For agents", "From nothing to an event with people.", MARKDOWN
            ),
            agents(operations, settings),
        ),
        "/docs.md": Document(
            ResourceEntry("holdfast://docs", "docs", "Documentation", "Every operation, object and error.", MARKDOWN),
            docs(spec, settings),
        ),
        "/api": Document(
            ResourceEntry("holdfast://catalog", "catalog", "API catalog", "The operations as JSON.", JSON),
            discovery.json(catalog(operations, spec, settings)).decode(),
        ),
        # It is not indented: only programs read it, and indentation would double its length.
        OPENAPI_PATH: Document(
            ResourceEntry("holdfast://openapi", "openapi", "OpenAPI", "The operations as OpenAPI 3.1.", JSON),
            openapi,
        ),
    }


def agents(operations: Operations, settings: Settings) -> str:
    """The instructions for agents, from no credentials to an event with registrations."""
    tools = [f"| `{operation.name}` | {operation.summary} |" for operation in operations if operation.tool]
    return fill_template(
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
        "organizers_per_email": str(settings.organizers_per_email),
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
    """The section on access tokens; empty if the service accepts none."""
    base, issuer = settings.base_url, settings.authorization_server
    if not issuer:
        return ""
    scopes = "\n".join(f"| `{scope}` | {meaning} |" for scope, meaning in SCOPES.items())
    token_text = _OWN_TOKENS if settings.has_own_server else _TOKENS_OF_ANOTHER
    return f"""
### With an access token instead of a key

Access tokens of `{issuer}` are accepted as bearer tokens at `{base}/mcp`, and only there; the
[metadata of the endpoint]({base}{RESOURCE_PATH}/mcp) says so to OAuth clients. {token_text} `tools/list` shows the
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
    """The documentation as Markdown."""
    types = sorted((*COMMON_PROBLEMS, *ALL), key=lambda problem: (problem.status, problem.code))
    problems = [f"| {problem.status} | `{problem.code}` | {problem.meaning} | {problem.hint} |" for problem in types]
    return fill_template(
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
    """A summary of the service on one page for language models (llmstxt.org)."""
    return fill_template(
        HERE / "llms.txt",
        base_url=described.base_url,
        description=described.description,
        instructions=described.agents.instructions.strip(),
        tools=described.tools(),
    )


def catalog(operations: Operations, spec: Spec, settings: Settings) -> dict[str, Any]:
    """The API catalog: the operations, and the addresses of their documentation."""
    base = settings.base_url
    info: Mapping[str, str] = spec["info"]
    return {
        "name": info["title"],
        "version": info["version"],
        "description": info["description"],
        "base_url": base,
        "authentication": {
            "header": API_KEY_HEADER,
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
            "openapi": f"{base}{OPENAPI_PATH}",
            "reference": f"{base}/docs",
            "site_map": f"{base}/llms.txt",
        },
        "endpoints": [
            {
                "name": operation.name,
                "method": operation.method,
                "path": operation.path,
                "description": operation.summary,
                "authentication": "none" if operation.public else "api_key",
                "tool": operation.name if operation.tool else None,
            }
            for operation in operations
            if operation.route
        ],
    }


def api_catalog(base_url: str) -> dict[str, Any]:
    """The API catalog of RFC 9727: links to the documents, for generic programs."""

    def links(*paths: tuple[str, str]) -> list[dict[str, str]]:
        return [{"href": f"{base_url}{path}", "type": kind} for path, kind in paths]

    return {
        "linkset": [
            {
                "anchor": f"{base_url}/api",
                "service-desc": links((OPENAPI_PATH, JSON)),
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
    "POST /api/organizers/register gives one to any caller, without credentials; see /agents.md."
)


def protected_resource(described: ServiceDescription, settings: Settings) -> dict[str, Any]:
    """The protected resource metadata of RFC 9728. Without an authorization server, a note says how to get a key."""
    methods = [
        {"type": "http", "scheme": "bearer", "description": described.credential},
        {"type": "apiKey", "in": "header", "name": API_KEY_HEADER, "description": described.key},
    ]
    if settings.authorization_server:
        more: dict[str, Any] = {"authorization_servers": [settings.authorization_server]}
    else:
        more = {"x-auth-note": AUTH_NOTE}
    # The challenge of `/mcp` names the scopes for the first request; these are all scopes.
    return discovery.protected_resource(described, [*SCOPES], **{"x-auth-methods": methods}, **more)
