"""The discovery documents of the service; see `kit/process/discovery.py`.

The texts are in the folder of this file: `auth.md` for an agent that starts, and `llms.txt`.
"""

from pathlib import Path
from typing import Any

from holdfast.inventory.agents.model import JWT_BEARER, SERVICE_AUTH
from holdfast.inventory.shops.model import SCOPES
from holdfast.kit.http.index import Route
from holdfast.kit.mcp import EndpointConfig
from holdfast.kit.operations.operation import Operations
from holdfast.kit.process import discovery
from holdfast.kit.process.discovery import MARKDOWN, ServiceDescription, document, fill_template

HERE = Path(__file__).parent

AUTHORIZATION_SERVER = "/.well-known/oauth-authorization-server"


def routes(agents: EndpointConfig, operations: Operations, description: str) -> list[Route]:
    """The routes of all discovery documents."""
    base = agents.base_url
    service = ServiceDescription(
        agents,
        operations,
        description,
        manual="/auth.md",
        key="The shop's API key, from the app's settings under API access.",
        credential=f"A shop's API key, or an access token: see {base}/auth.md.",
        by_oauth=False,
    )
    resource = discovery.protected_resource(service, SCOPES, authorization_servers=[base])
    return [
        *discovery.routes(service, resource, llms(service)),
        document(AUTHORIZATION_SERVER, discovery.json(authorization_server(base))),
        document("/auth.md", auth(base).encode(), MARKDOWN),
    ]


def authorization_server(base_url: str) -> dict[str, Any]:
    """RFC 8414. No grant needs a browser, so there is no authorization endpoint, and no response type."""
    return {
        "issuer": base_url,
        "token_endpoint": f"{base_url}/oauth/token",
        "jwks_uri": f"{base_url}/.well-known/jwks.json",
        "scopes_supported": list(SCOPES),
        "response_types_supported": [],
        "grant_types_supported": [JWT_BEARER],
        "token_endpoint_auth_methods_supported": ["none"],
        "service_documentation": f"{base_url}/auth.md",
        "agent_auth": {
            "skill": f"{base_url}/auth.md",
            "identity_endpoint": f"{base_url}/api/agent/identity",
            "identity_types_supported": [SERVICE_AUTH],
        },
    }


def auth(base_url: str) -> str:
    """The steps of an agent from no credentials to a first tool call."""
    return fill_template(HERE / "auth.md", base_url=base_url)


def llms(service: ServiceDescription) -> str:
    """The service on one page, for language models (llmstxt.org)."""
    return fill_template(
        HERE / "llms.txt",
        title=service.agents.title,
        base_url=service.base_url,
        description=service.description,
        instructions=service.agents.instructions.strip(),
        tools=service.tools(),
    )
