"""Sends the mails that are due: looks whether each is still true, and has it written and sent."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec
import structlog

from holdfast.accounts.signin import links
from holdfast.accounts.signin.mail import SignInMail
from holdfast.events.mails import sql
from holdfast.events.mails.model import Arguments, DataMail, Kind, Order, Portion, is_true, paragraph_of
from holdfast.events.mails.writing import write
from holdfast.events.paths import event_path
from holdfast.events.people import proof
from holdfast.events.people.links import DataLink, url
from holdfast.events.registrations.links import own_url
from holdfast.events.resources import Database, Resources
from holdfast.kit import sender
from holdfast.kit.elsewhere import Elsewhere
from holdfast.kit.mail import Envelope, NoAddress, Unwritable, envelope_address
from holdfast.kit.outbox import Mail

Writer = Callable[[Portion], Awaitable[Sequence[bytes]]]

MakeOrder = Callable[[str, str], Order | SignInMail | DataMail]
"""`(recipient, message_id) -> order`"""

log = structlog.get_logger()


async def run(database: Database) -> None:
    """Send mails until cancelled. A process that does not know the public address of the service sends none."""
    if not database.resources.settings.base_url:
        log.warning("this process sends no mails: set EVENTS_BASE_URL, since mails have links to the service")
        await asyncio.Event().wait()
    async with Elsewhere(write) as writer:
        await send(database, writer)


async def send(database: Database, writer: Writer) -> None:
    """Send mails that somebody else writes, until cancelled."""
    await sender.run(database, partial(_render, writer))


async def _render(writer: Writer, database: Database, mails: Sequence[Mail]) -> list[Envelope | Unwritable | None]:
    """The mails as they are sent; None for those that are no longer true."""
    resources: Resources = database.resources
    of_kind: dict[str, list[Mail]] = {"sign_in": [], "own_data": [], "": []}
    for each in mails:
        of_kind[each.kind if each.kind in of_kind else ""].append(each)
    rendered: dict[int, Envelope | Unwritable] = {}
    orders: dict[int, Order | SignInMail | DataMail] = {}
    for mail, order in (
        *await _about_registrations(database, of_kind[""]),
        *await _with_links(database, of_kind["sign_in"]),
        *await _with_data_links(database, of_kind["own_data"]),
    ):
        try:
            orders[mail.id] = order(envelope_address(mail.recipient), mail.message_id(resources.mailer.domain))
        except NoAddress as error:
            rendered[mail.id] = Unwritable(str(error))
    if orders:
        settings = resources.settings
        portion = Portion(settings.base_url, resources.mailer.sender, settings.mail_from, [*orders.values()])
        for (id, order), content in zip(orders.items(), await writer(portion), strict=True):
            rendered[id] = Envelope(order.recipient, order.message_id, content)
    return [rendered.get(each.id) for each in mails]


async def _about_registrations(database: Database, mails: Sequence[Mail]) -> list[tuple[Mail, MakeOrder]]:
    """Those of the mails about registrations that are still true, with all that the process that writes needs for them.

    No secret is among it.
    """
    caused = [msgspec.convert(each.arguments, Arguments) for each in mails]
    kinds = [msgspec.convert(each.kind, Kind) for each in mails]
    asked = [
        sql.Asked(place, mail.id, kind, mail.thread, each.event_id, each.user_id, paragraph_of(kind))
        for place, (mail, kind, each) in enumerate(zip(mails, kinds, caused, strict=True))
    ]
    known = await database.read(lambda reader: sql.find(reader, asked)) if asked else {}
    settings, secret = database.resources.settings, database.resources.secret
    found: list[tuple[Mail, MakeOrder]] = []
    for place, each in known.items():
        mail, cause, kind = mails[place], caused[place], kinds[place]
        if is_true(kind, cause, each):
            order = partial(
                Order,
                caused_at=mail.inserted_at,
                kind=kind,
                caused=cause,
                known=each,
                own=own_url(settings, secret, cause.event_id, cause.user_id, cause.arrival),
                page=settings.base_url + event_path(each.organizer_slug, each.id),
            )
            found.append((mail, order))
    return found


async def _with_links(database: Database, mails: Sequence[Mail]) -> list[tuple[Mail, MakeOrder]]:
    """Those of the mails with links to sign in whose links still work."""
    resources: Resources = database.resources
    if not mails:
        return []
    addresses = await links.addresses(database, mails, resources.secret, resources.settings.base_url)
    return [
        (
            mail,
            partial(
                SignInMail,
                caused_at=mail.inserted_at,
                language=mail.arguments["language"],
                link=addresses[mail.id],
            ),
        )
        for mail in mails
        if mail.id in addresses
    ]


async def _with_data_links(database: Database, mails: Sequence[Mail]) -> list[tuple[Mail, MakeOrder]]:
    """Those of the mails with links to people's own data whose links nobody has used, and which still work."""
    if not mails:
        return []
    sent = {each.id: DataLink(each.arguments["user_id"], each.arguments["issued"]) for each in mails}
    working = await database.read(lambda reader: proof.unused(reader, [*sent.values()]))
    settings, secret = database.resources.settings, database.resources.secret
    return [
        (
            mail,
            partial(
                DataMail,
                caused_at=mail.inserted_at,
                language=mail.arguments["language"],
                link=url(settings, secret, sent[mail.id]),
            ),
        )
        for mail in mails
        if sent[mail.id] in working
    ]
