"""Lists and disconnects the clients that act for a tenant."""

from collections.abc import Sequence
from typing import Any

from holdfast.accounts.oauth import grants
from holdfast.accounts.oauth.model import Client, Connection, Disconnect, ListConnections
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, refuses
from holdfast.kit.postgres.database import Reader, Tx
from holdfast.kit.running.operation import Operation, read, single

MAX_CONNECTIONS = 500


async def list(reader: Reader[Any], caller: Caller, command: ListConnections) -> Sequence[Connection]:
    """List the clients that act for you, the one used last first."""
    rows = await reader.tuples(
        """
        select client_id, name, redirect_uris, array_agg(distinct scope order by scope), min(granted_at),
               max(oauth_grants.used_at)
          from oauth_grants join oauth_clients on oauth_clients.id = client_id, unnest(scopes) as scope
         where tenant_id = %(tenant_id)s and ended_at is null and expires_at > now()
           and oauth_grants.used_at is not null
         group by oauth_clients.id, client_id order by max(oauth_grants.used_at) desc, client_id limit %(limit)s
        """,
        {"tenant_id": caller.tenant, "limit": MAX_CONNECTIONS},
    )
    return [
        Connection(id, name, Client(id, name, uris).host, scopes, since, used_at)
        for id, name, uris, scopes, since, used_at in rows
    ]


@refuses(NOT_FOUND)
async def disconnect(tx: Tx[Any], caller: Caller, command: Disconnect) -> None:
    """Disconnect a client: all its tokens for you end at once."""
    rows = await tx.tuples(
        """
        select id from oauth_grants
         where tenant_id = %(tenant_id)s and client_id = %(client_id)s and ended_at is null and expires_at > now()
           for no key update
        """,
        {"tenant_id": caller.tenant, "client_id": command.client_id},
    )
    if not rows:
        raise NOT_FOUND("No such client acts for you.")
    await grants.end(tx, [id for (id,) in rows], "disconnected")


LIST = Operation("list_connected_clients", None, read(list))
DISCONNECT = Operation("disconnect_client", None, single(disconnect))
OPERATIONS = (LIST, DISCONNECT)
"""The operations, for pages. They have no routes and no tools: a client must not disconnect others."""
