"""The bounds of the inventory service that are settings: rate limits and event streams."""

from collections.abc import Mapping

from holdfast.accounts.settings import BOUNDS as SIGN_IN_BOUNDS
from holdfast.kit.contract.bounds import Bound, address_limit, credential_limit
from holdfast.kit.contract.client import WIDE_CONNECTIONS

STREAMS = Bound(
    name="Open event streams",
    service="inventory",
    total="`MAX_STREAMS`",
    tenant="`MAX_STREAMS_PER_SHOP`, and `MAX_STREAMS_PER_KEY` with one key",
    address=f"`MAX_STREAMS_PER_ADDRESS`; a /48 {WIDE_CONNECTIONS} times as many",
    reserved="connections for other requests",
    stranger="Nothing: the address with the most gives way, also in one shop.",
)

LIMITS: Mapping[str, Bound] = {
    "messages": credential_limit(
        "Messages to `/mcp`", "inventory", "`MCP_RATE_LIMIT`", "a second", who="a key or an agent"
    ),
    "identities": address_limit(
        "Registrations of agents, and requests for their tokens", "inventory", "`API_IDENTITY_RATE_LIMIT`", "a minute"
    ),
    "installs": address_limit("Installs, and entering the console", "inventory", "`INSTALL_RATE_LIMIT`", "a minute"),
    **SIGN_IN_BOUNDS,
}
"""The bound of each rate limit of the service, by the name of the limit."""
