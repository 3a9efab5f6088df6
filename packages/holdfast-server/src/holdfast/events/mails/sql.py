"""SQL statements for mails."""

from collections.abc import Mapping, Sequence
from typing import LiteralString

import msgspec
from msgspec import Struct

from holdfast.events.hand_over_conditions import HANDED_OVER_EVENTS
from holdfast.events.mails.kinds import KINDS, Kind
from holdfast.events.mails.model import MailFacts
from holdfast.events.people.operations import ANNOUNCEMENT_LOCK
from holdfast.events.resources import Reader, Tx
from holdfast.events.seats.drawn import DRAWN_PLACE
from holdfast.events.users.model import PUBLIC_ACCENT, PUBLIC_NAME
from holdfast.kit.mail import outbox

MAX_PENDING_ROWS = 1_000
"""Pending rows of a log among which those about a registration are looked for. A log with this many is behind."""


class MailFactsRequest(Struct):
    """The key of a mail whose facts are read. `paragraph`: the kind of the organizer's paragraph in it."""

    index: int
    mail_id: int
    kind: str
    thread: str
    event_id: int
    public_id: str
    paragraph: str | None


async def find_facts(reader: Reader, requests: Sequence[MailFactsRequest]) -> dict[int, MailFacts]:
    """The present facts about the event and the registration of each mail, by the index of the request."""
    rows = await reader.tuples(
        f"""
        select request.index, events.id, events.title, events.datetime, events.end_datetime, events.timezone,
               events.location_name, events.address, events.latitude, events.longitude, events.currency,
               events.cancellation_hours, events.calendar_sequence, events.cancelled_at, {PUBLIC_NAME}, organizers.slug,
               registration.status::text, registration.arrival, registration.notify,
               coalesce(payment.amount, registration.amount_paid),
               registration.amount_due,
               case when payment.is_over then null else coalesce(payment.refund_days, rule.refund_days, 0) end,
               registration.held_until, registration.promoted_at,
               newer.id is null, now(), paragraph.text, organizers.id,
               coalesce(organizers.proved_at, organizers.erased_at), {PUBLIC_ACCENT},
               case when organizers.proved_at is not null then organizers.logo_key end,
               registration.log_number, log.arrivals, log.moved, log.removed,
               events.draw_entries, {DRAWN_PLACE}, events.draw_at, person.proved_at is not null,
               log.head_size, log.head_root, coalesce(log.is_complete, false)
          from json_to_recordset(%(requests)s::json)
               as request (index integer, mail_id bigint, kind text, thread text, event_id bigint, public_id text,
                         paragraph text)
         cross join lateral (select * from events where id = request.event_id limit 1) as events
         cross join lateral (select id, name, slug, proved_at, erased_at, accent, logo_key from users
                              where id = events.organizer_id limit 1) as organizers
          left join lateral (select id, proved_at from users
                              where users.public_id = request.public_id limit 1) as person on true
          left join lateral (select * from registrations
                              where event_id = events.id and user_id = person.id limit 1) as registration on true
          left join lateral (select case when state = 'paid' then amount end as amount, refund_days,
                                    state in ('ended', 'refused')
                                        or state = 'paid' and blocked_by_dispute(intent_id) = 'lost' as is_over
                               from payments
                              where registration.amount_due is not null and event_id = events.id
                                and user_id = person.id and arrival = registration.arrival
                              order by id desc limit 1) as payment on true
          left join lateral (select refund_days from payout_accounts
                              where organizer_id = organizers.id and is_confirmed limit 1) as rule on true
          left join lateral (select id from mails
                              where thread = request.thread and ended_at is null and kind = request.kind
                                and id > request.mail_id
                              limit 1) as newer on true
          left join lateral (select text from mail_paragraphs
                              where event_id = events.id and kind = request.paragraph limit 1) as paragraph on true
          -- The third line of a checkpoint is the root in base64.
          left join lateral (select logs.arrivals, moved, removed, head.size as head_size, head.root as head_root,
                                    head.is_newest and head.arrivals >= registration.log_number
                                        and not place.is_pending as is_complete
                               from logs
                              cross join lateral (
                                select count(*) = %(pending_rows)s
                                       or coalesce(bool_or(details ->> 'number' = registration.log_number::text
                                                           or registration.log_number = any(numbers)), false)
                                       as is_pending
                                  from (select details, numbers from log_pending
                                         where log_id = logs.id order by id limit %(pending_rows)s) as pending) as place
                               left join lateral (
                                select signed_size as size, encode(substring(signed.root for 4), 'hex') as root,
                                       signed_size = log_heads.size as is_newest, log_heads.arrivals
                                  from log_heads
                                 cross join lateral (
                                    select decode(split_part(checkpoint, chr(10), 3), 'base64') as root) as signed
                                 where log_id = logs.id and signed_size > 0 limit 1) as head on true
                              where registration.log_number is not null and event_id = events.id
                              order by generation desc limit 1) as log on true
        """,
        {"requests": msgspec.json.encode(requests).decode(), "pending_rows": MAX_PENDING_ROWS},
    )
    return {index: MailFacts(*values) for index, *values in rows}


