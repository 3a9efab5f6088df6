"""Sends the mails about registrations that are due: looks whether each is still true, writes it, and lets it leave."""

import asyncio
from collections.abc import Sequence

import msgspec
import structlog

from holdfast.events.mails import sql
from holdfast.events.mails.model import Arguments, Kind, is_true
from holdfast.events.mails.writing import write
from holdfast.events.resources import Database, Resources
from holdfast.kit import sender
from holdfast.kit.mail import Message
from holdfast.kit.outbox import Mail
from holdfast.kit.pace import give_way

log = structlog.get_logger()


async def run(database: Database) -> None:
    """Send mails until cancelled. A process that does not know the public address of the service sends none."""
    if not database.resources.settings.base_url:
        log.warning("this process sends no mails: set EVENTS_BASE_URL, since mails have links to the service")
        await asyncio.Event().wait()
    await sender.run(database, render)


async def render(database: Database, mails: Sequence[Mail]) -> list[Message | None]:
    """The mails as messages; None for those that are no longer true."""
    caused = [msgspec.convert(each.arguments, Arguments) for each in mails]
    kinds = [msgspec.convert(each.kind, Kind) for each in mails]
    asked = [
        sql.Asked(place, mail.id, mail.kind, mail.thread, each.event_id, each.user_id)
        for place, (mail, each) in enumerate(zip(mails, caused, strict=True))
    ]
    known = await database.read(lambda reader: sql.find(reader, asked))

    resources: Resources = database.resources
    messages: list[Message | None] = []
    for place, (mail, kind, each) in enumerate(zip(mails, kinds, caused, strict=True)):
        if place in known and is_true(kind, each, known[place]):
            # Codes and templates take milliseconds each, for which nothing else is to wait.
            messages.append(await asyncio.to_thread(write, mail, kind, each, known[place], resources))
            await give_way()
        else:
            messages.append(None)
    return messages
