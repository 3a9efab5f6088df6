"""The known clients, their metadata documents, and their public keys.

A client registers, or its id is the https address of a document that describes it. Such a document is fetched without
redirects from a public address, and cached for as long as its headers allow, at most a day.

The keys of a client that signs are in its metadata, or at the address that this names. They are kept in this process
for as long as their headers say. If an assertion names another key, they are read again: a client may have changed its
keys.
"""

import asyncio
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from cachetools import LRUCache
from msgspec import Struct
from msgspec.structs import replace

from holdfast.events.oauth_server.client_assertions import ClientAssertion
from holdfast.events.oauth_server.model import MAX_ID_CHARS, AuthMethod, Client, client_of_metadata
from holdfast.events.oauth_server.oauth_problems import INVALID_CLIENT, INVALID_CLIENT_METADATA
from holdfast.events.oauth_settings import DOCUMENTS
from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.contract.client import create_shared_task, path_of, request_source
from holdfast.kit.contract.problems import SERVICE_UNAVAILABLE
from holdfast.kit.outbound.refusals import FetchRefusal
from holdfast.kit.outbound.requests import OutboundClient
from holdfast.kit.postgres.database import Database, Reader, Tx
from holdfast.kit.running.rate_limits import Limits
from holdfast.kit.security.api_keys import digest
from holdfast.kit.security.signed_tokens import PublicKey, has_signed, usable_keys

MAX_DOCUMENT_BYTES = 10_240
"""The maximum size of a document."""

MAX_CACHE_SECONDS = 86_400
"""The maximum time for which a document is cached."""

DEFAULT_CACHE_SECONDS = 300
"""Seconds for which a document is cached if its headers do not say how long."""


class KeySet(Struct):
    """A set of public keys (RFC 7517)."""

    keys: list[dict[str, Any]]


_ADDRESS = re.compile(r"https://[a-z0-9.-]+(:[0-9]{1,5})?/[A-Za-z0-9._~:/?@!$&'()*+,;=%-]+")
_DOTS = re.compile(r"/(\.|%2e){1,2}(/|\?|$)", re.IGNORECASE)


def is_address(client_id: str) -> bool:
    """Whether a client id is the address of a document: https, with a path, and unambiguous."""
    if len(client_id) > MAX_ID_CHARS or not _ADDRESS.fullmatch(client_id) or _DOTS.search(client_id):
        return False
    host = urlsplit(client_id).hostname or ""
    return "." in host and not host.replace(".", "").isdigit()


async def fetch(outbound: OutboundClient, address: str, account_id: int) -> tuple[Client, int]:
    """The client that a document describes, and for how many seconds it may be cached. Raises `invalid_client`.

    account_id    the account that the client asks
    """
    try:
        fetched = await outbound.get(
            address,
            owner=("accounts", *path_of(request_source()), account_id),
            limit=MAX_DOCUMENT_BYTES,
            accept="application/json",
            redirects=0,
        )
    except FetchRefusal as refused:
        raise INVALID_CLIENT(f"The client's metadata document {refused}.") from refused
    if not _is_json(fetched.content_type):
        raise INVALID_CLIENT("The client's metadata document is not declared as JSON.")
    try:
        document = msgspec.json.decode(fetched.content, type=dict[str, Any])
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        raise INVALID_CLIENT("The client's metadata document is not a JSON object.") from error
    return client_in_document(document, address), cache_seconds(fetched.headers)


def client_in_document(document: Mapping[str, Any], address: str) -> Client:
    """The client in a document that was read at an address. Raises `invalid_client`."""
    if document.get("client_id") != address:
        raise INVALID_CLIENT("The client's metadata document has another client_id than its own address.")
    keys = _keys_of(document)
    methods = _auth_methods(document, keys)
    if "private_key_jwt" not in methods:
        keys = _ClientKeys()
    client = client_of_metadata(address, document, INVALID_CLIENT)
    return replace(client, auth_methods=methods, jwks=keys.jwks, jwks_uri=keys.jwks_uri)


class _ClientKeys(NamedTuple):
    """Where the keys of a client are: in its document, or at an address."""

    jwks: list[dict[str, Any]] | None = None
    jwks_uri: str | None = None


