"""One's own data, behind a link that was just sent to one's own address.

Whoever holds the link in an old mail about a registration may ask for this link, and does not get it: mails are
forwarded. The link works for an hour, and for the page alone on which a button was pressed first. Looking at the page
changes nothing, since programs that check mails follow their links.
"""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from holdfast.accounts import sessions
from holdfast.events.people import operations, sql
from holdfast.events.people.links import DataLink
from holdfast.events.people.model import Erasure, Export, Named, refused
from holdfast.events.registrations.own import OwnCommand
from holdfast.events.resources import Reader, Tx
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command
from holdfast.kit.problems import FORBIDDEN, NOT_FOUND, refuses


class SendDataLink(OwnCommand):
    """Asks to send a link to the person of a registration. `language`: of the mail."""

    language: str


class OpenData(Command):
    """Asks for a link to the data of whoever is signed in. `language`: of the mail."""

    account_id: int
    session_id: int
    language: str


class Opened(Struct):
    """The link; None: it was sent by mail."""

    link: DataLink | None


class OfPerson(Command):
    """Names a link to a person's data. `issued`: in microseconds."""

    user_id: str
    issued: int

    def named(self, holder: bytes | None = None) -> Named:
        return Named(public_id=self.user_id, issued=self.issued, holder=holder)


class LookAtLink(OfPerson):
    """Asks whether a link can still be used."""


class WithLink(OfPerson):
    """Uses a link. `holder`: the digest of what the page holds that was shown for it."""

    holder: Annotated[bytes, Meta(min_length=32, max_length=32)]


class ExportOwn(WithLink):
    """Asks for one's own data."""


class PreviewOwn(WithLink):
    """Asks what erasing one's own data would do."""


class EraseOwn(WithLink):
    """Asks to erase one's own data."""


async def send(tx: Tx, caller: Caller, command: SendDataLink) -> None:
    """Send a link to the address of whoever is registered, unless one was sent in the last hour."""
    await sql.send_link(tx, command.event_id, command.user_id, command.arrival, command.language)


@refuses(NOT_FOUND, FORBIDDEN)
async def open(tx: Tx, caller: Caller, command: OpenData) -> Opened:
    """Return a link to the data of somebody who has just signed in by mail; send it to all others who are signed in.

    At most one mail an hour is sent. A session lasts for weeks, and a browser may be left to somebody else meanwhile.
    """
    account = await sql.find(tx, Named(id=command.account_id))
    if account is None:
        raise NOT_FOUND("This account was erased.")
    if account.role != "user":
        raise refused(account)
    if await sessions.is_fresh(tx, command.session_id):
        return Opened(await sql.make_link(tx, account.id))
    await sql.send_own_link(tx, account.id, command.language)
    return Opened(None)


async def unused(reader: Reader, sent: Sequence[DataLink]) -> set[DataLink]:
    """Those of the links that nobody has used yet, and which still work: only for them a mail is sent."""
    return await sql.find_unused(reader, sent)


@refuses(NOT_FOUND, FORBIDDEN)
async def look(reader: Reader, caller: Caller, command: LookAtLink) -> None:
    """Return if a link can be used. One that was used, is too old, or is not the last one is not found."""
    account = await sql.find(reader, command.named())
    if account is None:
        raise NOT_FOUND("This link cannot be used any more.")
    if account.role != "user":
        raise refused(account)


@refuses(NOT_FOUND, FORBIDDEN)
async def export(tx: Tx, caller: Caller, command: ExportOwn) -> Export:
    """Everything that is stored about the person. From now on the link works for this holder alone."""
    named = command.named(command.holder)
    await sql.use_link(tx, named)
    return await operations.export(tx, named)


@refuses(NOT_FOUND, FORBIDDEN)
async def preview(tx: Tx, caller: Caller, command: PreviewOwn) -> Erasure:
    """What erasing would do. From now on the link works for this holder alone."""
    named = command.named(command.holder)
    await sql.use_link(tx, named)
    return await operations.preview(tx, named)


@refuses(NOT_FOUND, FORBIDDEN)
async def erase(tx: Tx, caller: Caller, command: EraseOwn) -> Erasure:
    """Erase the person's data, as `operations.erase` does."""
    return await operations.erase(tx, command.named(command.holder))
