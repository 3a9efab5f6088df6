"""Statements for mails."""

from collections.abc import Mapping, Sequence
from typing import LiteralString

import msgspec
from msgspec import Struct

from holdfast.events.mails.model import Known
from holdfast.events.people.operations import TELLING
from holdfast.events.resources import Reader, Tx


class Asked(Struct):
    """A mail, as the statement reads it. `paragraph`: the kind of the organizer's paragraph in it."""

    place: int
    mail_id: int
    kind: str
    thread: str
    event_id: int
    user_id: str
    paragraph: str | None


async def find(reader: Reader, asked: Sequence[Asked]) -> dict[int, Known]:
    """What is known now of the event and the registration of each mail, by its place."""
    rows = await reader.tuples(
        """
        select asked.place, events.id, events.title, events.datetime, events.timezone, events.location_name,
               events.address, events.latitude, events.longitude, events.currency, events.cancellation_hours,
               events.calendar_sequence, events.cancelled_at, organizer.name, organizer.slug,
               registration.status::text, registration.arrival, registration.notify, registration.amount_paid,
               registration.amount_due, registration.held_until, registration.promoted_at,
               newer.id is null, now(), paragraph.text
          from json_to_recordset(%(asked)s::json)
               as asked (place integer, mail_id bigint, kind text, thread text, event_id bigint, user_id text,
                         paragraph text)
         cross join lateral (select * from events where id = asked.event_id limit 1) as events
         cross join lateral (select name, slug from users where id = events.organizer_id limit 1) as organizer
          left join lateral (select id from users where public_id = asked.user_id limit 1) as person on true
          left join lateral (select * from registrations
                              where event_id = events.id and user_id = person.id limit 1) as registration on true
          left join lateral (select id from mails
                              where thread = asked.thread and ended_at is null and kind = asked.kind
                                and id > asked.mail_id
                              limit 1) as newer on true
          left join lateral (select text from mail_paragraphs
                              where event_id = events.id and kind = asked.paragraph limit 1) as paragraph on true
        """,
        {"asked": msgspec.json.encode(asked).decode()},
    )
    return {place: Known(*known) for place, *known in rows}


async def tell_a_portion(tx: Tx, limit: int) -> bool:
    """Turn the next registrations of the oldest announcement into mails. Returns whether there was an announcement.

    A later announcement of the same event takes the place of an earlier one.
    """
    announcement = await tx.tuples(
        """
        select id, event_id, kind, announced_at, last_user_id, exists (
                   select from mail_announcements as later
                    where later.event_id = mail_announcements.event_id and later.id > mail_announcements.id)
          from mail_announcements order by id limit 1 for update skip locked
        """
    )
    if not announcement:
        return False
    [(id, event_id, kind, announced_at, last_user_id, is_outdated)] = announcement
    last = None if is_outdated else await _tell(tx, event_id, kind, announced_at, last_user_id, limit)
    if last is None:
        await tx.run("delete from mail_announcements where id = %(id)s", {"id": id})
    else:
        await tx.run(
            "update mail_announcements set last_user_id = %(last)s where id = %(id)s", {"id": id, "last": last}
        )
    return True


async def _tell(tx: Tx, event_id: int, kind: str, announced_at: object, after: int, limit: int) -> int | None:
    """Mail the next people. Returns the last of them, None when there was nobody left."""
    # A statement of its own, so that the next one sees who was erased by those that held it.
    await tx.run("select pg_advisory_xact_lock_shared(%(lock)s)", {"lock": TELLING})
    return await tx.value(
        """
        with portion as (
            select event_id, organizer_id, user_id, arrival, name, language, status, settled_at, notify
              from registrations
             where event_id = %(event_id)s and user_id > %(after)s order by user_id limit %(limit)s),
        told as (
            insert into mails (kind, thread, bulk, recipient, arguments)
            select %(kind)s, 'registration ' || event_id || ' ' || person.public_id, true, person.email,
                   jsonb_build_object('organizer_id', organizer_id, 'event_id', event_id, 'user_id', person.public_id,
                                      'arrival', arrival, 'name', name, 'language', language)
              from portion
             cross join lateral (select public_id, email from users where users.id = portion.user_id limit 1) as person
             where status in ('registered', 'waitlisted') and settled_at <= %(announced_at)s and notify
             order by user_id)
        select max(user_id) from portion
        """,
        {"event_id": event_id, "kind": kind, "announced_at": announced_at, "after": after, "limit": limit},
    )


# For each fate the newest mails are read from an index, and of these the newest of all are taken.
FATES: LiteralString = """
    select mail.id, events.id as event_id, events.title, kind, recipient, mail.inserted_at, ended_at, due_at, outcome,
           attempts, error
      from unnest(%(fates)s::text[]) as fate
     cross join lateral (
        select * from mails
         where arguments ? 'organizer_id' and (arguments ->> 'organizer_id')::bigint = %(organizer_id)s
           and coalesce(outcome, 'waiting') = fate and id < coalesce(%(before)s, 9223372036854775807)
         order by id desc limit %(limit)s) as mail
     cross join lateral (
        select id, title from events
         where id = (mail.arguments ->> 'event_id')::bigint and organizer_id = %(organizer_id)s limit 1) as events
     order by mail.id desc limit %(limit)s
"""

IS_ABOUT_OWN_EVENT: LiteralString = """
    select exists (
        select from mails join events on events.id = (mails.arguments ->> 'event_id')::bigint
         where mails.id = %(mail_id)s and events.organizer_id = %(organizer_id)s)
"""


async def paragraphs(reader: Reader, event_id: int) -> dict[str, str]:
    """The paragraphs of an event, by kind."""
    return dict(await reader.tuples("select kind, text from mail_paragraphs where event_id = %(id)s", {"id": event_id}))


async def store_paragraphs(tx: Tx, event_id: int, texts: Mapping[str, str]) -> None:
    """Let these be all paragraphs of an event."""
    await tx.run(
        """
        with given as (select key as kind, value as text from json_each_text(%(texts)s::json)),
        deleted as (
            delete from mail_paragraphs
             where event_id = %(event_id)s and kind <> all(array(select kind from given)))
        insert into mail_paragraphs (event_id, kind, text) select %(event_id)s, kind, text from given
            on conflict (event_id, kind) do update set text = excluded.text
        """,
        {"event_id": event_id, "texts": msgspec.json.encode(texts).decode()},
    )


async def copy_paragraphs(tx: Tx, event_id: int, to: int) -> None:
    """Give the paragraphs of one event to another that has none."""
    await tx.run(
        """
        insert into mail_paragraphs (event_id, kind, text)
        select %(to)s, kind, text from mail_paragraphs where event_id = %(event_id)s
        """,
        {"event_id": event_id, "to": to},
    )


TEXT: LiteralString = """
    select coalesce(sum(octet_length(title) + octet_length(body) + coalesce(octet_length(address), 0)
                        + coalesce(octet_length(location_name), 0)
                        + (select coalesce(sum(octet_length(text)), 0) from mail_paragraphs
                            where event_id = events.id)), 0)
      from events where organizer_id = %(organizer_id)s
"""
"""The bytes of text in all events of an organizer, with the paragraphs of their mails."""