async def announce_batch(tx: Tx, limit: int) -> bool:
    """Write one batch of mails of a due announcement. Returns whether there was one.

    If a later announcement of the same event is due too, it replaces the earlier one.
    """
    announcement = await tx.tuples(
        """
        select id, event_id, kind, announced_at, last_user_id, exists (
                   select from mail_announcements as later
                    where later.event_id = mail_announcements.event_id and later.id > mail_announcements.id
                      and later.due_at <= clock_timestamp())
          from mail_announcements where due_at <= clock_timestamp()
         order by due_at, id limit 1 for update skip locked
        """
    )
    if not announcement:
        return False
    [(id, event_id, kind, announced_at, last_user_id, is_outdated)] = announcement
    last = None if is_outdated else await _mail_people(tx, event_id, kind, announced_at, last_user_id, limit)
    if last is None:
        await tx.run("delete from mail_announcements where id = %(id)s", {"id": id})
    else:
        await tx.run(
            "update mail_announcements set last_user_id = %(last)s where id = %(id)s", {"id": id, "last": last}
        )
    return True


async def _mail_people(tx: Tx, event_id: int, kind: Kind, announced_at: object, after: int, limit: int) -> int | None:
    """Insert mails for the next people. Returns the user id of the last; None if no people were left."""
    # A separate statement, so that the next one sees the erasures of the transactions that held the lock.
    await tx.run("select pg_advisory_xact_lock_shared(%(lock)s)", {"lock": ANNOUNCEMENT_LOCK})
    return await tx.value(
        """
        with batch as (
            select event_id, user_id, arrival, name, language, status, settled_at, notify
              from registrations
             where event_id = %(event_id)s and user_id > %(after)s order by user_id limit %(limit)s),
        inserted_mails as (
            insert into mails (kind, thread, bulk, recipient, arguments)
            select %(kind)s, 'registration ' || event_id || ' ' || person.public_id, true, person.email,
                   jsonb_build_object('organizer_id', (select organizer_id from events where id = %(event_id)s),
                                      'event_id', event_id, 'user_id', person.public_id, 'arrival', arrival,
                                      'name', name, 'language', language)
              from batch
             cross join lateral (select public_id, email from users where users.id = batch.user_id limit 1) as person
             where status = any(%(recipients)s::registration_status[]) and settled_at <= %(announced_at)s and notify
             order by user_id)
        select max(user_id) from batch
        """,
        {
            "event_id": event_id,
            "kind": kind,
            "recipients": [*KINDS[kind].recipients],
            "announced_at": announced_at,
            "after": after,
            "limit": limit,
        },
    )


async def unhold_batch(tx: Tx, limit: int) -> bool:
    """End the hold of a batch of mails that waited until an organizer proved its address.

    Returns whether there was work.
    """
    organizer_id = await tx.value("select organizer_id from mail_releases limit 1 for update skip locked")
    if organizer_id is None:
        return False
    released: int = await tx.value(
        """
        with batch as (
            select id from mails
             where ended_at is null and hold = 'organizer'
               and (arguments ->> 'organizer_id')::bigint = %(organizer_id)s
             order by id limit %(limit)s for update),
        released_mail as (
            update mails set hold = null, due_at = now(), released_at = now() from batch where mails.id = batch.id
         returning 1)
        select count(*) from released_mail
        """,
        {"organizer_id": organizer_id, "limit": limit},
    )
    if released:
        await tx.notify(outbox.CHANNEL)
    else:
        await tx.run("delete from mail_releases where organizer_id = %(organizer_id)s", {"organizer_id": organizer_id})
    return True


