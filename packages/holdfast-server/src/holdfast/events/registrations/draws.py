"""The draws of events: who registers before `draw_at` is an entry, and gets a place by the draw.

A registration of an event that takes entries is settled as `in_draw`: it gets the next number of the log, which is its
ticket, and the log has its arrival without an outcome. So the list of a draw is the numbers 1 to n. Who comes while the
list waits for its draw gets a ticket too, and a place behind all who are drawn.

An entry is confirmed if the person had shown before `draw_at` that the address is theirs (`users.proved_at`). Confirmed
entries come before all others. The log says which they are only when the list has closed: nobody learns from it whether
an address that is typed into a form is known to the service.
"""

import datetime as dt
from typing import LiteralString

from holdfast.events.draws.subject import DrawSubject
from holdfast.events.registrations.intake_cut import wait_for_cut
from holdfast.events.resources import Database, Tx

DRAWN_PLACE: LiteralString = """
    case when events.drawn_at is not null and registration.log_number <= events.draw_entries
              and registration.status not in ('pending', 'in_draw')
         then (extract(epoch from registration.received_at - events.draw_at) * 1000000)::bigint end
"""
"""SQL for the place of a `registration` in the order that was drawn for one of `events`; null: it was not drawn."""

IS_CONFIRMED: LiteralString = """
    coalesce(case when events.draw_confirmed is null then registration.proved_at < events.draw_at
                  else exists (select from event_confirmations
                                where event_id = events.id and number = (registration.log_number - 1) / 1000
                                  and registration.log_number = any(tickets)) end, false)
"""
"""SQL for whether a `registration`, with `proved_at` of its person, is a confirmed entry of the draw of `events`."""

WAIT_SECONDS = 0.2
"""Seconds for which the freeze of a list waits for accepting transactions. It is tried again."""


async def is_intake_stored(database: Database) -> bool:
    """Whether all registrations that were stamped before this call are committed. False: that takes longer."""
    return await database.read(lambda reader: wait_for_cut(reader, WAIT_SECONDS)) is not None


async def confirm_entries(tx: Tx, event_id: int, now: dt.datetime) -> None:
    """Store which entries of a closed list are confirmed, and tell the log."""
    await tx.run(
        """
        with confirmed as materialized (
            select (ticket - 1) / 1000 as number, array_agg(ticket::integer order by ticket) as tickets
              from events join event_entries on event_id = events.id and entered_at < draw_at
              join users on users.id = user_id and proved_at < draw_at
             where events.id = %(id)s group by 1),
        stored as (
            insert into event_confirmations (event_id, number, tickets) select %(id)s, number, tickets from confirmed),
        logged as (
            insert into log_pending (log_id, kind, at, details)
            select logs.id, 'confirmations', %(now)s, jsonb_build_object('numbers', tickets)
              from confirmed join logs on event_id = %(id)s and closed_at is null order by number)
        update events set draw_confirmed = coalesce((select sum(cardinality(tickets)) from confirmed), 0)
         where id = %(id)s
        """,
        {"id": event_id, "now": now},
    )


EVENT_DRAWS = DrawSubject(
    noun="event",
    table="events",
    is_live="cancelled_at is null and published",
    entries="""
        (select ticket from event_entries where event_id = events.id and entered_at < draw_at
          order by ticket desc limit 1)""",
    is_complete="""
        not exists (select from registrations
                     where event_id = events.id and status = 'pending' and received_at < draw_at)""",
    order="""
        insert into event_drawn_tickets (event_id, number, tickets)
        select %(id)s, (place - 1) / 256, array_agg(ticket::integer order by place) from drawn group by 2""",
    on_drawn="",
    confirmed="select unnest(tickets)::bigint from event_confirmations where event_id = %(id)s",
    is_confirmed="draw_confirmed is not null",
    confirm=confirm_entries,
    wait=is_intake_stored,
)