def _auth_methods(document: Mapping[str, Any], keys: _ClientKeys) -> Sequence[AuthMethod]:
    """The methods by which a client may prove who it is here. Raises `invalid_client` if there is none.

    A document names the method that the client prefers, and may list others that it can use.
    """
    listed: Any = document.get("token_endpoint_auth_methods_supported", [])
    names: list[Any] = [document.get("token_endpoint_auth_method", "none")]
    names += listed if isinstance(listed, list) else [listed]
    methods: list[AuthMethod] = []
    if "none" in names:
        methods.append("none")
    if "private_key_jwt" in names and keys != _ClientKeys():
        methods.append("private_key_jwt")
    if "client_secret" in document or not methods:
        raise INVALID_CLIENT(
            "The client's metadata document wants a secret, or a signature without naming its keys.",
            hint='Publish "token_endpoint_auth_method": "none", or "private_key_jwt" with one of jwks and jwks_uri.',
        )
    return methods


def _keys_of(document: Mapping[str, Any]) -> _ClientKeys:
    """Where the keys of a client are, according to its document. Raises `invalid_client`."""
    jwks, address = document.get("jwks"), document.get("jwks_uri")
    if jwks is not None and address is not None:
        raise INVALID_CLIENT("The client's metadata document has both jwks and jwks_uri.", hint="Publish one of them.")
    if address is not None and not (isinstance(address, str) and is_address(address)):
        raise INVALID_CLIENT("The client's jwks_uri must be an https address with a path.")
    try:
        return _ClientKeys(None if jwks is None else msgspec.convert(jwks, KeySet).keys, address)
    except msgspec.ValidationError as error:
        raise INVALID_CLIENT("The client's jwks is not a key set (RFC 7517).") from error


def cache_seconds(headers: Mapping[str, str]) -> int:
    """For how many seconds an answer with these headers may be cached (RFC 9111)."""
    directives: dict[str, str] = {}
    for directive in headers.get("cache-control", "").lower().split(","):
        name, _, value = directive.strip().partition("=")
        directives[name] = value.strip('"')
    if directives.keys() & {"no-store", "no-cache"}:
        return 0
    if "max-age" in directives:
        lasts = _seconds(directives["max-age"]) - _seconds(headers.get("age", "0"))
    elif "expires" in headers:
        lasts = _seconds_between(headers.get("date", ""), headers["expires"])
    else:
        lasts = DEFAULT_CACHE_SECONDS
    return min(max(lasts, 0), MAX_CACHE_SECONDS)


