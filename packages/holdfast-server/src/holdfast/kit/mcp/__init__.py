"""The MCP interface: the table of operations as tools over streamable HTTP, in both eras of the protocol."""

from holdfast.kit.mcp.endpoint import McpEndpoint
from holdfast.kit.mcp.model import Change, Document, EndpointConfig, ListedBy, ResourceEntry, Template

__all__ = ["Change", "Document", "EndpointConfig", "ListedBy", "McpEndpoint", "ResourceEntry", "Template"]
