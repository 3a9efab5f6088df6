"""The discovery documents: where each is, and how it is read."""

from typing import Any

import httpx2
import jsonschema
from jsonschema import Draft202012Validator

from tests.helpers.discovery import Schema, items, members

BASE_URL = "http://events.test"
ISSUER = "https://login.example.com"
CARDS = ("/.well-known/mcp.json", "/.well-known/mcp/server-card.json", "/mcp/server-card")
A2A = ("/.well-known/agent-card.json", "/.well-known/agent.json")
RESOURCES = ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp")
CATALOG = "/.well-known/api-catalog"
AI_CATALOG = "/.well-known/ai-catalog.json"
KINDS = {
    **dict.fromkeys((*CARDS, *A2A, *RESOURCES, AI_CATALOG, "/api", "/openapi.json"), "application/json"),
    "/mcp/server-card": "application/mcp-server-card+json",
    AI_CATALOG: "application/ai-catalog+json",
    CATALOG: 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"',
    "/llms.txt": "text/plain; charset=utf-8",
    "/agents.md": "text/markdown; charset=utf-8",
    "/docs.md": "text/markdown; charset=utf-8",
}
"""Every document, and its media type."""

TEXTS = [path for path, kind in KINDS.items() if kind.startswith("text/")]

LINKS = items(members({"href": {"type": "string", "pattern": "^https?://"}, "type": {"type": "string"}}))
LINKSET = members(
    {
        "linkset": items(
            members(
                {"anchor": {"type": "string", "pattern": "^https?://"}},
                **dict.fromkeys(("service-desc", "service-doc", "service-meta", "status", "item"), LINKS),
            )
        )
    }
)
"""RFC 9727: the links are those of RFC 8631, in the form of RFC 9264."""


async def document(http: httpx2.AsyncClient, path: str) -> Any:
    """A document: what JSON says, or a text."""
    response = await http.get(path)
    assert response.status_code == 200, response.text
    return response.text if path in TEXTS else response.json()


def fits(value: Any, schema: Schema) -> None:
    """Assert that a value is what a schema says."""
    jsonschema.validate(value, schema, Draft202012Validator)
