"""Sessions: who is signed in in a browser.

A session is a random secret in a cookie of the browser; the database has its digest. What was looked up is kept for a
second, and forgotten in every process as soon as a session ends.
"""

import datetime as dt
import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, LiteralString

from msgspec import Struct

from holdfast.accounts.directory import Account, Directory
from holdfast.kit.batch import Batcher
from holdfast.kit.caller import Caller, person
from holdfast.kit.database import Database, Reader, Tx
from holdfast.kit.handler import Header, Request
from holdfast.kit.lookups import Lookups

CHANNEL = "sessions"
"""The channel on which the end of a session is announced; the payload is the hexadecimal digest of its cookie."""

ANNOUNCED = 20
"""If more sessions end at once, all look-ups are forgotten instead of theirs alone."""

IDLE_DAYS = 14
LONGEST_DAYS = 90
"""A session ends when it was not used for so many days, and after so many days in any case."""

_SHAPE = re.compile(r"[A-Za-z0-9_-]{43}")

PLATFORM_HOURS = 8
"""So long lasts a session of somebody whom a platform vouched for: who may still come in is asked again after that."""

Way = Literal["link", "password", "platform"]


class Session(Struct, frozen=True):
    """Somebody who is signed in in a browser.

    way    how they signed in; `platform`: another service has said who they are
    """

    id: int
    way: Way
    account: Account

    @property
    def account_id(self) -> int:
        return self.account.id

    @property
    def email(self) -> str:
        return self.account.email

    @property
    def is_proved(self) -> bool:
        """Whether this is the owner of the address: anybody could have made its account, with a password."""
        return self.way != "password" or self.account.is_proved

    @property
    def caller(self) -> Caller | None:
        """Who acts for the tenant of the account; None while it has no tenant."""
        return None if self.account.tenant_id is None else person(self.id, self.account.tenant_id)


class Listed(Struct):
    """A session in a list."""

    id: int
    way: Way
    browser: str
    began_at: dt.datetime
    seen_at: dt.datetime


class Sessions:
    """Finds sessions by the cookies of requests.

    base_url    the address of the service: with https, cookies are sent over TLS only
    """

    def __init__(self, database: Database[Any], directory: Directory, base_url: str) -> None:
        self._database = database
        self._directory = directory
        self._secure = base_url.startswith("https:")
        batches = Batcher[str, Session | None]("find_sessions", self._look_up)
        self._kept = Lookups(database, CHANNEL, str, batches.submit)

    async def of(self, request: Request) -> Session | None:
        """Who is signed in in the browser that sent a request."""
        return await self.find(request.cookies.get(self.cookie_name("session"), ""))

    async def find(self, secret: str) -> Session | None:
        """The session with a secret; None for a text that is none, or no longer."""
        return await self._kept.get(digest(secret).hex()) if is_secret(secret) else None

    def forgetting(self) -> AbstractContextManager[None]:
        """While the block lasts, a session that ends is forgotten as soon as that is announced."""
        return self._kept.forgetting()

    def cookie_name(self, name: str) -> str:
        # With this prefix in its name, a browser takes a cookie from this host only, and only over TLS.
        return f"__Host-{name}" if self._secure else name

    def cookie(self, name: str, value: str, seconds: int = LONGEST_DAYS * 86_400) -> Header:
        """The header that sets a cookie; with 0 seconds it removes the cookie."""
        secure = "; Secure" if self._secure else ""
        text = f"{self.cookie_name(name)}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"
        return b"set-cookie", text.encode()

    def framed_cookie(self, name: str, value: str, seconds: int) -> Header:
        """The same for pages in a frame of another site. A browser keeps it for frames of that site alone.

        Without https browsers let no other site have it: then the site around must be on the same host.
        """
        if not self._secure:
            return self.cookie(name, value, seconds)
        text = f"{self.cookie_name(name)}={value}; Path=/; Max-Age={seconds}; HttpOnly; Secure; SameSite=None"
        return b"set-cookie", f"{text}; Partitioned".encode()

    async def _look_up(self, hashes: Sequence[str]) -> Sequence[Session | None]:
        async def find(reader: Reader[Any]) -> dict[str, Session]:
            rows = await find_open(reader, [bytes.fromhex(each) for each in hashes])
            accounts = await self._directory.find(reader, [*{account_id for _, _, _, account_id in rows}])
            return {
                hash.hex(): Session(id, way, accounts[account_id])
                for hash, id, way, account_id in rows
                if account_id in accounts
            }

        found = await self._database.read(find)
        return [found.get(each) for each in hashes]


