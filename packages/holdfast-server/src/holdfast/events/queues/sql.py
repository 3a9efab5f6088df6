"""SQL statements on queues."""

import datetime as dt
from collections.abc import Sequence
from typing import Any, Literal, LiteralString, NamedTuple

import msgspec

from holdfast.events.draws.model import CHECK_COLUMNS
from holdfast.events.queues.model import GuardableEvent, GuardedEvent, QueueRow, RoomRow, UsedToken, VisitorStatus
from holdfast.events.queues.places import IS_LATE, OPENS_AT, PLACE, QUEUE_DRAWS
from holdfast.events.resources import Reader, Tx
from holdfast.events.users.model import PUBLIC_NAME
from holdfast.kit.postgres.pagination import OffsetPage, Page, page_of_long_items

SEATS: LiteralString = """
    left join lateral (
        select greatest(0, capacity - registered_count) as event_left,
               greatest(0, waitinglist_capacity - waitlisted_count) as event_waitlist_left,
               cancelled_at is not null or datetime <= now() as event_closed
          from events where id = queue.event_id limit 1) as seats on true
"""
"""Joins the seats of the event behind a queue to a row `queue`."""

QUEUE: LiteralString = """
select id, organizer_id, title, description, active, paused_at, starts_at, ends_at, max_queue_size, release_rate,
       target_url, event_id, token_ttl_minutes, public_log,
       case when ends_at <= now() then 0 else tickets - serving end as queue_length,
       draw_at, draw_round, draw_round_at, draw_entries, drawn_at, draw_void_at,
       tickets > 0 or coalesce(draw_at <= now(), false) as is_fixed, coalesce(draw_at <= now(), false) as is_closed
  from queues
"""

MAX_EVENT_CHOICES = 200
"""The most events among which an organizer chooses."""


async def find_queue(reader: Reader, id: int) -> QueueRow | None:
    return await reader.row(QueueRow, f"{QUEUE} where id = %(id)s and deleted_at is null", {"id": id})


async def lock_queue(tx: Tx, id: int) -> QueueRow | None:
    """Lock and read the queue: until this transaction ends, no other can change it, join it or release from it."""
    return await tx.row(QueueRow, f"{QUEUE} where id = %(id)s and deleted_at is null for no key update", {"id": id})


async def find_rooms(reader: Reader, ids: Sequence[int]) -> dict[int, RoomRow]:
    """The existing queues with these ids, by id."""
    rows = await reader.rows(
        RoomRow,
        f"""
        select queue.*, {PUBLIC_NAME} as organizer_name, organizers.slug as organizer_slug,
               event_left, event_waitlist_left, event_closed, {CHECK_COLUMNS}
          from ({QUEUE} where id = any(%(ids)s) and deleted_at is null) as queue
         cross join lateral (
            select proved_at, name, slug from users where id = queue.organizer_id limit 1) as organizers
        {QUEUE_DRAWS.check_of("queue")}
        {SEATS}
        """,
        {"ids": list(ids)},
    )
    return {row.id: row for row in rows}


async def list_queues(reader: Reader, organizer_id: int | None, command: OffsetPage) -> Page[QueueRow]:
    """The queues of one organizer; with None those of all organizers."""
    of_whom: LiteralString = "" if organizer_id is None else "and organizer_id = %(organizer_id)s"
    return await page_of_long_items(
        reader,
        QueueRow,
        QUEUE,
        {"organizer_id": organizer_id},
        command,
        table="queues",
        where=f"deleted_at is null {of_whom}",
        size="500 + coalesce(octet_length(description), 0) + octet_length(target_url)",
    )


async def read_clock(reader: Reader) -> dt.datetime:
    return await reader.value("select now()")


async def list_minutes(reader: Reader, id: int) -> list[tuple[int, int | None]]:
    """The last 30 minutes, oldest first: the number of released visitors, and the seconds that the last had waited."""
    rows = await reader.tuples(
        """
        select released, greatest(0, extract(epoch from last_at - joined_at))::bigint
          from generate_series(29, 0, -1) as ago
         cross join lateral (
            select coalesce(sum(last_ticket - first_ticket + 1), 0)::bigint as released,
                   max(last_ticket) as last_ticket, max(released_at) as last_at
              from queue_releases
             where queue_id = %(id)s and released_at > now() - (ago + 1) * interval '1 minute'
               and released_at <= now() - ago * interval '1 minute') as minute
          left join lateral (
            select joined_at from queue_visitors
             where queue_id = %(id)s and ticket = minute.last_ticket
               and ticket > (select case when drawn_at is null then 0 else draw_entries end
                               from queues where id = %(id)s)
             limit 1) as visitor on true
         order by ago desc
        """,
        {"id": id},
    )
    return [(released, waited) for released, waited in rows]


