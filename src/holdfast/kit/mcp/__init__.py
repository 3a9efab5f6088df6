"""The MCP interface: the table of operations as tools over streamable HTTP, in both eras of the protocol."""

from holdfast.kit.mcp.endpoint import Endpoint
from holdfast.kit.mcp.model import Agents, Catalogue, Change, Document, Entry, Template

__all__ = ["Agents", "Catalogue", "Change", "Document", "Endpoint", "Entry", "Template"]
