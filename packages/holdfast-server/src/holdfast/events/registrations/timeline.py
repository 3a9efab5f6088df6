"""What happened with one registration, in order: from its arrival to the entry at the door."""

import datetime as dt
from collections.abc import Sequence
from typing import Literal, LiteralString

from msgspec import Struct

from holdfast.events.paths import EventId
from holdfast.events.resources import Reader
from holdfast.events.users.model import PublicId
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.operations.operation import Operation, read

MAX_ENTRIES = 100
"""The most entries of a timeline: the newest ones."""

MAX_MAILS_READ = 1_000
"""Mails to the address that are read, also about other events. They are deleted 30 days after they ended."""

EntryKind = Literal["received", "settled", "promoted", "mail", "paid", "refund", "entered", "scanned", "taken_back"]


class ReadTimeline(Command):
    """Asks for the timeline of a registration."""

    event_id: EventId
    user_id: PublicId


class TimelineEntry(Struct, frozen=True):
    """Something that happened with a registration.

    at         when
    detail     settled: the first status after `pending`; mail: its kind; entered, scanned, taken_back: the device
    status     mail: `sent`, `failed`, `superseded` or `waiting`; refund: `wanted`, `made` or `refused`
    error      what the mail server, or the payment processor, has said
    amount     paid, refund: in minor units of `currency`
    """

    kind: EntryKind
    at: dt.datetime
    detail: str | None
    status: str | None
    error: str | None
    amount: int | None
    currency: str | None


_TIMELINE: LiteralString = """
    with person as materialized (
        select registrations.*, users.public_id, users.email
          from (select id from events where id = %(event_id)s
                   and (%(seen_by)s::bigint is null or organizer_id = %(seen_by)s)) as events
         cross join lateral (select id, public_id, email from users where public_id = %(user_id)s limit 1) as users
         cross join lateral (select * from registrations
                              where event_id = events.id and user_id = users.id limit 1) as registrations),
    paid as materialized (
        select payment.* from person
         cross join lateral (select * from payments
                              where event_id = person.event_id and user_id = person.user_id
                                and arrival = person.arrival and state = 'paid' limit %(limit)s) as payment),
    scan as materialized (
        select scans.* from person
         cross join lateral (select * from check_in_scans
                              where event_id = person.event_id and user_id = person.user_id
                              order by number limit %(limit)s) as scans),
    entry as (
        select 'received' as kind, received_at as at, null as detail, null as status, null as error,
               null::bigint as amount, null as currency from person
        union all
        select 'settled', settled_at,
               case when promoted_at is not null then 'waitlisted'
                    when status = 'waitlisted' and reason is null then 'waitlisted'
                    when status = 'rejected' and reason in ('event_full', 'event_cancelled') then 'rejected'
                    when amount_due is not null then 'held'
                    else 'registered' end, null, null, null, null
          from person where settled_at is not null
        union all
        select 'promoted', promoted_at, null, null, null, null, null from person where promoted_at is not null
        union all
        select 'mail', coalesce(mail.ended_at, mail.inserted_at), mail.kind, coalesce(mail.outcome, 'waiting'),
               case when mail.attempts > 0 or mail.ended_at is not null then mail.error end, null, null
          from person
         cross join lateral (
            select * from (select * from mails where recipient = person.email limit %(mails)s) as received
             where arguments @> jsonb_build_object('event_id', person.event_id, 'user_id', person.public_id)
             order by id desc limit %(limit)s) as mail
        union all
        select 'paid', paid_at, null, null, null, amount, currency from paid
        union all
        select 'refund', refund.inserted_at, null, refund.state::text, refund.error, refund.amount, paid.currency
          from paid
         cross join lateral (select * from refunds where payment_id = paid.id limit %(limit)s) as refund
        union all
        select case when is_entry then 'entered' else 'scanned' end, told_at, device, null, null, null, null from scan
        union all
        select 'taken_back', taken_back_at, device, null, null, null, null from scan where taken_back_at is not null)
    select * from (select * from entry order by at desc limit %(limit)s) as newest order by at
"""


async def read_timeline(reader: Reader, caller: Caller, command: ReadTimeline) -> Sequence[TimelineEntry]:
    """Read the timeline of a registration, oldest first. It is empty if the caller has no such registration."""
    return await reader.rows(
        TimelineEntry,
        _TIMELINE,
        {
            "seen_by": caller.tenant_id,
            "event_id": command.event_id,
            "user_id": command.user_id,
            "limit": MAX_ENTRIES,
            "mails": MAX_MAILS_READ,
        },
    )


READ_TIMELINE = Operation("get_timeline", None, read(read_timeline))
OPERATIONS = (READ_TIMELINE,)
"""An operation of the console alone: it has no route of the API and no tool."""