COUNT: LiteralString = "select count(*) from queues where organizer_id = %(organizer_id)s and deleted_at is null"


_EVENT: LiteralString = """
    select id, title, datetime, timezone, published, cancelled_at is not null or datetime <= now() as is_closed
      from events
"""


async def find_guardable_event(reader: Reader, id: int) -> GuardableEvent | None:
    return await reader.row(GuardableEvent, f"{_EVENT} where id = %(id)s", {"id": id})


async def list_open_events(reader: Reader, organizer_id: int) -> list[GuardableEvent]:
    """The events of an organizer that lie ahead and have no waiting room, soonest first."""
    return await reader.rows(
        GuardableEvent,
        f"""
        {_EVENT}
         where organizer_id = %(organizer_id)s and cancelled_at is null and datetime > now() and queue_id is null
         order by datetime, id limit %(limit)s
        """,
        {"organizer_id": organizer_id, "limit": MAX_EVENT_CHOICES},
    )


async def list_guarded_events(reader: Reader, organizer_id: int, queue_ids: Sequence[int]) -> list[GuardedEvent]:
    """The events behind some queues of an organizer."""
    return await reader.rows(
        GuardedEvent,
        """
        select queues.id as queue_id, event.title, is_closed
          from queues
         cross join lateral (select events.title, cancelled_at is not null or datetime <= now() as is_closed
                               from events where id = queues.event_id limit 1) as event
         where queues.id = any(%(queue_ids)s) and queues.organizer_id = %(organizer_id)s and deleted_at is null
        """,
        {"queue_ids": list(queue_ids), "organizer_id": organizer_id},
    )


async def find_event_problem(tx: Tx, id: int, organizer_id: int) -> Literal["unknown", "over", "guarded"] | None:
    """Lock an event, and return the reason why the organizer can put no waiting room before it; None if it can."""
    return await tx.value(
        """
        select case when events.id is null then 'unknown'
                    when cancelled_at is not null or datetime <= now() then 'over'
                    when queue_id is not null then 'guarded' end
          from (select %(id)s::bigint as id) as request
          left join lateral (select * from events where id = request.id and organizer_id = %(organizer_id)s
                              limit 1 for no key update) as events on true
        """,
        {"id": id, "organizer_id": organizer_id},
    )


async def insert_queue(tx: Tx, queue: dict[str, Any]) -> int | None:
    """The id of the new queue; None if no organizer has the id `organizer_id`."""
    return await tx.value(
        """
        insert into queues (organizer_id, title, description, active, paused_at, starts_at, ends_at, max_queue_size,
                            release_rate, target_url, event_id, token_ttl_minutes, public_log, draw_at, draw_round,
                            draw_round_at)
        select id, %(title)s, %(description)s, %(active)s, case when not %(active)s then now() end, %(starts_at)s,
               %(ends_at)s, %(max_queue_size)s, %(release_rate)s, %(target_url)s, %(event_id)s,
               %(token_ttl_minutes)s, %(public_log)s, %(draw_at)s, %(draw_round)s, %(draw_round_at)s
          from users where id = %(organizer_id)s and slug is not null and erased_at is null
        returning id
        """,
        queue,
    )


async def update_queue(tx: Tx, queue: dict[str, Any]) -> None:
    """Store a changed queue. Its unused time is lost if it is resumed, or if its rate or its draw changes."""
    await tx.run(
        """
        update queues
           set title = %(title)s, description = %(description)s, active = %(active)s, starts_at = %(starts_at)s,
               ends_at = %(ends_at)s, max_queue_size = %(max_queue_size)s, release_rate = %(release_rate)s,
               target_url = %(target_url)s, token_ttl_minutes = %(token_ttl_minutes)s, public_log = %(public_log)s,
               draw_at = %(draw_at)s, draw_round = %(draw_round)s, draw_round_at = %(draw_round_at)s,
               paused_at = case when not %(active)s then coalesce(paused_at, now()) end,
               paced_at = case when release_rate <> %(release_rate)s or (%(active)s and not active)
                                    or draw_at is distinct from %(draw_at)s
                               then clock_timestamp() else paced_at end,
               rated_at = case when release_rate <> %(release_rate)s then clock_timestamp() else rated_at end
         where id = %(id)s
        """,
        queue,
    )


