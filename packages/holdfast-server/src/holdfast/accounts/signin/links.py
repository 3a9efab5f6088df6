"""Links to sign in, which are sent by mail.

A link works once, for 15 minutes, and only in the browser that asked for it: a person who reads the mail elsewhere
cannot use it, and cannot make another person sign in to an account that is not theirs. A link that an operator has made
(`create_unbound_link`) works in any browser. Every link is signed, so the content of the database is not enough to sign
in. Links are deleted a day after they were requested.
"""

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from holdfast.accounts import known_browsers, sessions
from holdfast.accounts.directory import Directory
from holdfast.accounts.signin.mail import MINUTES, SignInMail
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.mail.outbox import Mail
from holdfast.kit.postgres.database import Database, Reader, Tx
from holdfast.kit.security.service_secret import Secret

_TOKEN = re.compile(r"([1-9][0-9]{0,17})-([0-9a-f]{64})")

DELETE_BATCH_SIZE = 5_000
"""Rows that one statement deletes."""

LinkStatus = Literal["good", "used", "expired", "other_browser", "no_account"]
"""`other_browser`: another browser asked for the link; `no_account`: no account has the e-mail address."""


class SendSignInLink(Command):
    """Asks for a mail with a link to sign in.

    browser      the digest of the cookie of the browser that asks
    return_to    the path where the person wants to go
    """

    email: str
    browser: bytes
    return_to: str
    language: str


class GetSignInLink(Command):
    """Asks for the status of a link in a browser."""

    id: int
    browser: bytes


class UseLink(Command):
    """Asks to sign in with a link.

    user_agent    the User-Agent header of the browser
    language      that of the page on which the link is used
    """

    id: int
    browser: bytes
    user_agent: str
    language: str


class SignInLinkView(Struct):
    """The status of a link.

    email         the e-mail address that the link signs in
    return_to     the path to which the person goes then
    is_unbound    whether an operator may have made the link: no browser asked for it, or it is no longer stored
    """

    status: LinkStatus
    email: str
    return_to: str
    is_unbound: bool


class LinkSignInResult(Struct):
    """The result of using a link.

    secret            the secret for the cookie of the new session; empty if the link does not work
    browser_secret    the one for the cookie by which this browser is known as one of the owner of the e-mail address

    is_unbound    as in `SignInLinkView`, of a link that does not work
    """

    status: LinkStatus
    email: str = ""
    return_to: str = ""
    secret: str = ""
    browser_secret: str = ""
    is_unbound: bool = False


async def send_sign_in_link(tx: Tx[Any], caller: Caller, command: SendSignInLink) -> None:
    """Store a link, and put the mail with it into the outbox, even if no account has the e-mail address."""
    await tx.run(
        """
        with link as (
            insert into sign_in_links (email, browser, return_to, language)
            values (%(email)s, %(browser)s, %(return_to)s, %(language)s) returning id)
        -- A person waits for this mail: it goes before those that are waiting already.
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


async def create_unbound_link(tx: Tx[Any], email: str, return_to: str) -> int:
    """Store a link that works in any browser, once, for an operator to pass on. Returns its id."""
    return await tx.value(
        """
        insert into sign_in_links (email, return_to) values (%(email)s, %(return_to)s) returning id
        """,
        {"email": email, "return_to": return_to},
    )


async def get(reader: Reader[Any], caller: Caller, command: GetSignInLink) -> SignInLinkView:
    """The status of a link. This changes nothing: programs that check mails follow the links in them."""
    return await _find_status(reader, command.id, command.browser)


class SignInByLink:
    """Signs people in by links. If several requests use a link at the same time, one succeeds."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    async def use(self, tx: Tx[Any], caller: Caller, command: UseLink) -> LinkSignInResult:
        """Use a link: prove the e-mail address, and begin a session."""
        rows = await tx.tuples(
            """
            update sign_in_links set used_at = now()
             where id = %(id)s and used_at is null and coalesce(browser, %(browser)s) = %(browser)s
               and asked_at > now() - make_interval(mins => %(minutes)s)
            returning email, return_to
            """,
            {"id": command.id, "browser": command.browser, "minutes": MINUTES},
        )
        if not rows:
            link = await _find_status(tx, command.id, command.browser)
            return LinkSignInResult(link.status, is_unbound=link.is_unbound)
        [(email, return_to)] = rows
        account = await self._directory.prove(tx, email, command.language)
        if account is None:
            return LinkSignInResult("no_account", email)
        secret = await sessions.begin(tx, account.id, "link", command.user_agent)
        browser_secret = await known_browsers.note_browser(tx, account.id, email)
        return LinkSignInResult("good", email, return_to, secret, browser_secret)


class RequestedLink(Struct):
    """A requested link, in the export of a person's data."""

    asked_at: dt.datetime
    used_at: dt.datetime | None


async def list_requested(reader: Reader[Any], email: str) -> list[RequestedLink]:
    """The stored links that were requested for an e-mail address, oldest first."""
    return await reader.rows(
        RequestedLink,
        "select asked_at, used_at from sign_in_links where email = %(email)s order by id",
        {"email": email},
    )


async def forget(tx: Tx[Any], email: str) -> None:
    """Delete the links that were requested for an e-mail address."""
    await tx.run("delete from sign_in_links where email = %(email)s", {"email": email})


async def forget_links(tx: Tx[Any]) -> int:
    """Delete a batch of old links. Returns how many were deleted."""
    return await tx.value(
        """
        with deleted as (
            delete from sign_in_links where id in (
                select id from sign_in_links where asked_at < now() - interval '1 day' limit %(batch_size)s)
            returning 1)
        select count(*) from deleted
        """,
        {"batch_size": DELETE_BATCH_SIZE},
    )


async def _find_status(reader: Reader[Any], id: int, browser: bytes) -> SignInLinkView:
    link = await reader.row(
        SignInLinkView,
        """
        select case when browser <> %(browser)s then 'other_browser'
                    when used_at is not null then 'used'
                    when asked_at <= now() - make_interval(mins => %(minutes)s) then 'expired'
                    else 'good' end as status,
               email, return_to, browser is null as is_unbound
          from sign_in_links where id = %(id)s
        """,
        {"id": id, "browser": browser, "minutes": MINUTES},
    )
    # A link is deleted a day after it was asked for.
    return link or SignInLinkView("expired", "", "", True)


async def mail_contents(database: Database[Any], mails: Sequence[Mail]) -> dict[int, SignInMail]:
    """The contents of sign-in mails by their ids, without the mails whose links no longer work."""
    if not mails:
        return {}
    links = {mail.id: int(mail.arguments["link_id"]) for mail in mails}

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
            link_url(resources.secret, resources.settings.base_url, links[mail.id]),
        )
        for mail in mails
        if links[mail.id] in working
    }


def link_url(secret: Secret, base_url: str, id: int) -> str:
    """The URL of a link."""
    return f"{base_url}/sign-in/{encode_token(secret, id)}"


def encode_token(secret: Secret, id: int) -> str:
    """The token of a link: its id with a signature."""
    return f"{id}-{secret.own_signer('links to sign in').sign(str(id))}"


def decode_token(secret: Secret, token: str) -> int | None:
    """The id of the link; None if this service has not signed the token."""
    parts = _TOKEN.fullmatch(token)
    if parts is None or not secret.own_signer("links to sign in").accepts(parts[1], parts[2]):
        return None
    return int(parts[1])
