"""Sends the mails about registrations that are due: looks whether each is still true, and has it written and sent."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec
import structlog

from holdfast.events.mails import sql
from holdfast.events.mails.model import Arguments, Kind, Known, Order, Portion, is_true
from holdfast.events.mails.writing import write
from holdfast.events.paths import event_path
from holdfast.events.registrations.links import own_url
from holdfast.events.resources import Database, Resources
from holdfast.kit import sender
from holdfast.kit.elsewhere import Elsewhere
from holdfast.kit.mail import Envelope, NoAddress, Unwritable, envelope_address
from holdfast.kit.outbox import Mail

Writer = Callable[[Portion], Awaitable[Sequence[bytes]]]

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
    caused = [msgspec.convert(each.arguments, Arguments) for each in mails]
    kinds = [msgspec.convert(each.kind, Kind) for each in mails]
    asked = [
        sql.Asked(place, mail.id, mail.kind, mail.thread, each.event_id, each.user_id)
        for place, (mail, each) in enumerate(zip(mails, caused, strict=True))
    ]
    known = await database.read(lambda reader: sql.find(reader, asked))

    resources: Resources = database.resources
    rendered: list[Envelope | Unwritable | None] = [None] * len(mails)
    orders: dict[int, Order] = {}
    for place, (mail, kind, each) in enumerate(zip(mails, kinds, caused, strict=True)):
        if place in known and is_true(kind, each, known[place]):
            try:
                orders[place] = _order(mail, kind, each, known[place], resources)
            except NoAddress as error:
                rendered[place] = Unwritable(str(error))
    if orders:
        settings = resources.settings
        portion = Portion(settings.base_url, resources.mailer.sender, settings.mail_from, [*orders.values()])
        for (place, order), content in zip(orders.items(), await writer(portion), strict=True):
            rendered[place] = Envelope(order.recipient, order.message_id, content)
    return rendered


def _order(mail: Mail, kind: Kind, caused: Arguments, known: Known, resources: Resources) -> Order:
    """What the process that writes needs for a mail; no secret is among it. Raises `NoAddress`."""
    settings = resources.settings
    return Order(
        recipient=envelope_address(mail.recipient),
        message_id=mail.message_id(resources.mailer.domain),
        caused_at=mail.inserted_at,
        kind=kind,
        caused=caused,
        known=known,
        own=own_url(settings, resources.secret, caused.event_id, caused.user_id, caused.arrival),
        page=settings.base_url + event_path(known.organizer_slug, known.id),
    )