async def delete_queue(tx: Tx, id: int) -> None:
    await tx.run("update queues set deleted_at = now() where id = %(id)s", {"id": id})


async def delete_queues(tx: Tx, organizer_id: int) -> None:
    """Delete the queues of an organizer, locked in the order of their ids."""
    await tx.run(
        """
        update queues set deleted_at = now()
         where id = any(array(select id from queues where organizer_id = %(id)s and deleted_at is null
                               order by id for no key update))
        """,
        {"id": organizer_id},
    )


# Lateral joins with `limit 1` make each look-up an index look-up, however large the tables are.
VISITOR_STATUSES: LiteralString = f"""
    select queues.organizer_id, queues.serving, queues.release_rate, queues.target_url, queues.event_id,
           greatest(0, ceil(extract(epoch from {OPENS_AT} - now())))::bigint,
           extract(epoch from now() - visitor.joined_at)::bigint, visitor.ticket, visitor_place.place,
           coalesce({IS_LATE}, false), visitor.token_id,
           extract(epoch from visitor.issued_at)::bigint, extract(epoch from visitor.expires_at)::bigint,
           case when visitor.ticket is null then 'unknown'
                when visitor_place.place > queues.serving
                then case when queues.ends_at <= now() then 'ended' else 'waiting' end
                when visitor.token_id is not null
                then case when visitor.consumed_at is null and visitor.expires_at > now()
                          then 'released' else 'past' end
                when (select released_at from queue_releases
                       where queue_id = queues.id and last_ticket >= visitor_place.place order by last_ticket limit 1)
                     + queues.token_ttl_minutes * interval '1 minute' > now() then 'released'
                else 'past' end
      from json_to_recordset(%(requests)s::json) as request (index integer, queue_id bigint, visitor_id text)
      left join lateral (select * from queues where id = request.queue_id and deleted_at is null limit 1)
           as queues on true
      left join lateral (select * from queue_visitors
                          where queue_id = queues.id and visitor_id = request.visitor_id limit 1) as visitor on true
     cross join lateral (select {PLACE} as place) as visitor_place
     order by request.index
"""


class LoggedPlace(NamedTuple):
    """The place of a visitor that a log has. `nonce`: of the commitment to it."""

    ticket: int
    joined_at: dt.datetime
    nonce: str


async def find_logged_place(reader: Reader, queue_id: int, visitor_id: str) -> LoggedPlace | None:
    """The place of a visitor; None: it is in no log."""
    return await reader.row(
        LoggedPlace,
        """
        select ticket, joined_at, nonce::text from queue_visitors
         where queue_id = %(queue_id)s and visitor_id = %(visitor_id)s and nonce is not null
        """,
        {"queue_id": queue_id, "visitor_id": visitor_id},
    )


async def find_visitor_statuses(
    tx: Tx, keys: Sequence[tuple[int, str]], *, can_commit_early: bool
) -> list[VisitorStatus | None]:
    """The status of each (queue, visitor), in the order of `keys`; None if the queue does not exist.

    can_commit_early    whether this statement may commit: most visitors get no token, so nothing follows
    """
    requests = [{"index": index, "queue_id": queue, "visitor_id": name} for index, (queue, name) in enumerate(keys)]
    read = tx.tuples_and_commit if can_commit_early else tx.tuples
    rows = await read(VISITOR_STATUSES, {"requests": msgspec.json.encode(requests).decode()})
    return [None if row[0] is None else VisitorStatus(*pair, *row) for pair, row in zip(keys, rows, strict=True)]


async def wait_for_visitors(tx: Tx, keys: Sequence[tuple[int, str]]) -> None:
    """Lock visitors; wait for those that other transactions have locked."""
    await tx.run(
        """
        select from queue_visitors
          join json_to_recordset(%(requests)s::json) as request (queue_id bigint, visitor_id text)
               using (queue_id, visitor_id)
         order by queue_id, visitor_id for no key update of queue_visitors
        """,
        {"requests": msgspec.json.encode([{"queue_id": queue, "visitor_id": name} for queue, name in keys]).decode()},
    )


