"""Sends the mails that are due: checks whether each is still true and within its limits, and has it written.
Announcements become mails first.

The held mails of an organizer are released in the same way when it proves its address. Any number of processes may do
this: each batch is a transaction that has locked its announcement, or its organizer.
"""

import datetime as dt
import re
from collections.abc import Mapping, Sequence

import msgspec

from holdfast.accounts.agents.approvals import RequestFinder
from holdfast.accounts.agents.mail import RequestMail
from holdfast.accounts.agents.mail_contents import RequestSentences, mail_contents
from holdfast.accounts.signin import links
from holdfast.accounts.stopped_mails import mailboxes
from holdfast.accounts.webhooks import mail_contents as webhook_mails
from holdfast.accounts.webhooks.mail import WebhookMail
from holdfast.events.agents.approval_facts import find_credentials, read_facts
from holdfast.events.api import OPERATIONS
from holdfast.events.mails import sql
from holdfast.events.mails.kinds import KINDS, Kind
from holdfast.events.mails.limits import hold_beyond_limits, hold_of_unproved
from holdfast.events.mails.model import (
    MailArguments,
    MailBatch,
    MailFacts,
    RegistrationMail,
    is_true,
)
from holdfast.events.mails.own_data_mail import DataMail
from holdfast.events.mails.writing import write
from holdfast.events.organizers.branding import logo_url
from holdfast.events.paths import event_path
from holdfast.events.people import proof
from holdfast.events.people.model import DataLink, url
from holdfast.events.registrations.links import own_url
from holdfast.events.registrations.own_registration import GetOwnRegistration, find_own_registrations
from holdfast.events.resources import Database, Resources, Writer
from holdfast.events.site import SITE
from holdfast.events.texts.outbound_texts import outbound_text
from holdfast.kit.background.loops import Loop, RowWaiters
from holdfast.kit.mail import rendering
from holdfast.kit.mail.outbox import Mail
from holdfast.kit.mail.rendering import ContentRenderer, RenderedMails
from holdfast.kit.postgres.notifications import POLL_SECONDS

REQUEST_SENTENCES = "console/agents/request_sentences.html"
"""The template with the sentences about what agents want to do."""

_ADDRESS = re.compile(r"[^\s@/:]+@[^\s@/:]+")


async def run(database: Database) -> None:
    """Send mails until cancelled. A process without the public address of the service sends none."""
    await rendering.run_sender(database, write, render)


async def render(renderer: ContentRenderer[MailBatch], database: Database, mails: Sequence[Mail]) -> RenderedMails:
    """Write the mails. Returns the result for each, in their order."""
    resources: Resources = database.resources
    settings = resources.settings
    of_kind: dict[str, list[Mail]] = {
        "sign_in": [],
        "own_data": [],
        "agent_requests": [],
        "webhook_failing": [],
        "": [],
    }
    for mail in mails:
        of_kind[mail.kind if mail.kind in of_kind else ""].append(mail)
    about_registrations = await mailboxes.without_stopped(database, await _about_registrations(database, of_kind[""]))
    held_ids = await hold_of_unproved(database, about_registrations)
    held_ids |= await hold_until_logged(database, about_registrations)
    held_ids |= await hold_beyond_limits(database, about_registrations)
    return await rendering.render(
        mails,
        {
            **about_registrations,
            **await mailboxes.without_stopped(database, await links.mail_contents(database, of_kind["sign_in"])),
            **await mailboxes.without_stopped(database, await _with_data_links(database, of_kind["own_data"])),
            **await mailboxes.without_stopped(database, await _about_requests(database, of_kind["agent_requests"])),
            **await mailboxes.without_stopped(database, await _about_webhooks(database, of_kind["webhook_failing"])),
        },
        lambda contents: renderer(MailBatch(settings.base_url, resources.mailer.sender, settings.mail_from, contents)),
        held_ids=held_ids,
    )


