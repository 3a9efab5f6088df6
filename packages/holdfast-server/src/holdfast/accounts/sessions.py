"""Sessions: which account is signed in in a browser. Each is a random secret in a cookie; the database has its digest.

The look-up of a session is cached for a second; every process drops it from its cache as soon as the session ends.
"""

import datetime as dt
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, LiteralString, NamedTuple
from urllib.parse import urlsplit

from msgspec import Struct

from holdfast.accounts.directory import Account, Directory
from holdfast.kit.contract.bounds import Bound, cache_bound
from holdfast.kit.contract.caller import Caller, person
from holdfast.kit.http.cookies import cookie_header
from holdfast.kit.http.handler import Header, Request
from holdfast.kit.postgres.database import Database, Reader, Tx
from holdfast.kit.postgres.group_commit import MAX_CALLS_IN_BATCH, MAX_WAITING_CALLS, Batcher
from holdfast.kit.postgres.lookup_cache import MAX_RESULTS, LookupCache
from holdfast.kit.security.cookie_secrets import is_cookie_secret, new_cookie_secret

SESSIONS_CHANNEL = "sessions"
"""The channel that announces that a session has ended, was moved to another account, or that its account has changed.
The payload is the hexadecimal digest of its cookie; empty: all sessions."""

SESSION_LOOK_UPS = Bound(
    name="Requests whose session is looked up",
    service="both",
    total=f"{MAX_WAITING_CALLS}; one statement looks up {MAX_CALLS_IN_BATCH}",
    tenant="none, in order",
    address="one for each of its connections",
    reserved="-",
    stranger="Others wait for one look-up for each connection.",
)
CACHED_SESSIONS = cache_bound("Sessions that were looked up", "both", f"{MAX_RESULTS}, for a second")

MAX_ANNOUNCED_SESSIONS = 20
"""If more sessions are concerned at once, the whole cache is dropped instead of their entries."""

MAX_IDLE_DAYS = 14
"""Days without use after which a session ends."""

MAX_SESSION_DAYS = 90
"""Days after which a session ends in any case."""

PLATFORM_HOURS = 8
"""Hours of a session that a platform vouched for. After that the platform is asked again whether access is allowed."""

IS_OPEN: LiteralString = """
    (seen_at > now() - make_interval(days => %(max_idle_days)s)
     and began_at > now() - make_interval(days => %(max_session_days)s)
     and (way <> 'platform' or began_at > now() - make_interval(hours => %(platform_hours)s)))"""
"""SQL condition: a session has not expired."""

IS_OPEN_PARAMETERS: Mapping[str, int] = {
    "max_idle_days": MAX_IDLE_DAYS,
    "max_session_days": MAX_SESSION_DAYS,
    "platform_hours": PLATFORM_HOURS,
}
"""The parameters of `IS_OPEN`."""

SignInWay = Literal["link", "password", "platform"]


class Session(Struct, frozen=True):
    """A session of an account in a browser.

    sign_in_way    how the person signed in; `platform`: another service has confirmed the identity
    """

    id: int
    sign_in_way: SignInWay
    account: Account

    @property
    def account_id(self) -> int:
        return self.account.id

    @property
    def email(self) -> str:
        return self.account.email

    @property
    def is_proved(self) -> bool:
        """Whether the owner of the address is signed in.

        A password alone proves nothing: a stranger can register another person's address.
        """
        return self.sign_in_way != "password" or self.account.is_proved

    @property
    def is_opened_by_mail(self) -> bool:
        """Whether the person signed in by a mailed link. A password may have been chosen by another person."""
        return self.sign_in_way == "link"

    @property
    def caller(self) -> Caller | None:
        """The caller that acts for the tenant of the account; None while it has no tenant."""
        return None if self.account.tenant_id is None else self.person

    @property
    def person(self) -> Caller:
        """The caller that is the signed-in person, with or without a tenant."""
        return person(self.id, self.account.tenant_id or 0)


class SessionRow(Struct):
    """A session in the list of an account."""

    id: int
    sign_in_way: SignInWay
    browser: str
    began_at: dt.datetime
    seen_at: dt.datetime