async def store_tokens(tx: Tx, new_tokens: Sequence[tuple[VisitorStatus, str]]) -> set[tuple[int, str]]:
    """Store a token id for each released visitor without one, and set the id and the times in its `VisitorStatus`.

    A visitor who was deleted meanwhile gets no token. Returns the visitors that other transactions have locked.
    """
    rows = [
        {"queue_id": visitor.queue_id, "visitor_id": visitor.visitor_id, "ticket": visitor.ticket, "token_id": token_id}
        for visitor, token_id in new_tokens
    ]
    settled = await tx.tuples(
        """
        with request as materialized (
            select distinct on (queue_id, visitor_id) *
              from json_to_recordset(%(requests)s::json)
                   as request (queue_id bigint, visitor_id text, ticket bigint, token_id text)
             order by queue_id, visitor_id),
        free_visitor as materialized (
            select visitor.* from request
             cross join lateral (select queue_id, visitor_id from queue_visitors
                                  where queue_id = request.queue_id and visitor_id = request.visitor_id
                                    and ticket = request.ticket
                                  limit 1 for no key update skip locked) as visitor),
        released_visitor as (
            update queue_visitors as visitor
               set token_id = coalesce(visitor.token_id, request.token_id),
                   issued_at = coalesce(visitor.issued_at, date_trunc('second', now())),
                   expires_at = coalesce(visitor.expires_at,
                                         date_trunc('second', now()) + queues.token_ttl_minutes * interval '1 minute')
              from free_visitor
              join request using (queue_id, visitor_id)
              join queues on queues.id = queue_id
             where visitor.queue_id = free_visitor.queue_id and visitor.visitor_id = free_visitor.visitor_id
            returning visitor.queue_id, visitor.visitor_id, visitor.token_id,
                      extract(epoch from visitor.issued_at)::bigint as issued_at,
                      extract(epoch from visitor.expires_at)::bigint as expires_at)
        select request.queue_id, request.visitor_id, released_visitor.token_id, issued_at, expires_at,
               free_visitor.queue_id is null
               and exists (select from queue_visitors as visitor
                            where visitor.queue_id = request.queue_id and visitor.visitor_id = request.visitor_id
                              and visitor.ticket = request.ticket)
          from request
          left join free_visitor using (queue_id, visitor_id)
          left join released_visitor using (queue_id, visitor_id)
        """,
        {"requests": msgspec.json.encode(rows).decode()},
    )
    locked = {(queue_id, visitor_id) for queue_id, visitor_id, *_, is_locked in settled if is_locked}
    by_visitor = {(queue_id, visitor_id): token for queue_id, visitor_id, *token, _ in settled if token[0]}
    for visitor, _ in new_tokens:
        if token := by_visitor.get(visitor.key):
            visitor.token_id, visitor.issued_at, visitor.expires_at = token
    return locked


async def use_token(tx: Tx, queue_id: int, visitor_id: str, token_id: str, *, consume: bool) -> UsedToken | None:
    """Count a use of a valid token; with `consume` it is the last use. None if the token is not or no longer valid."""
    return await tx.row(
        UsedToken,
        """
        update queue_visitors as visitor
           set use_count = use_count + 1, consumed_at = case when %(consume)s then now() end
          from queues
         where visitor.queue_id = %(queue_id)s and visitor_id = %(visitor_id)s and token_id = %(token_id)s
           and consumed_at is null and expires_at > now() and queues.id = visitor.queue_id and deleted_at is null
        returning target_url, event_id, use_count
        """,
        {"queue_id": queue_id, "visitor_id": visitor_id, "token_id": token_id, "consume": consume},
    )


async def is_used_up(reader: Reader, queue_id: int, visitor_id: str, token_id: str) -> bool:
    """Whether the token was consumed."""
    return bool(
        await reader.value(
            """
            select true from queue_visitors
             where queue_id = %(queue_id)s and visitor_id = %(visitor_id)s and token_id = %(token_id)s
               and consumed_at is not null
            """,
            {"queue_id": queue_id, "visitor_id": visitor_id, "token_id": token_id},
        )
    )
