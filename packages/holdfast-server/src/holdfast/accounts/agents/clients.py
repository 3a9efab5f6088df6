"""What people give to an agent so that it connects: links, commands and settings, for each program as it has them.

Sources, as of November 2026: claude.ai (support.claude.com, "custom connectors"), ChatGPT
(developers.openai.com/plugins/quickstart), Cursor (cursor.com/docs/mcp/install-links), VS Code
(code.visualstudio.com/api/extension-guides/ai/mcp), Claude Code (code.claude.com/docs/en/mcp), Codex
(developers.openai.com/codex/mcp), the bridge `mcp-remote` (npmjs.com/package/mcp-remote).
"""

import json
from base64 import b64encode
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlsplit

from msgspec import Struct

KEY = "YOUR_KEY"
"""Stands for the key in settings that people copy."""


class Connection(Struct, frozen=True):
    """What agents need to connect to the endpoint of a service.

    address     the address of the endpoint
    name        the short name of the service in a list of connections
    by_oauth    whether the service lets a person allow it on a page; else agents need a key
    """

    address: str
    name: str
    by_oauth: bool

    @property
    def is_public(self) -> bool:
        """Whether programs of other machines may reach the address: it has https and names no machine of a network."""
        parts = urlsplit(self.address)
        host = parts.hostname or ""
        try:
            return parts.scheme == "https" and ip_address(host).is_global
        except ValueError:
            return parts.scheme == "https" and "." in host and not host.endswith((".localhost", ".local", ".internal"))

    @property
    def cursor_link(self) -> str:
        """The link that adds it to Cursor."""
        config = quote(b64encode(_compact({"url": self.address}).encode()).decode(), safe="")
        return f"cursor://anysphere.cursor-deeplink/mcp/install?name={self.name}&config={config}"

    @property
    def vscode_link(self) -> str:
        """The link that adds it to VS Code."""
        config = {"name": self.name, "type": "http", "url": self.address}
        return f"vscode:mcp/install?{quote(_compact(config), safe='')}"

    @property
    def claude_code_command(self) -> str:
        """The command that adds it to Claude Code."""
        header = "" if self.by_oauth else f' --header "Authorization: Bearer {KEY}"'
        return f"claude mcp add --transport http {self.name} {self.address}{header}"

    @property
    def codex_command(self) -> str:
        """The command that adds it to Codex, and asks the person."""
        return f"codex mcp add {self.name} --url {self.address}"

    @property
    def cursor_settings(self) -> str:
        """The contents of `mcp.json` of Cursor, without a key."""
        return _indented({"mcpServers": {self.name: {"url": self.address}}})

    @property
    def vscode_settings(self) -> str:
        """The contents of `mcp.json` of VS Code, which asks for the key."""
        server = {"type": "http", "url": self.address, "headers": {"Authorization": "Bearer ${input:key}"}}
        key_input = {"type": "promptString", "id": "key", "description": "API key", "password": True}
        return _indented({"servers": {self.name: server}, "inputs": [key_input]})

    @property
    def bridge_settings(self) -> str:
        """Settings of Cursor and Claude Desktop that start a bridge, which sends a key. It needs Node."""
        arguments = ["-y", "mcp-remote", self.address, "--header", "Authorization:${AUTH_HEADER}"]
        server = {"command": "npx", "args": arguments, "env": {"AUTH_HEADER": f"Bearer {KEY}"}}
        return _indented({"mcpServers": {self.name: server}})


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _indented(value: Any) -> str:
    return json.dumps(value, indent=2)