# For each status the newest mails are read from an index; then the newest of these are taken. Mails of an event that
# was handed over are read from where they are still filed.
LIST_MAILS: LiteralString = f"""
    select mail.id, events.id as event_id, events.title, kind, recipient, mail.inserted_at, ended_at, due_at,
           outcome as status, attempts, error, hold
      from unnest(%(statuses)s::text[]) as status
     cross join lateral (
        (select * from mails
          where arguments ? 'organizer_id' and (arguments ->> 'organizer_id')::bigint = %(seen_by)s
            and coalesce(outcome, 'waiting') = status and id < coalesce(%(before)s, 9223372036854775807)
            and (arguments ->> 'event_id')::bigint <> all({HANDED_OVER_EVENTS})
          order by id desc limit %(limit)s)
        union all
        (select filed.* from event_hand_overs
          cross join lateral (
            select * from mails
             where arguments ? 'organizer_id'
               and (arguments ->> 'organizer_id')::bigint = event_hand_overs.organizer_id
               and coalesce(outcome, 'waiting') = status and id < coalesce(%(before)s, 9223372036854775807)
               and (arguments ->> 'event_id')::bigint = event_hand_overs.event_id
             order by id desc limit %(limit)s) as filed
          where handed_to = %(seen_by)s)) as mail
     cross join lateral (
        select id, title from events
         where id = (mail.arguments ->> 'event_id')::bigint and organizer_id = %(seen_by)s limit 1) as events
     order by mail.id desc limit %(limit)s
"""

# Mails to one address are few: they are read from the index of recipients.
LIST_MAILS_TO: LiteralString = """
    select mail.id, events.id as event_id, events.title, kind, recipient, mail.inserted_at, ended_at, due_at,
           outcome as status, attempts, error, hold
      from mails as mail
     cross join lateral (
        select id, title from events
         where id = (mail.arguments ->> 'event_id')::bigint and organizer_id = %(seen_by)s limit 1) as events
     where recipient = %(recipient)s and coalesce(outcome, 'waiting') = any(%(statuses)s::text[])
       and mail.id < coalesce(%(before)s, 9223372036854775807)
     order by mail.id desc limit %(limit)s
"""

IS_ABOUT_OWN_EVENT: LiteralString = """
    select exists (
        select from mails join events on events.id = (mails.arguments ->> 'event_id')::bigint
         where mails.id = %(mail_id)s and events.organizer_id = %(organizer_id)s)
"""


async def find_paragraphs(reader: Reader, event_id: int) -> dict[str, str]:
    """The paragraphs of an event, by kind."""
    return dict(await reader.tuples("select kind, text from mail_paragraphs where event_id = %(id)s", {"id": event_id}))


async def store_paragraphs(tx: Tx, event_id: int, texts: Mapping[str, str]) -> None:
    """Replace all paragraphs of an event."""
    await tx.run(
        """
        with new_paragraphs as (select key as kind, value as text from json_each_text(%(texts)s::json)),
        deleted_paragraph as (
            delete from mail_paragraphs
             where event_id = %(event_id)s and kind <> all(array(select kind from new_paragraphs)))
        insert into mail_paragraphs (event_id, kind, text) select %(event_id)s, kind, text from new_paragraphs
            on conflict (event_id, kind) do update set text = excluded.text
        """,
        {"event_id": event_id, "texts": msgspec.json.encode(texts).decode()},
    )


async def copy_paragraphs(tx: Tx, event_id: int, new_event_id: int) -> None:
    """Copy the paragraphs of an event to a new one, which has none."""
    await tx.run(
        """
        insert into mail_paragraphs (event_id, kind, text)
        select %(new_event_id)s, kind, text from mail_paragraphs where event_id = %(event_id)s
        """,
        {"event_id": event_id, "new_event_id": new_event_id},
    )


TEXT_BYTES: LiteralString = """
    select coalesce(sum(octet_length(title) + octet_length(body) + coalesce(octet_length(address), 0)
                        + coalesce(octet_length(location_name), 0)
                        + (select coalesce(sum(octet_length(text)), 0) from mail_paragraphs
                            where event_id = events.id)), 0)
      from events where organizer_id = %(organizer_id)s
"""
"""The bytes of text in all events of an organizer, with the paragraphs of their mails."""
