"""The draws of queues. A ticket never changes. `queue_places` has the place of each drawn ticket, and later tickets are
their own places.
"""

from holdfast.events.draws.subject import DrawSubject
from holdfast.events.queues.joining import CHANNEL

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
        select %(id)s, (ticket - 1) / 256, array_agg(place::integer order by ticket) from drawn group by 2""",
    on_drawn=", paced_at = clock_timestamp()",
    channel=CHANNEL,
)
