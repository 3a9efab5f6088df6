"""Grants: what a person allows a client, the code that the client gets for it, the list of grants, and their end.

Each consent of a person makes a new grant. All tokens of a grant end with it, at once and in every process.
"""

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

from holdfast.accounts import sessions
from holdfast.events.oauth_server.model import CODE_SECONDS, Client, Connection, Consent, Disconnect, ListConnections
from holdfast.events.oauth_server.oauth_problems import INVALID_CLIENT
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, refuses
from holdfast.kit.operations.operation import Operation, read, single
from holdfast.kit.postgres.database import Reader, Tx
from holdfast.kit.security import api_keys
from holdfast.kit.security.api_keys import digest

Reason = Literal["disconnected", "revoked", "code_misused", "refresh_token_misused"]

CODE = "hfoc_"
"""The prefix of every code."""

MAX_ANNOUNCED_TOKENS = 20
"""If more tokens end at once, the whole cache is dropped instead of their entries."""

DELETE_BATCH_SIZE = 5_000
"""Rows that one statement deletes."""


async def allow(tx: Tx[Any], consent: Consent) -> str | None:
    """Store a consent. Returns the code for the client, of which only the hash is stored.

    Returns None if the session has ended. Raises `invalid_client` if the client was deleted meanwhile.
    """
    # A transaction that ends all sessions, and then all grants, also ends the grant that is being made here.
    if not await sessions.lock_if_exists(tx, consent.session_id):
        return None
    code = f"{CODE}{secrets.token_urlsafe(32)}"
    grant_id = await tx.value(
        """
        with client as (
            update oauth_clients set used_at = now() where id = %(client_id)s returning id),
        created_grant as (
            insert into oauth_grants (account_id, tenant_id, client_id, scopes, expires_at)
            select %(account_id)s, %(tenant_id)s, id, %(scopes)s, now() + make_interval(secs => %(seconds)s) from client
            returning id, expires_at)
        insert into oauth_codes (hash, grant_id, redirect_uri, challenge, expires_at)
        select %(hash)s, id, %(redirect_uri)s, %(challenge)s, expires_at from created_grant
        returning grant_id
        """,
        {
            "account_id": consent.account_id,
            "tenant_id": consent.tenant_id,
            "client_id": consent.client_id,
            "scopes": list(consent.scopes),
            "seconds": CODE_SECONDS,
            "hash": digest(code),
            "redirect_uri": consent.redirect_uri,
            "challenge": consent.challenge,
        },
    )
    if grant_id is None:
        raise INVALID_CLIENT()
    return code


async def end(tx: Tx[Any], grants: Sequence[int], reason: Reason) -> None:
    """End grants with all their tokens, which are refused everywhere as soon as this is committed."""
    await tx.run(
        """
        update oauth_grants set ended_at = now(), reason = %(reason)s
         where id = any(%(grants)s) and ended_at is null
        """,
        {"grants": list(grants), "reason": reason},
    )
    ended_tokens = await tx.tuples(
        "delete from oauth_access_tokens where grant_id = any(%(grants)s) returning hash", {"grants": list(grants)}
    )
    await announce(tx, [hash for (hash,) in ended_tokens])


async def announce(tx: Tx[Any], hashes: Sequence[bytes]) -> None:
    """Tell every process that access tokens with these hashes have ended."""
    for payload in [hash.hex() for hash in hashes] if len(hashes) <= MAX_ANNOUNCED_TOKENS else [""]:
        await tx.revoke(api_keys.CHANNEL, payload)


async def end_all(tx: Tx[Any], account_id: int, reason: Reason = "disconnected") -> int:
    """End everything that an account has allowed. Returns how many grants there were."""
    rows = await tx.tuples(
        """
        select id from oauth_grants
         where account_id = %(account_id)s and ended_at is null and expires_at > now() for no key update
        """,
        {"account_id": account_id},
    )
    await end(tx, [id for (id,) in rows], reason)
    return len(rows)


async def is_open(tx: Tx[Any], id: int) -> bool:
    """Whether a grant is open. If so, it is locked against its end until the transaction ends."""
    return bool(await tx.value("select ended_at is null from oauth_grants where id = %(id)s for share", {"id": id}))


async def forget_grants(tx: Tx[Any]) -> int:
    """Delete a batch of the grants that ended a day ago, with codes and tokens. Returns how many were deleted."""
    return await tx.value(
        """
        with deleted_grant as (
            delete from oauth_grants
             where id = any(array(select id from oauth_grants
                                   where least(expires_at, ended_at) < now() - interval '1 day'
                                   limit %(limit)s for update skip locked))
         returning 1)
        select count(*) from deleted_grant
        """,
        {"limit": DELETE_BATCH_SIZE},
    )


MAX_CONNECTIONS = 500


class _ConnectedClient(Struct):
    """A client that acts for a tenant: by all its grants together."""

    client_id: str
    name: str | None
    redirect_uris: list[str]
    scopes: list[str]
    since: datetime
    used_at: datetime


async def list_connections(reader: Reader[Any], caller: Caller, command: ListConnections) -> Sequence[Connection]:
    """List the clients that act for you, the one used last first."""
    clients = await reader.rows(
        _ConnectedClient,
        """
        select client_id, name, redirect_uris, array_agg(distinct scope order by scope) as scopes,
               min(granted_at) as since, max(oauth_grants.used_at) as used_at
          from oauth_grants join oauth_clients on oauth_clients.id = client_id, unnest(scopes) as scope
         where tenant_id = %(tenant_id)s and ended_at is null and expires_at > now()
           and oauth_grants.used_at is not null
         group by oauth_clients.id, client_id order by max(oauth_grants.used_at) desc, client_id limit %(limit)s
        """,
        {"tenant_id": caller.tenant, "limit": MAX_CONNECTIONS},
    )
    return [
        Connection(
            client.client_id,
            client.name,
            Client(client.client_id, client.name, client.redirect_uris).host,
            client.scopes,
            client.since,
            client.used_at,
        )
        for client in clients
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
    await end(tx, [id for (id,) in rows], "disconnected")


LIST = Operation("list_connected_clients", None, read(list_connections))
DISCONNECT = Operation("disconnect_client", None, single(disconnect))
OPERATIONS = (LIST, DISCONNECT)
"""The operations, for pages. They have no routes and no tools: a client must not disconnect others."""