async def _about_registrations(database: Database, mails: Sequence[Mail]) -> dict[int, RegistrationMail]:
    """The mails about registrations to be written, by id, without mails that are no longer true.

    They contain no secret.
    """
    arguments_of_mails = [msgspec.convert(mail.arguments, MailArguments) for mail in mails]
    kinds = [msgspec.convert(mail.kind, Kind) for mail in mails]
    requests = [
        sql.MailFactsRequest(
            index, mail.id, kind, mail.thread, arguments.event_id, arguments.public_id, KINDS[kind].paragraph
        )
        for index, (mail, kind, arguments) in enumerate(zip(mails, kinds, arguments_of_mails, strict=True))
    ]
    facts_of_mails = await database.read(lambda reader: sql.find_facts(reader, requests)) if requests else {}
    resources: Resources = database.resources
    settings = resources.settings
    waitlist_places = await _find_waitlist_places(database, arguments_of_mails, facts_of_mails)
    contents: dict[int, RegistrationMail] = {}
    for index, facts in facts_of_mails.items():
        mail, arguments, kind = mails[index], arguments_of_mails[index], kinds[index]
        if is_true(kind, arguments, facts):
            contents[mail.id] = RegistrationMail(
                mail.recipient,
                mail.message_id(resources.mailer.domain),
                caused_at=mail.inserted_at,
                kind=kind,
                arguments=arguments,
                facts=facts,
                registration_url=own_url(
                    settings, resources.secret, arguments.event_id, arguments.public_id, arguments.arrival
                ),
                event_url=settings.base_url + event_path(facts.organizer_slug, facts.id),
                logo_url=logo_url(facts.logo, settings),
                waitlist_place=waitlist_places.get(index),
            )
    return contents


async def _find_waitlist_places(
    database: Database, arguments_of_mails: Sequence[MailArguments], facts_of_mails: Mapping[int, MailFacts]
) -> dict[int, int]:
    """The places on waiting lists of those who wait for a free seat, by the index of the mail."""
    waiting_indexes = [index for index, facts in facts_of_mails.items() if facts.status == "waitlisted"]
    if not waiting_indexes:
        return {}
    commands = [
        GetOwnRegistration(event_id=arguments.event_id, public_id=arguments.public_id, arrival=arguments.arrival)
        for arguments in (arguments_of_mails[index] for index in waiting_indexes)
    ]
    registrations = await database.read(lambda reader: find_own_registrations(reader, commands))
    return {
        index: registration.position
        for index, registration in zip(waiting_indexes, registrations, strict=True)
        if registration and registration.status == "waitlisted" and registration.reason is None
    }


async def _with_data_links(database: Database, mails: Sequence[Mail]) -> dict[int, DataMail]:
    """The mails with links to people's own data to be written, by id, without mails whose links were used or no longer
    work.
    """
    if not mails:
        return {}
    links = {mail.id: DataLink(mail.arguments["user_id"], mail.arguments["issued"]) for mail in mails}
    working = await database.read(lambda reader: proof.find_unused_links(reader, [*links.values()]))
    resources: Resources = database.resources
    return {
        mail.id: DataMail(
            mail.recipient,
            mail.message_id(resources.mailer.domain),
            mail.inserted_at,
            mail.arguments["language"],
            url(resources.settings, resources.secret, links[mail.id]),
        )
        for mail in mails
        if links[mail.id] in working
    }


async def _about_requests(database: Database, mails: Sequence[Mail]) -> dict[int, RequestMail]:
    """The mails about requests of agents to be written, by id, without outdated ones."""
    finder = RequestFinder(OPERATIONS, database, find_credentials, read_facts)
    sentences = RequestSentences(SITE, REQUEST_SENTENCES, _without_web_addresses)
    return await mail_contents(database, await _to_organizers(database, mails), finder, sentences)


