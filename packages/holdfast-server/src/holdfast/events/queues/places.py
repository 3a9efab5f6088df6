"""SQL for the places of visitors, which a draw changes.

A ticket never changes: `queue_places` has the place of each drawn ticket, and later tickets are their own places.
"""

from typing import LiteralString

from holdfast.events.draws.model import DrawSubject
from holdfast.events.queues.model import QUEUES_CHANNEL

IS_LATE: LiteralString = """
    (queues.draw_at is not null
     and case when queues.draw_entries is null then visitor.joined_at >= queues.draw_at
              else visitor.ticket > queues.draw_entries end)
"""
"""Whether a `visitor` of `queues` came after the list of a draw had closed."""

PLACE: LiteralString = f"""
    case when visitor.ticket is null or queues.draw_at is null or {IS_LATE} then visitor.ticket
         when queues.drawn_at is null then coalesce(queues.draw_entries, queues.tickets)
         else (select places[1 + (visitor.ticket - 1) %% 256] from queue_places
                where queue_id = queues.id and number = (visitor.ticket - 1) / 256) end
"""
"""The place in line of a `visitor` of `queues`: its ticket or the drawn place. Before the draw: the end of the list."""

OPENS_AT: LiteralString = """
    greatest(queues.starts_at, case when queues.drawn_at is null then queues.draw_round_at end)
"""
"""The time before which no visitor is released from `queues`; null: none."""

QUEUE_DRAWS = DrawSubject(
    noun="queue",
    table="queues",
    is_live="deleted_at is null",
    entries="""
        (select ticket from queue_visitors where queue_id = queues.id and joined_at < draw_at
          order by ticket desc limit 1)""",
    is_complete="true",
    order="""
        insert into queue_places (queue_id, number, places)
        select %(id)s, (ticket - 1) / 256, array_agg(place::integer order by ticket) from drawn_ticket group by 2""",
    on_drawn=", paced_at = clock_timestamp()",
    channel=QUEUES_CHANNEL,
)
