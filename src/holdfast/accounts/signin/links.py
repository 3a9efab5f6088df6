"""Links to sign in, which are sent by mail.

A link works once, for 15 minutes, and only in the browser that asked for it: who gets hold of the mail alone cannot use
it, and nobody can make another person sign in to an account that is not theirs. It is signed, so the database contains
nothing with which somebody could sign in.
"""

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from holdfast.accounts import sessions
from holdfast.accounts.directory import Directory
from holdfast.accounts.signin.mail import MINUTES, SignInMail
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command
from holdfast.kit.database import Database, Reader, Tx
from holdfast.kit.outbox import Mail
from holdfast.kit.secrets import Secret

_LINK = re.compile(r"([1-9][0-9]{0,17})-([0-9a-f]{64})")

State = Literal["good", "used", "expired", "elsewhere", "nobody"]
"""`elsewhere`: it was asked for in another browser; `nobody`: no account has the address."""


class AskLink(Command):
    """Asks for a link to sign in.

    browser      the digest of the cookie of the browser that asks
    return_to    the path where the person wants to go
    """

    email: str
    browser: bytes
    return_to: str
    language: str


class LookAtLink(Command):
    """Asks how a link stands for a browser."""

    id: int
    browser: bytes


class UseLink(Command):
    """Asks to sign in with a link.

    called    what the browser calls itself
    """

    id: int
    browser: bytes
    called: str


class Standing(Struct):
    """How a link stands."""

    state: State
    email: str
    return_to: str


class SignedIn(Struct):
    """What came of using a link.

    secret    of the new session; empty if the link does not work
    """

    state: State
    email: str = ""
    return_to: str = ""
    secret: str = ""


async def ask(tx: Tx[Any], caller: Caller, command: AskLink) -> None:
    """Store a link, and put the mail with it into the outbox. It does not matter whether anybody has the address."""
    await tx.run(
        """
        with link as (
            insert into sign_in_links (email, browser, return_to, language)
            values (%(email)s, %(browser)s, %(return_to)s, %(language)s) returning id)
        -- Somebody waits for this mail: it goes before those that are waiting already.
        insert into mails (kind, thread, recipient, arguments, due_at)
        select 'sign_in', 'sign in ' || id, %(email)s,
               jsonb_build_object('link_id', id, 'language', %(language)s::text), now() - interval '1 hour'
          from link
        """,
        {
            "email": command.email,
            "browser": command.browser,
            "return_to": command.return_to,
            "language": command.language,
        },
    )


async def make(tx: Tx[Any], email: str, return_to: str) -> int:
    """A link that works in any browser, once, for an operator to hand over. Returns its id."""
    return await tx.value(
        """
        insert into sign_in_links (email, return_to) values (%(email)s, %(return_to)s) returning id
        """,
        {"email": email, "return_to": return_to},
    )


async def look(reader: Reader[Any], caller: Caller, command: LookAtLink) -> Standing:
    """How a link stands. Looking changes nothing: programs that check mails follow the links in them."""
    return await _standing(reader, command.id, command.browser)


class Use:
    """Signs people in. Of several who use a link at the same time, one succeeds."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    async def use(self, tx: Tx[Any], caller: Caller, command: UseLink) -> SignedIn:
        """Use a link: prove the address, and begin a session."""
        found = await tx.tuples(
            """
            update sign_in_links set used_at = now()
             where id = %(id)s and used_at is null and coalesce(browser, %(browser)s) = %(browser)s
               and asked_at > now() - make_interval(mins => %(minutes)s)
            returning email, return_to
            """,
            {"id": command.id, "browser": command.browser, "minutes": MINUTES},
        )
        if not found:
            return SignedIn((await _standing(tx, command.id, command.browser)).state)
        [(email, return_to)] = found
        account = await self._directory.prove(tx, email)
        if account is None:
            return SignedIn("nobody")
        secret = await sessions.begin(tx, account.id, "link", command.called)
        return SignedIn("good", email, return_to, secret)


class Asked(Struct):
    """A link that was asked for, for the person."""

    asked_at: dt.datetime
    used_at: dt.datetime | None


async def list_asked(reader: Reader[Any], email: str) -> list[Asked]:
    """The links that were asked for with an address and are kept, oldest first."""
    return await reader.rows(
        Asked, "select asked_at, used_at from sign_in_links where email = %(email)s order by id", {"email": email}
    )


async def forget(tx: Tx[Any], email: str) -> None:
    """Delete the links that were asked for with an address."""
    await tx.run("delete from sign_in_links where email = %(email)s", {"email": email})


async def _standing(reader: Reader[Any], id: int, browser: bytes) -> Standing:
    found = await reader.row(
        Standing,
        """
        select case when browser <> %(browser)s then 'elsewhere'
                    when used_at is not null then 'used'
                    when asked_at <= now() - make_interval(mins => %(minutes)s) then 'expired'
                    else 'good' end as state,
               email, return_to
          from sign_in_links where id = %(id)s
        """,
        {"id": id, "browser": browser, "minutes": MINUTES},
    )
    # A link is deleted a day after it was asked for.
    return found or Standing("expired", "", "")


async def orders(database: Database[Any], mails: Sequence[Mail]) -> dict[int, SignInMail]:
    """What is to be written for mails with links to sign in, by their ids; without those whose links work no more."""
    if not mails:
        return {}
    links = {each.id: int(each.arguments["link_id"]) for each in mails}

    async def find(reader: Reader[Any]) -> set[int]:
        rows = await reader.tuples(
            """
            select id from sign_in_links where id = any(%(ids)s) and used_at is null
               and asked_at > now() - make_interval(mins => %(minutes)s)
            """,
            {"ids": [*links.values()], "minutes": MINUTES},
        )
        return {id for (id,) in rows}

    working = await database.read(find)
    resources = database.resources
    return {
        mail.id: SignInMail(
            mail.recipient,
            mail.message_id(resources.mailer.domain),
            mail.inserted_at,
            mail.arguments["language"],
            address(resources.secret, resources.settings.base_url, links[mail.id]),
        )
        for mail in mails
        if links[mail.id] in working
    }


def address(secret: Secret, base_url: str, id: int) -> str:
    """The address of a link."""
    return f"{base_url}/sign-in/{write(secret, id)}"


def write(secret: Secret, id: int) -> str:
    """A link as text for an address."""
    return f"{id}-{secret.signer('links to sign in').sign(str(id))}"


def read(secret: Secret, text: str) -> int | None:
    """The id of the link in a text, or None if this service did not write the text."""
    parts = _LINK.fullmatch(text)
    if parts is None or not secret.signer("links to sign in").accepts(parts[1], parts[2]):
        return None
    return int(parts[1])
