"""Limits of the mails of organizers: which of the due ones may be sent now.

The mails of an organizer that has not proved its address are held for seven days, or until it proves it. A mailbox gets
a few mails per hour and day from all organizers together that proved their addresses less than 30 days ago; further
mails wait (decision 68). Only the process that sends the mails of a mailbox checks its limits
(`kit/mail/shards.py`), and a mail is counted before it is sent. So mails that are being sent count, and so do those of
a killed process.
"""

import datetime as dt
from collections.abc import Mapping

import msgspec

from holdfast.events.mails.model import (
    RegistrationMail,
)
from holdfast.events.resources import Database, Writer
from holdfast.kit.contract.addresses import mailbox
from holdfast.kit.contract.bounds import Bound

UNPROVED_WAIT = dt.timedelta(days=7)
"""The longest time that a mail waits for its organizer to prove the address."""

NEW_ORGANIZER_PERIOD = dt.timedelta(days=30)
"""The time after the proof of its address during which an organizer is new."""

MAILS_PER_HOUR = 6

MAILS_PER_DAY = 20
"""The most mails that a mailbox gets from new organizers."""

NEW_ORGANIZER_MAILS = Bound(
    name="Mails to one mailbox from organizers with addresses confirmed in the last 30 days",
    service="events",
    total=f"{MAILS_PER_HOUR} an hour, {MAILS_PER_DAY} a day; others wait",
    tenant="none, in order",
    address="none",
    reserved="links to sign in and to one's own data do not count",
    stranger="As such an organizer it can delay mails of others to it.",
)


async def hold_of_unproved(database: Database, contents: dict[int, RegistrationMail]) -> set[int]:
    """Remove the mails of organizers that have not proved their addresses. Returns the ids of those that are held."""
    unproved = {id: mail for id, mail in contents.items() if mail.facts.proved_at is None}
    waiting_mails = {id: mail for id, mail in unproved.items() if mail.facts.now < mail.caused_at + UNPROVED_WAIT}
    if waiting_mails:
        await database.autocommit(lambda writer: _hold_for_organizer(writer, waiting_mails))
    for id in unproved:
        del contents[id]
    return {*waiting_mails}


async def hold_beyond_limits(database: Database, contents: dict[int, RegistrationMail]) -> set[int]:
    """Count the mails of new organizers, and remove those beyond the limits of their mailboxes. Returns their ids.

    Those that stay in `contents` count as sent.
    """
    counted = {id: mail for id, mail in contents.items() if _is_of_new_organizer(mail)}
    if not counted:
        return set()
    held_ids = counted.keys() - await database.autocommit(lambda writer: _count_and_hold(writer, counted))
    for id in held_ids:
        del contents[id]
    return {*held_ids}


def _is_of_new_organizer(mail: RegistrationMail) -> bool:
    facts = mail.facts
    return facts.proved_at is not None and facts.now < facts.proved_at + NEW_ORGANIZER_PERIOD


async def _hold_for_organizer(writer: Writer, contents: Mapping[int, RegistrationMail]) -> None:
    """Hold mails until their organizers have proved their addresses.

    If an organizer has just proved it, or its row is locked, its mails are due again in a second.
    """
    # The transaction that proves an address waits for these locks, and then releases the mails held here.
    await writer.value(
        """
        with organizers as materialized (
            select id from users where id = any(%(organizers)s) and coalesce(proved_at, erased_at) is null
               for share skip locked),
        held_mail as (
            update mails set hold = case when organizers.id is not null then 'organizer' end, bulk = true,
                             due_at = case when organizers.id is not null then inserted_at + %(wait)s
                                           else now() + interval '1 second' end
              from unnest(%(mails)s::bigint[], %(organizers)s::bigint[]) as mail (mail_id, organizer_id)
              left join organizers on organizers.id = organizer_id
             where mails.id = mail_id and ended_at is null
         returning 1)
        select count(*) from held_mail
        """,
        {
            "mails": [*contents],
            "organizers": [mail.facts.organizer_id for mail in contents.values()],
            "wait": UNPROVED_WAIT,
        },
    )


async def _count_and_hold(writer: Writer, contents: Mapping[int, RegistrationMail]) -> set[int]:
    """Count mails for the limits of their mailboxes, and hold mails beyond the limits. Returns the ids of the others.

    A held mail is due again when the oldest counted mail leaves the period of the limit.
    """
    rows = await writer.tuples(
        """
        with mail as materialized (
            select mail_id, mailbox, row_number() over (partition by mailbox order by mail_id) as place
              from json_to_recordset(%(mails)s::json) as mail (mail_id bigint, mailbox text)),
        decision as materialized (
            select mail_id, mailbox, place + in_hour <= %(per_hour)s and place + in_day <= %(per_day)s as fits,
                   greatest(case when place + in_hour > %(per_hour)s
                                 then coalesce(first_in_hour, now()) + interval '1 hour' end,
                            case when place + in_day > %(per_day)s
                                 then coalesce(first_in_day, now()) + interval '1 day' end) as fits_at
              from mail
             cross join lateral (
                select count(*) as in_day, min(counted_at) as first_in_day,
                       count(*) filter (where counted_at > now() - interval '1 hour') as in_hour,
                       min(counted_at) filter (where counted_at > now() - interval '1 hour') as first_in_hour
                  from mails
                 where counted_for = mailbox and counted_at > now() - interval '1 day'
                   and id <> all(array(select mail_id from mail))) as counted_mails)
        update mails
           set counted_for = case when fits then mailbox end, counted_at = case when fits then now() end,
               hold = case when not fits then 'recipient' end, due_at = case when fits then due_at else fits_at end,
               bulk = bulk or not fits
          from decision where id = mail_id and ended_at is null
        returning id, fits
        """,
        {
            "mails": msgspec.json.encode(
                [{"mail_id": id, "mailbox": mailbox(mail.recipient)} for id, mail in contents.items()]
            ).decode(),
            "per_hour": MAILS_PER_HOUR,
            "per_day": MAILS_PER_DAY,
        },
    )
    return {id for id, fits in rows if fits}