async def _about_webhooks(database: Database, mails: Sequence[Mail]) -> dict[int, WebhookMail]:
    """The mails about endpoints of webhooks to be written, by id, without outdated ones."""
    current = await _to_organizers(database, mails)
    return await webhook_mails.mail_contents(database, current, dict.fromkeys((mail.id for mail in current), None))


async def _to_organizers(database: Database, mails: Sequence[Mail]) -> Sequence[Mail]:
    """The mails whose recipients are still the addresses of their organizers."""
    if not mails:
        return []
    parameters = {
        "ids": [mail.id for mail in mails],
        "organizers": [mail.arguments["organizer_id"] for mail in mails],
        "recipients": [mail.recipient for mail in mails],
    }
    rows = await database.read(
        lambda reader: reader.tuples(
            """
            select mail.id from unnest(%(ids)s::bigint[], %(organizers)s::bigint[], %(recipients)s::text[])
                                as mail (id, organizer_id, recipient)
              join users on users.id = organizer_id and email = recipient
            """,
            parameters,
        )
    )
    current = {id for (id,) in rows}
    return [mail for mail in mails if mail.id in current]


def _without_web_addresses(text: str) -> str:
    """A text that strangers wrote, as mails may have it. An address of a person stays."""
    return text if _ADDRESS.fullmatch(text) else outbound_text(text)


MAX_LOG_WAIT = dt.timedelta(seconds=10)
"""The longest time after its cause that a mail waits for the log."""

LOG_WAIT_PAUSE = dt.timedelta(seconds=0.5)
"""How long a mail that waits for the log is not read again: half of the pause between two seals
(`SEAL_INTERVAL_SECONDS` of `events/log/sealing.py`)."""


async def hold_until_logged(database: Database, contents: dict[int, RegistrationMail]) -> set[int]:
    """Remove from `contents` the mails that wait for the log. Returns their ids; they stay in the outbox.

    A mail that says a number waits until the signed log has what it is about, so that the line of the log covers it.
    The log is sealed and signed about a second after the transaction that caused the mail. If it cannot be sealed, the
    mail is sent without the line after `MAX_LOG_WAIT`.
    """
    waiting_ids = {id for id, mail in contents.items() if _waits(mail)}
    if waiting_ids:
        await database.autocommit(lambda writer: _postpone(writer, waiting_ids))
    for id in waiting_ids:
        del contents[id]
    return waiting_ids


def _waits(mail: RegistrationMail) -> bool:
    facts = mail.facts
    has_number = KINDS[mail.kind].is_numbered and facts.log_number is not None and facts.arrivals is not None
    return has_number and not facts.is_logged and facts.now < mail.caused_at + MAX_LOG_WAIT


async def _postpone(writer: Writer, ids: set[int]) -> None:
    await writer.value(
        """
        with postponed_mail as (
            update mails set due_at = now() + %(pause)s where id = any(%(ids)s) and ended_at is null returning 1)
        select count(*) from postponed_mail
        """,
        {"ids": [*ids], "pause": LOG_WAIT_PAUSE},
    )


ANNOUNCEMENTS_CHANNEL = "mail_announcements"

MAIL_BATCH_SIZE = 1_000


async def announce(database: Database, _: RowWaiters) -> float:
    """Turn announcements into mails, and end holds of mails. Returns the seconds until the next check."""
    await process_due_announcements(database)
    return POLL_SECONDS


ANNOUNCEMENTS = Loop("sending.run_announcements", announce, (ANNOUNCEMENTS_CHANNEL,))


async def process_due_announcements(database: Database) -> None:
    """Turn all due announcements into mails, and end the hold of mails whose organizers have proved their addresses.

    Locked rows are skipped.
    """
    while await database.transact(lambda tx: sql.announce_batch(tx, MAIL_BATCH_SIZE)):
        pass
    while await database.transact(lambda tx: sql.unhold_batch(tx, MAIL_BATCH_SIZE)):
        pass