class Sessions:
    """Finds sessions by the cookies of requests.

    base_url    the address of the service: with https, cookies are sent over TLS only; without, they have its port in
                their names, since browsers send them to all ports of a host
    """

    def __init__(self, database: Database[Any], directory: Directory, base_url: str) -> None:
        self._database = database
        self._directory = directory
        self._secure = base_url.startswith("https:")
        self._port = urlsplit(base_url).port
        batches = Batcher[str, Session | None](SESSION_LOOK_UPS, "find_sessions", self._look_up)
        self._cache = LookupCache(CACHED_SESSIONS, database, SESSIONS_CHANNEL, str, batches.submit)

    async def find_by_request(self, request: Request) -> Session | None:
        """The session of the browser that sent a request; None if it has none."""
        return await self.find(request.cookies.get(self.cookie_name("session"), ""))

    async def find(self, secret: str) -> Session | None:
        """The session with a secret; None if the secret is malformed, unknown, or its session has ended."""
        return await self._cache.get(digest(secret).hex()) if is_cookie_secret(secret) else None

    def forgetting(self) -> AbstractContextManager[None]:
        """While the block lasts, a session that ends is dropped from the cache as soon as its end is announced."""
        return self._cache.forgetting()

    def cookie_name(self, name: str) -> str:
        if self._secure:
            # A browser accepts a cookie with this prefix in its name from this host only, and only over TLS.
            return f"__Host-{name}"
        return f"{name}-{self._port}" if self._port else name

    def cookie(self, name: str, value: str, seconds: int = MAX_SESSION_DAYS * 86_400) -> Header:
        """The header that sets a cookie; with 0 seconds it removes the cookie."""
        return cookie_header(self.cookie_name(name), value, seconds=seconds, is_secure=self._secure)

    def framed_cookie(self, name: str, value: str, seconds: int) -> Header:
        """A cookie for pages in a frame of another site."""
        return cookie_header(self.cookie_name(name), value, seconds=seconds, is_secure=self._secure, is_framed=True)

    async def _look_up(self, hashes: Sequence[str]) -> Sequence[Session | None]:
        async def find(reader: Reader[Any]) -> dict[str, Session]:
            rows = await find_open(reader, [bytes.fromhex(hex_digest) for hex_digest in hashes])
            accounts = await self._directory.find(reader, [*{row.account_id for row in rows}])
            return {
                row.hash.hex(): Session(row.id, row.sign_in_way, accounts[row.account_id])
                for row in rows
                if row.account_id in accounts
            }

        sessions = await self._database.read(find)
        return [sessions.get(hex_digest) for hex_digest in hashes]


def digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


class OpenSession(NamedTuple):
    """A session that has not ended. `hash`: the digest of its secret."""

    hash: bytes
    id: int
    sign_in_way: SignInWay
    account_id: int


async def find_open(reader: Reader[Any], hashes: Sequence[bytes]) -> list[OpenSession]:
    """Find the open sessions, and note them as used.

    A session that another transaction has locked is noted the next time: a lookup never waits for a lock.
    """
    return await reader.rows(
        OpenSession,
        f"""
        with used as (
            update sessions set seen_at = now()
             where id = any(array(
                select id from sessions
                 where hash = any(%(hashes)s) and seen_at < now() - interval '1 hour'
                   and {IS_OPEN} for update skip locked)))
        select hash, id, way as sign_in_way, account_id from sessions
         where hash = any(%(hashes)s) and {IS_OPEN}
        """,
        {**IS_OPEN_PARAMETERS, "hashes": list(hashes)},
    )


async def begin(tx: Tx[Any], account_id: int, sign_in_way: SignInWay, browser: str) -> str:
    """Begin a session. Returns the secret for the cookie. `browser`: its User-Agent."""
    secret = new_cookie_secret()
    await tx.run(
        """
        insert into sessions (hash, account_id, way, browser)
        values (%(hash)s, %(account_id)s, %(sign_in_way)s, left(%(browser)s, 300))
        """,
        {"hash": digest(secret), "account_id": account_id, "sign_in_way": sign_in_way, "browser": browser},
    )
    return secret