def _seconds(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0


def _seconds_between(since: str, until: str) -> int:
    try:
        return int((parsedate_to_datetime(until) - parsedate_to_datetime(since)).total_seconds())
    except (ValueError, TypeError):
        return 0


def _is_json(content_type: str) -> bool:
    return content_type == "application/json" or (
        content_type.startswith("application/") and content_type.endswith("+json")
    )


MAX_KEY_SET_BYTES = 65_536
"""The maximum size of the keys of a client."""

MAX_KEYS = 20
"""The most keys of a client that are used."""

MIN_CACHE_SECONDS = 10
"""Seconds within which the keys of a client are not read again, whatever an assertion names."""

MAX_CACHED_CLIENTS = 1_000

CACHED_KEYS = cache_bound(
    "Key sets of clients at their own addresses", "both", f"{MAX_CACHED_CLIENTS:,} clients", lost="is read again"
)


class _CachedKeys(NamedTuple):
    """Keys that were read at the time `read_at` of this process, and the time until which they are fresh."""

    keys: Sequence[PublicKey]
    read_at: float
    fresh_until: float


class ClientKeys:
    """Finds the keys of clients."""

    def __init__(self, outbound: OutboundClient, limits: Limits) -> None:
        self._outbound = outbound
        self._limits = limits
        self._cached: LRUCache[str, _CachedKeys] = LRUCache(MAX_CACHED_CLIENTS)
        self._readings: dict[str, asyncio.Task[_CachedKeys]] = {}

    async def have_signed(self, client: Client, assertion: ClientAssertion, account_id: int) -> bool:
        """Whether one of a client's keys signed an assertion.

        Raises `invalid_client` if the client has no keys that can be used, `rate_limited`, and `service_unavailable`
        if they cannot be read now.

        account_id    the account for which the client acts
        """
        if client.jwks is not None:
            return _has_signed(list(usable_keys(client.jwks))[:MAX_KEYS], assertion)
        if client.jwks_uri is None:
            return False
        cached, now = self._cached.get(client.jwks_uri), time.monotonic()
        if cached and now < cached.fresh_until and _has_signed(cached.keys, assertion):
            return True
        if cached and now < cached.read_at + MIN_CACHE_SECONDS:
            return _has_signed(cached.keys, assertion)
        return _has_signed((await self._newest(client.jwks_uri, account_id)).keys, assertion)

    async def _newest(self, address: str, account_id: int) -> _CachedKeys:
        """The keys at an address, which is read once for all that wait for it."""
        reading = self._readings.get(address)
        if reading is None:
            await self._limits.hit(DOCUMENTS, f"account {account_id}")
            reading = self._readings.get(address)
        if reading is None:
            reading = create_shared_task(self._read(address, account_id), name="keys of a client")
            self._readings[address] = reading
            reading.add_done_callback(lambda task: self._finish(address, task))
        await asyncio.wait([reading])  # the reading goes on if this request is cancelled
        return reading.result()

    def _finish(self, address: str, reading: asyncio.Task[_CachedKeys]) -> None:
        del self._readings[address]
        if not reading.cancelled():
            reading.exception()  # if every request that waited has gone, this is the only reader

    async def _read(self, address: str, account_id: int) -> _CachedKeys:
        try:
            fetched = await self._outbound.get(
                address,
                owner=("accounts", account_id),
                limit=MAX_KEY_SET_BYTES,
                accept="application/jwk-set+json, application/json",
                redirects=0,
            )
        except FetchRefusal as refused:
            message = f"The address of the client's keys {refused}."
            raise SERVICE_UNAVAILABLE(message, retry_after=MIN_CACHE_SECONDS) from refused
        try:
            described = msgspec.json.decode(fetched.content, type=KeySet).keys
        except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
            raise INVALID_CLIENT("The address of the client's keys has no key set (RFC 7517).") from error
        now = time.monotonic()
        newest = _CachedKeys([*usable_keys(described)][:MAX_KEYS], now, now + cache_seconds(fetched.headers))
        self._cached[address] = newest
        return newest


def _has_signed(keys: Sequence[PublicKey], assertion: ClientAssertion) -> bool:
    named = [key for key in keys if assertion.key_id is None or key.kid == assertion.key_id]
    return any(has_signed(key, assertion.parts) for key in named)


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
            stored = await self._database.read(lambda reader: find(reader, id))
            if stored:
                return stored
        if not is_address(id):
            raise INVALID_CLIENT()
        await self._limits.hit(DOCUMENTS, f"account {account_id}")
        read, seconds = await fetch(self._outbound, id, account_id)
        await self._database.transact(lambda tx: store_client(tx, read, seconds))
        return read

    async def authenticate(self, client_id: str, secret: str, assertion: ClientAssertion | None) -> None:
        """Raises `invalid_client` unless a client has proved that a code or a token is its own.

        Does nothing if the secret is not one of this client: what exchanges the secret refuses that.
        Also raises `rate_limited`, and `service_unavailable` if the keys of the client cannot be read now.

        assertion    what the client has signed; None: it relies on PKCE alone
        """
        if assertion is None and client_id.startswith(PREFIX):
            return  # it registered itself, and has no keys
        held = await self._database.read(lambda reader: find_holder(reader, secret))
        if held is None or held[0].id != client_id:
            return
        client, account_id = held
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
        changed = (latest.jwks, latest.jwks_uri) != (client.jwks, client.jwks_uri)
        return changed and await self._keys.have_signed(latest, assertion, account_id)


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


async def store_client(tx: Tx[Any], read: Client, seconds: int) -> None:
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
            "id": read.id,
            "name": read.name,
            "redirect_uris": list(read.redirect_uris),
            "auth_methods": list(read.auth_methods),
            "jwks": None if read.jwks is None else msgspec.json.encode(read.jwks).decode(),
            "jwks_uri": read.jwks_uri,
            "seconds": seconds,
        },
    )


async def forget_clients(tx: Tx[Any]) -> int:
    """Delete a batch of the clients that got no consent in their first day, or none for 90 days.

    Returns how many were deleted. A client that has a grant is kept.
    """
    return await tx.value(
        """
        with unused as (
            select id from oauth_clients
             where coalesce(used_at, inserted_at) < now() - interval '1 day'
               and (used_at is null or used_at < now() - interval '90 days')
               and not exists (select from oauth_grants where client_id = oauth_clients.id)
             limit %(limit)s for update skip locked),
        deleted as (delete from oauth_clients using unused where oauth_clients.id = unused.id returning 1)
        select count(*) from deleted
        """,
        {"limit": DELETE_BATCH_SIZE},
    )
