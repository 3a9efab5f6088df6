"""SQL on the places of visitors, which a draw changes."""

from typing import LiteralString

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
"""The time before which nobody is released from `queues`; null: none."""
