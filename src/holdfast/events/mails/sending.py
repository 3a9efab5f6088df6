"""Sends the mails that are due: looks whether each is still true, and has it written and sent."""

from collections.abc import Sequence

import msgspec

from holdfast.accounts.signin import links
from holdfast.events.mails import sql
from holdfast.events.mails.model import Arguments, DataMail, Kind, Order, Portion, is_true, paragraph_of
from holdfast.events.mails.writing import write
from holdfast.events.paths import event_path
from holdfast.events.people import proof
from holdfast.events.people.links import DataLink, url
from holdfast.events.registrations.links import own_url
from holdfast.events.resources import Database, Resources
from holdfast.kit import rendering
from holdfast.kit.outbox import Mail
from holdfast.kit.rendering import Rendered, Writer


async def run(database: Database) -> None:
    """Send mails until cancelled. A process that does not know the public address of the service sends none."""
    await rendering.run(database, write, render)


async def render(writer: Writer[Portion], database: Database, mails: Sequence[Mail]) -> Rendered:
    """The mails as they are sent."""
    resources: Resources = database.resources
    settings = resources.settings
    of_kind: dict[str, list[Mail]] = {"sign_in": [], "own_data": [], "": []}
    for each in mails:
        of_kind[each.kind if each.kind in of_kind else ""].append(each)
    return await rendering.render(
        mails,
        {
            **await _about_registrations(database, of_kind[""]),
            **await links.orders(database, of_kind["sign_in"]),
            **await _with_data_links(database, of_kind["own_data"]),
        },
        lambda orders: writer(Portion(settings.base_url, resources.mailer.sender, settings.mail_from, orders)),
    )


async def _about_registrations(database: Database, mails: Sequence[Mail]) -> dict[int, Order]:
    """What is to be written about registrations, by the ids of the mails; without those that are no longer true.

    No secret is among it.
    """
    caused = [msgspec.convert(each.arguments, Arguments) for each in mails]
    kinds = [msgspec.convert(each.kind, Kind) for each in mails]
    asked = [
        sql.Asked(place, mail.id, kind, mail.thread, each.event_id, each.user_id, paragraph_of(kind))
        for place, (mail, kind, each) in enumerate(zip(mails, kinds, caused, strict=True))
    ]
    known = await database.read(lambda reader: sql.find(reader, asked)) if asked else {}
    resources: Resources = database.resources
    settings = resources.settings
    orders: dict[int, Order] = {}
    for place, each in known.items():
        mail, cause, kind = mails[place], caused[place], kinds[place]
        if is_true(kind, cause, each):
            orders[mail.id] = Order(
                mail.recipient,
                mail.message_id(resources.mailer.domain),
                caused_at=mail.inserted_at,
                kind=kind,
                caused=cause,
                known=each,
                own=own_url(settings, resources.secret, cause.event_id, cause.user_id, cause.arrival),
                page=settings.base_url + event_path(each.organizer_slug, each.id),
            )
    return orders


async def _with_data_links(database: Database, mails: Sequence[Mail]) -> dict[int, DataMail]:
    """What is to be written with links to people's own data, by the ids of the mails; without those whose links
    somebody has used, or which work no more.
    """
    if not mails:
        return {}
    sent = {each.id: DataLink(each.arguments["user_id"], each.arguments["issued"]) for each in mails}
    working = await database.read(lambda reader: proof.unused(reader, [*sent.values()]))
    resources: Resources = database.resources
    return {
        mail.id: DataMail(
            mail.recipient,
            mail.message_id(resources.mailer.domain),
            mail.inserted_at,
            mail.arguments["language"],
            url(resources.settings, resources.secret, sent[mail.id]),
        )
        for mail in mails
        if sent[mail.id] in working
    }
