"""The known clients. A client registers, or a document at its address describes it."""

import secrets
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.events.oauth_server.client_assertions import ClientAssertion
from holdfast.events.oauth_server.client_documents import fetch, is_address
from holdfast.events.oauth_server.client_keys import ClientKeys
from holdfast.events.oauth_server.model import MAX_ID_CHARS, Client, client_of_metadata
from holdfast.events.oauth_server.oauth_problems import INVALID_CLIENT, INVALID_CLIENT_METADATA
from holdfast.events.oauth_settings import DOCUMENTS
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.outbound.requests import OutboundClient
from holdfast.kit.postgres.database import Database, Reader, Tx
from holdfast.kit.security.api_keys import digest

PREFIX = "client_"
DELETE_BATCH_SIZE = 5_000
"""Rows that one statement deletes."""


class Clients:
    """Finds clients. The metadata document of a client is read when a signed-in person is asked for consent."""

    def __init__(self, database: Database[Any], outbound: OutboundClient, limits: Limits) -> None:
        self._database = database
        self._outbound = outbound
        self._limits = limits
        self._keys = ClientKeys(outbound, limits)

    async def find(self, id: str, account_id: int) -> Client:
        """The client with an id, for the account that it asks. Raises `invalid_client` and `rate_limited`."""
        if 0 < len(id) <= MAX_ID_CHARS and "\0" not in id:
            stored_client = await self._database.read(lambda reader: find(reader, id))
            if stored_client:
                return stored_client
        if not is_address(id):
            raise INVALID_CLIENT()
        await self._limits.hit(DOCUMENTS, f"account {account_id}")
        client, seconds = await fetch(self._outbound, id, account_id)
        await self._database.transact(lambda tx: store_client(tx, client, seconds))
        return client

    async def authenticate(self, client_id: str, secret: str, assertion: ClientAssertion | None) -> None:
        """Raises `invalid_client` unless a client has proved that a code or a token is its own.

        Does nothing if the secret is not one of this client: what exchanges the secret refuses that.
        Also raises `rate_limited`, and `service_unavailable` if the keys of the client cannot be read now.

        assertion    what the client has signed; None: it relies on PKCE alone
        """
        if assertion is None and client_id.startswith(PREFIX):
            return  # it registered itself, and has no keys
        holder = await self._database.read(lambda reader: find_holder(reader, secret))
        if holder is None or holder[0].id != client_id:
            return
        client, account_id = holder
        if assertion is None:
            if "none" not in client.auth_methods:
                raise INVALID_CLIENT(
                    "The client's metadata document says that it signs its requests, and this one is not signed.",
                    hint="Send client_assertion_type and client_assertion (RFC 7523).",
                )
        elif not await self._have_signed(client, assertion, account_id):
            raise INVALID_CLIENT("The client_assertion is not signed with a key that the client has published.")

    async def _have_signed(self, client: Client, assertion: ClientAssertion, account_id: int) -> bool:
        """Whether a key of a client signed an assertion. A document that may be out of date is read again first."""
        if await self._keys.have_signed(client, assertion, account_id):
            return True
        if not is_address(client.id):
            return False
        latest = await self.find(client.id, account_id)
        has_new_keys = (latest.jwks, latest.jwks_uri) != (client.jwks, client.jwks_uri)
        return has_new_keys and await self._keys.have_signed(latest, assertion, account_id)


def register(metadata: Mapping[str, Any]) -> Client:
    """A new client with this metadata. Raises `invalid_redirect_uri` and `invalid_client_metadata`."""
    return client_of_metadata(f"{PREFIX}{secrets.token_urlsafe(16)}", metadata, INVALID_CLIENT_METADATA)


async def insert(tx: Tx[Any], new: Client) -> int:
    """Store a client that registered. Returns the time of storing, in seconds since 1970."""
    return await tx.value(
        """
        insert into oauth_clients (id, name, redirect_uris) values (%(id)s, %(name)s, %(redirect_uris)s)
        returning extract(epoch from inserted_at)::bigint
        """,
        {"id": new.id, "name": new.name, "redirect_uris": list(new.redirect_uris)},
    )


async def find(reader: Reader[Any], id: str) -> Client | None:
    """A registered client, or one whose metadata document is still fresh; None if there is none."""
    return await reader.row(
        Client,
        """
        select id, name, redirect_uris, auth_methods, jwks, jwks_uri from oauth_clients
         where id = %(id)s and (fetched_until is null or fetched_until > now())
        """,
        {"id": id},
    )


async def find_holder(reader: Reader[Any], secret: str) -> tuple[Client, int] | None:
    """The client that a code or a token was issued to, and the account that it acts for; None if unknown."""
    rows = await reader.tuples(
        """
        select clients.id, name, redirect_uris, auth_methods, jwks, jwks_uri, account_id
          from (select grant_id from oauth_codes where hash = %(hash)s
                union all select grant_id from oauth_refresh_tokens where hash = %(hash)s
                union all select grant_id from oauth_access_tokens where hash = %(hash)s) as secrets
          join oauth_grants as grants on grants.id = grant_id
          join oauth_clients as clients on clients.id = client_id
        """,
        {"hash": digest(secret)},
    )
    return (Client(*rows[0][:-1]), rows[0][-1]) if rows else None


async def store_client(tx: Tx[Any], client: Client, seconds: int) -> None:
    """Store the client of a metadata document for a number of seconds."""
    await tx.run(
        """
        insert into oauth_clients (id, name, redirect_uris, auth_methods, jwks, jwks_uri, fetched_until)
        values (%(id)s, %(name)s, %(redirect_uris)s, %(auth_methods)s, %(jwks)s::jsonb, %(jwks_uri)s,
                now() + make_interval(secs => %(seconds)s))
            on conflict (id) do update
           set name = excluded.name, redirect_uris = excluded.redirect_uris, auth_methods = excluded.auth_methods,
               jwks = excluded.jwks, jwks_uri = excluded.jwks_uri, fetched_until = excluded.fetched_until
        """,
        {
            "id": client.id,
            "name": client.name,
            "redirect_uris": list(client.redirect_uris),
            "auth_methods": list(client.auth_methods),
            "jwks": None if client.jwks is None else msgspec.json.encode(client.jwks).decode(),
            "jwks_uri": client.jwks_uri,
            "seconds": seconds,
        },
    )


async def forget_clients(tx: Tx[Any]) -> int:
    """Delete a batch of the clients that got no consent in their first day, or none for 90 days.

    Returns how many were deleted. A client that has a grant is kept.
    """
    return await tx.value(
        """
        with unused_client as (
            select id from oauth_clients
             where coalesce(used_at, inserted_at) < now() - interval '1 day'
               and (used_at is null or used_at < now() - interval '90 days')
               and not exists (select from oauth_grants where client_id = oauth_clients.id)
             limit %(limit)s for update skip locked),
        deleted_client as (
            delete from oauth_clients using unused_client where oauth_clients.id = unused_client.id returning 1)
        select count(*) from deleted_client
        """,
        {"limit": DELETE_BATCH_SIZE},
    )