def new_secret() -> str:
    """A random secret for a cookie: 256 bits."""
    return secrets.token_urlsafe(32)


def is_secret(text: str) -> bool:
    """Whether a text looks like a secret for a cookie."""
    return _SHAPE.fullmatch(text) is not None


def digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


async def find_open(reader: Reader[Any], hashes: Sequence[bytes]) -> list[tuple[Any, ...]]:
    """The digest, id, way and account of sessions that have not ended. Those that go on are noted as used.

    A session that somebody else has locked is noted another time: nobody who looks waits for it.
    """
    return await reader.tuples(
        """
        with used as (
            update sessions set seen_at = now()
             where id = any(array(
                select id from sessions
                 where hash = any(%(hashes)s) and seen_at < now() - interval '1 hour'
                   and seen_at > now() - make_interval(days => %(idle)s)
                   and began_at > now() - make_interval(days => %(longest)s)
                   for update skip locked)))
        select hash, id, way, account_id from sessions
         where hash = any(%(hashes)s) and seen_at > now() - make_interval(days => %(idle)s)
           and began_at > now() - make_interval(days => %(longest)s)
           and (way <> 'platform' or began_at > now() - make_interval(hours => %(platform)s))
        """,
        {"hashes": list(hashes), "idle": IDLE_DAYS, "longest": LONGEST_DAYS, "platform": PLATFORM_HOURS},
    )


async def begin(tx: Tx[Any], account_id: int, way: Way, browser: str) -> str:
    """Begin a session. Returns the secret for the cookie. `browser`: what the browser calls itself."""
    secret = new_secret()
    await tx.run(
        """
        insert into sessions (hash, account_id, way, browser)
        values (%(hash)s, %(account_id)s, %(way)s, left(%(browser)s, 300))
        """,
        {"hash": digest(secret), "account_id": account_id, "way": way, "browser": browser},
    )
    return secret


async def list_open(reader: Reader[Any], account_id: int) -> list[Listed]:
    """The sessions of an account, the one used last first."""
    return await reader.rows(
        Listed,
        """
        select id, way, browser, began_at, seen_at from sessions
         where account_id = %(account_id)s and seen_at > now() - make_interval(days => %(idle)s)
           and began_at > now() - make_interval(days => %(longest)s)
         order by seen_at desc, id desc limit 100
        """,
        {"account_id": account_id, "idle": IDLE_DAYS, "longest": LONGEST_DAYS},
    )


async def end(tx: Tx[Any], account_id: int, id: int | None = None) -> None:
    """End a session of an account; without an id all of them."""
    await _announce(
        tx,
        """
        delete from sessions where account_id = %(account_id)s and (%(id)s::bigint is null or id = %(id)s)
        returning hash
        """,
        {"account_id": account_id, "id": id},
    )


async def end_of(tx: Tx[Any], account_ids: Sequence[int]) -> None:
    """End all sessions of some accounts."""
    await _announce(tx, "delete from sessions where account_id = any(%(ids)s) returning hash", {"ids": [*account_ids]})


async def end_others(tx: Tx[Any], account_id: int, id: int | None) -> None:
    """End all sessions of an account except one; with None, all."""
    await _announce(
        tx,
        "delete from sessions where account_id = %(account_id)s and id is distinct from %(id)s::bigint returning hash",
        {"account_id": account_id, "id": id},
    )


async def is_fresh(reader: Reader[Any], id: int) -> bool:
    """Whether a session began within the last hour, by a link: then its owner has just shown that the mail arrives."""
    return bool(
        await reader.value(
            """
            select true from sessions where id = %(id)s and way = 'link' and began_at > now() - interval '1 hour'
            """,
            {"id": id},
        )
    )


async def goes_on(tx: Tx[Any], id: int) -> bool:
    """Whether a session has not ended. If so, nobody ends it until the transaction ends."""
    return bool(await tx.value("select true from sessions where id = %(id)s for key share", {"id": id}))


async def changed(tx: Tx[Any], account_id: int) -> None:
    """Announce that an account has changed: its sessions are looked up again."""
    await _announce(tx, "select hash from sessions where account_id = %(account_id)s", {"account_id": account_id})


async def _announce(tx: Tx[Any], hashes: LiteralString, params: Mapping[str, Any]) -> None:
    """Tell every process to forget the sessions with the hashes that a statement returns."""
    found = [hash.hex() for (hash,) in await tx.tuples(hashes, params)]
    for payload in found if len(found) <= ANNOUNCED else [""]:
        await tx.revoke(CHANNEL, payload)
