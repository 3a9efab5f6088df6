"""A person's own data, behind a link that was just sent to the person's address.

A holder of the link in an old mail about a registration may request this link, but it is sent to the address only,
because mails are forwarded. The link works for an hour, and only for the first page on which its button was pressed.
Reading the page changes nothing, because mail scanners follow links.
"""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from holdfast.accounts import sessions
from holdfast.events.people import operations, sql
from holdfast.events.people.model import AccountSelector, DataLink, Erasure, Export, shared_account_refusal
from holdfast.events.registrations.links import OwnRegistrationCommand
from holdfast.events.resources import Reader, Tx
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, refuses


class SendDataLink(OwnRegistrationCommand):
    """Asks to send a link to the person of a registration. `language`: of the mail."""

    language: str


class OpenDataLink(Command):
    """Asks for a link to the data of the signed-in person. `language`: of the mail."""

    account_id: int
    session_id: int
    language: str


class DataLinkResult(Struct):
    """The link; None: it was sent by mail."""

    link: DataLink | None


class DataLinkCommand(Command):
    """Names a link to a person's data. `issued`: in microseconds."""

    public_id: str
    issued: int

    def selector(self, holder: bytes | None = None) -> AccountSelector:
        return AccountSelector(public_id=self.public_id, issued=self.issued, holder=holder)


class CheckDataLink(DataLinkCommand):
    """Asks whether a link can still be used."""


class UseDataLink(DataLinkCommand):
    """Uses a link. `holder`: the digest of the secret of the page that was shown for it."""

    holder: Annotated[bytes, Meta(min_length=32, max_length=32)]


class ExportOwnData(UseDataLink):
    """Asks for the person's own data."""


class PreviewOwnErasure(UseDataLink):
    """Asks for the result that erasing the person's own data would have."""


class EraseOwnData(UseDataLink):
    """Asks to erase the person's own data. `events.payments.erasing` does it."""


async def send(tx: Tx, caller: Caller, command: SendDataLink) -> None:
    """Send a link to the address of the registered person, unless one was sent in the last hour."""
    await sql.send_link(tx, command.event_id, command.public_id, command.arrival, command.language)


@refuses(NOT_FOUND, FORBIDDEN)
async def open(tx: Tx, caller: Caller, command: OpenDataLink) -> DataLinkResult:
    """A link to the person's data if the person has just signed in by mail; otherwise mail the link.

    At most one mail an hour is sent. A session lasts for weeks, and another person may use the browser meanwhile.
    """
    account = await sql.find(tx, AccountSelector(id=command.account_id))
    if account is None:
        raise NOT_FOUND("This account was erased.")
    if not account.is_persons:
        raise shared_account_refusal(account)
    if await sessions.is_fresh(tx, command.session_id):
        return DataLinkResult(await sql.make_link(tx, account.id))
    await sql.send_own_link(tx, account.id, command.language)
    return DataLinkResult(None)


async def find_unused_links(reader: Reader, links: Sequence[DataLink]) -> set[DataLink]:
    """The links that are unused and still work: only for them a mail is sent."""
    return await sql.find_unused_links(reader, links)


@refuses(NOT_FOUND, FORBIDDEN)
async def check(reader: Reader, caller: Caller, command: CheckDataLink) -> None:
    """Check that a link can be used. Raises `not_found` for one that was used, is too old, or is not the last one."""
    account = await sql.find(reader, command.selector())
    if account is None:
        raise NOT_FOUND("This link cannot be used any more.")
    if not account.is_persons:
        raise shared_account_refusal(account)


@refuses(NOT_FOUND, FORBIDDEN)
async def export(tx: Tx, caller: Caller, command: ExportOwnData) -> Export:
    """All stored data about the person. From now on the link works for this holder alone."""
    selector = command.selector(command.holder)
    await sql.use_link(tx, selector)
    return await operations.export(tx, selector)


@refuses(NOT_FOUND, FORBIDDEN)
async def preview(tx: Tx, caller: Caller, command: PreviewOwnErasure) -> Erasure:
    """The result that erasing would have. From now on the link works for this holder alone."""
    selector = command.selector(command.holder)
    await sql.use_link(tx, selector)
    return await operations.preview(tx, selector)
