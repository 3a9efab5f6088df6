"""The draws of events: who registers before `draw_at` is an entry, and gets a place by the draw.

A registration of an event that takes entries is settled as `in_draw`: it gets the next number of the log, which is its
ticket, and the log has its arrival without an outcome. So the list of a draw is the numbers 1 to n. Who comes while the
list waits for its draw gets a ticket too, and a place behind all who are drawn.
"""

from typing import LiteralString

from holdfast.events.draws.subject import DrawSubject
from holdfast.events.registrations.intake_cut import wait_for_cut
from holdfast.events.resources import Database

DRAWN_PLACE: LiteralString = """
    case when events.drawn_at is not null and registration.log_number <= events.draw_entries
              and registration.status not in ('pending', 'in_draw')
         then (extract(epoch from registration.received_at - events.draw_at) * 1000000)::bigint end
"""
"""SQL for the place of a `registration` in the order that was drawn for one of `events`; null: it was not drawn."""

WAIT_SECONDS = 0.2
"""Seconds for which the freeze of a list waits for accepting transactions. It is tried again."""


async def is_intake_stored(database: Database) -> bool:
    """Whether all registrations that were stamped before this call are committed. False: that takes longer."""
    return await database.read(lambda reader: wait_for_cut(reader, WAIT_SECONDS)) is not None


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
    wait=is_intake_stored,
)