async def list_open(reader: Reader[Any], account_id: int) -> list[SessionRow]:
    """The open sessions of an account, the one used last first."""
    return await reader.rows(
        SessionRow,
        f"""
        select id, way as sign_in_way, browser, began_at, seen_at from sessions
         where account_id = %(account_id)s and {IS_OPEN}
         order by seen_at desc, id desc limit 100
        """,
        {**IS_OPEN_PARAMETERS, "account_id": account_id},
    )


async def end(tx: Tx[Any], account_id: int, id: int | None = None) -> None:
    """End a session of an account; without an id all of them."""
    await _change_and_announce(
        tx,
        """
        delete from sessions where account_id = %(account_id)s and (%(id)s::bigint is null or id = %(id)s)
        returning hash
        """,
        {"account_id": account_id, "id": id},
    )


async def end_of_accounts(tx: Tx[Any], account_ids: Sequence[int]) -> None:
    """End all sessions of some accounts."""
    await _change_and_announce(
        tx, "delete from sessions where account_id = any(%(ids)s) returning hash", {"ids": [*account_ids]}
    )


async def move(tx: Tx[Any], id: int, account_id: int) -> None:
    """Move a session to another account of the same person."""
    await _change_and_announce(
        tx,
        "update sessions set account_id = %(account_id)s where id = %(id)s returning hash",
        {"id": id, "account_id": account_id},
    )


async def end_others(tx: Tx[Any], account_id: int, id: int | None) -> None:
    """End all sessions of an account except one; with None, all."""
    await _change_and_announce(
        tx,
        "delete from sessions where account_id = %(account_id)s and id is distinct from %(id)s::bigint returning hash",
        {"account_id": account_id, "id": id},
    )


async def hand_over(tx: Tx[Any], giver: int, taker: int) -> None:
    """Move the sessions and known browsers of one account to another account of the same owner."""
    both = {"giver": giver, "taker": taker}
    await _change_and_announce(
        tx, "update sessions set account_id = %(taker)s where account_id = %(giver)s returning hash", both
    )
    await tx.run("update known_browsers set account_id = %(taker)s where account_id = %(giver)s", both)


async def is_fresh(reader: Reader[Any], id: int) -> bool:
    """Whether a session began within the last hour, by a link: then its owner has just received our mail."""
    return bool(
        await reader.value(
            """
            select true from sessions where id = %(id)s and way = 'link' and began_at > now() - interval '1 hour'
            """,
            {"id": id},
        )
    )


async def lock_if_exists(tx: Tx[Any], id: int) -> bool:
    """Whether a session exists, expired or not. If so, no other transaction can end it until this one ends."""
    return bool(await tx.value("select true from sessions where id = %(id)s for key share", {"id": id}))


async def announce_change(tx: Tx[Any], account_id: int) -> None:
    """Announce that an account has changed: every process looks up its sessions again."""
    await _change_and_announce(
        tx, "select hash from sessions where account_id = %(account_id)s", {"account_id": account_id}
    )


async def _change_and_announce(tx: Tx[Any], hash_query: LiteralString, params: Mapping[str, Any]) -> None:
    """Tell every process to drop from its cache the sessions whose hashes the query returns."""
    digests = [hash.hex() for (hash,) in await tx.tuples(hash_query, params)]
    for payload in digests if len(digests) <= MAX_ANNOUNCED_SESSIONS else [""]:
        await tx.revoke(SESSIONS_CHANNEL, payload)


DELETE_BATCH_SIZE = 5_000
"""Rows that one statement deletes."""


async def forget_sessions(tx: Tx[Any]) -> int:
    """Delete a batch of the sessions that have expired. Returns how many were deleted."""
    return await tx.value(
        f"""
        with deleted as (
            delete from sessions where id in (
                select id from sessions where not {IS_OPEN} limit %(batch_size)s)
            returning 1)
        select count(*) from deleted
        """,
        {**IS_OPEN_PARAMETERS, "batch_size": DELETE_BATCH_SIZE},
    )
