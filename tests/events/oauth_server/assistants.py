"""What the assistants of people send when they connect: how they are known, their redirect addresses, and the revision
of the protocol that they ask for first. As others have seen it up to 2026-11-28.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

STATELESS = "2026-07-28"


class Assistant(NamedTuple):
    """An assistant.

    document    host and path of its metadata document; None: it registers itself
    about       its metadata, without the id
    redirect    the redirect address that it names in requests
    revision    the revision of the protocol that it asks for first
    sends       what it sends to prove who it is: nothing, or a signed assertion
    scope       the scopes that it asks for; None: it names none
    """

    name: str
    document: tuple[str, str] | None
    about: Mapping[str, Any]
    redirect: str
    revision: str
    sends: Literal["nothing", "assertion"] = "nothing"
    scope: str | None = "read_events write_events"


def _about(name: str, redirects: Sequence[str], **more: Any) -> dict[str, Any]:
    return {
        "client_name": name,
        "redirect_uris": [*redirects],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        **more,
    }


CLAUDE = "https://claude.ai/api/mcp/auth_callback"
CHATGPT = "https://chatgpt.com/connector_platform_oauth_redirect"
CHATGPT_OF_ONE = "https://chatgpt.com/connector/oauth/IbUR3zxyNQ16"
CURSOR = (
    "cursor://anysphere.cursor-mcp/oauth/callback",
    "https://www.cursor.com/agents/mcp/oauth/callback",
    "http://localhost:8787/callback",
)
CODEX = "http://127.0.0.1:63546/callback/6MFBM1In3Ey-"
SIGNS = {
    "token_endpoint_auth_method": "private_key_jwt",
    "token_endpoint_auth_signing_alg": "RS256",
    "jwks_uri": "/oauth/jwks.json",
}
"""The members of a client that prefers to sign. The address of its keys is at its own site."""

BOTH = {**SIGNS, "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"]}

ASSISTANTS = (
    Assistant(
        "Claude",
        ("claude.ai", "/oauth/mcp-oauth-client-metadata"),
        _about("Claude", [CLAUDE, "https://claude.com/api/mcp/auth_callback"]),
        CLAUDE,
        STATELESS,
    ),
    Assistant("Claude before its document", None, _about("Claude", [CLAUDE]), CLAUDE, "2025-11-25"),
    Assistant(
        "Claude Code",
        ("claude.ai", "/oauth/claude-code-client-metadata"),
        _about("Claude Code", ["http://localhost/callback", "http://127.0.0.1/callback"]),
        "http://localhost:55611/callback",
        STATELESS,
    ),
    Assistant(
        "ChatGPT, without a proof",
        ("chatgpt.com", "/oauth/client.json"),
        _about("ChatGPT", [CHATGPT], **BOTH),
        CHATGPT,
        "2025-11-25",
    ),
    Assistant(
        "ChatGPT, signing",
        ("chatgpt.com", "/oauth/client.json"),
        _about("ChatGPT", [CHATGPT], **BOTH),
        CHATGPT,
        STATELESS,
        "assertion",
    ),
    Assistant(
        "ChatGPT, which only signs",
        ("chatgpt.com", "/oauth/IbUR3zxyNQ16/client.json"),
        _about("ChatGPT", [CHATGPT_OF_ONE], **SIGNS),
        CHATGPT_OF_ONE,
        STATELESS,
        "assertion",
        scope=None,
    ),
    Assistant("Cursor", None, _about("Cursor", CURSOR), CURSOR[0], "2025-11-25"),
    Assistant("Cursor's agents", None, _about("Cursor", CURSOR), CURSOR[1], "2025-11-25"),
    Assistant(
        "VS Code",
        ("vscode.dev", "/oauth/client-metadata.json"),
        _about("Visual Studio Code", ["http://127.0.0.1:33418/", "http://localhost/", "https://vscode.dev/redirect"]),
        "http://127.0.0.1:51234/",
        "2025-11-25",
    ),
    Assistant(
        "VS Code in a browser",
        ("vscode.dev", "/oauth/client-metadata.json"),
        _about("Visual Studio Code", ["http://127.0.0.1:33418/", "https://vscode.dev/redirect"]),
        "https://vscode.dev/redirect",
        "2025-11-25",
    ),
    Assistant(
        "Gemini CLI",
        None,
        _about("Gemini CLI MCP Client", ["http://localhost:43121/oauth/callback"], scope="read_events"),
        "http://localhost:43121/oauth/callback",
        "2025-06-18",
        scope="read_events",
    ),
    Assistant(
        "Antigravity",
        None,
        _about("Antigravity", ["https://antigravity.google/oauth-callback"]),
        "https://antigravity.google/oauth-callback",
        "2025-06-18",
    ),
    Assistant(
        "Windsurf",
        None,
        _about("Windsurf", ["http://localhost:40211/auth/callback"]),
        "http://localhost:40211/auth/callback",
        "2025-06-18",
    ),
    Assistant(
        "Zed",
        ("zed.dev", "/oauth/client-metadata.json"),
        _about("Zed", ["http://127.0.0.1/callback"]),
        "http://127.0.0.1:50112/callback",
        "2025-11-25",
    ),
    Assistant(
        "Codex",
        ("chatgpt.com", "/oauth/codex/client.json"),
        _about("Codex", ["http://127.0.0.1/callback", "http://localhost/callback"]),
        CODEX,
        "2025-06-18",
    ),
    Assistant("Codex before its document", None, _about("Codex", [CODEX]), CODEX, "2025-06-18"),
)
