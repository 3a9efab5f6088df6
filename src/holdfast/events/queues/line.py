"""The line: who joins gets the next ticket, and keeps it.

The visitors of everyone who waits for an answer are taken in by one statement, under a lock on each queue concerned.
Tickets are consecutive in order of arrival, and each belongs to one visitor, however often and wherever it joins: a
position is the ticket minus the last one released, and can only fall.
"""

from collections.abc import Sequence
from typing import LiteralString, NamedTuple

import msgspec
from msgspec import Struct
from prometheus_client import Counter

from holdfast.events.queues.model import JoinQueue
from holdfast.events.settings import Tx
from holdfast.kit.operation import Call

JOINED = Counter("holdfast_queue_joined", "Visitors who got a place in a queue.")

CHANNEL = "queues"
"""Where it is told that a queue may have somebody to release sooner than was thought."""


class Asked(Struct):
    """One visitor, as asked for by one call. Without a tenant it may be anybody's queue."""

    place: int
    tenant_id: int | None
    queue_id: int
    visitor_id: str


class Taken(NamedTuple):
    """What came of one call: what speaks against it, if anything; seconds until a place may be free; what it did."""

    problem: str | None
    retry_after: int
    is_new: bool
    is_first: bool


LOCK: LiteralString = """
    select from (select distinct queue_id, tenant_id
                   from json_to_recordset(%(asked)s::json) as asked (queue_id bigint, tenant_id bigint)) as asked
      join queues on queues.id = queue_id and (tenant_id is null or tenant_id = organizer_id)
     order by queues.id for no key update of queues
"""

# Who waits is in line, and who was released is still while the token can be picked up or is valid.
JOIN: LiteralString = """
    with asked as materialized (
        select asked.place, asked.queue_id, asked.visitor_id, queues.tickets,
               queues.tickets = queues.serving as was_empty,
               queues.max_queue_size - (queues.tickets - queues.serving) as room,
               ceil(%(interval)s::float8 / queues.release_rate)::integer as step, is_in,
               case when queues.id is null then 'not_found'
                    when asked.tenant_id <> queues.organizer_id then 'forbidden'
                    when is_in then null
                    when queues.ends_at <= now() then 'queue_ended'
                    when not queues.active then 'queue_inactive'
               end as problem
          from json_to_recordset(%(asked)s::json)
               as asked (place integer, tenant_id bigint, queue_id bigint, visitor_id text)
          left join lateral (select * from queues where id = asked.queue_id and deleted_at is null limit 1)
               as queues on true
          left join lateral (select * from queue_visitors
                              where queue_id = asked.queue_id and visitor_id = asked.visitor_id limit 1)
               as visitor on true
         cross join lateral (
            select coalesce(case when visitor.ticket > queues.serving then (queues.ends_at <= now()) is not true
                                 when visitor.token_id is not null
                                 then visitor.consumed_at is null and visitor.expires_at > now()
                                 else (select released_at from queue_releases
                                        where queue_id = visitor.queue_id and last_ticket >= visitor.ticket
                                        order by last_ticket limit 1)
                                      + queues.token_ttl_minutes * interval '1 minute' > now()
                            end, false) as is_in) as known),
    -- The first call of each visitor who needs a ticket, in order of arrival, while there is room.
    admitted as materialized (
        select * from (select *, row_number() over (partition by queue_id order by place) as nth
                         from (select distinct on (queue_id, visitor_id) * from asked
                                where problem is null and not is_in
                                order by queue_id, visitor_id, place) as first) as fresh
         where room is null or nth <= room),
    -- What was paced while nobody waited is spent: the first is released a step from now.
    counted as (
        update queues set tickets = queues.tickets + joined.visitors,
                          paced_at = case when joined.was_empty then clock_timestamp() else paced_at end
          from (select queue_id, was_empty, count(*) as visitors from admitted group by queue_id, was_empty) as joined
         where queues.id = joined.queue_id),
    stored as (
        insert into queue_visitors (queue_id, visitor_id, ticket)
        select queue_id, visitor_id, tickets + nth from admitted
            on conflict (queue_id, visitor_id) do update
           set ticket = excluded.ticket, joined_at = excluded.joined_at, token_id = null, issued_at = null,
               expires_at = null, use_count = 0, consumed_at = null)
    select case when asked.problem is null and not asked.is_in and admitted.place is null then 'queue_full'
                else asked.problem end,
           asked.step, coalesce(admitted.place = asked.place, false),
           coalesce(admitted.place = asked.place and admitted.nth = 1 and admitted.was_empty, false)
      from asked
      left join admitted using (queue_id, visitor_id)
     order by asked.place
"""


async def join(tx: Tx, calls: Sequence[Call[JoinQueue]]) -> list[Taken]:
    """Give every visitor who may have one a place, in the order of the calls."""
    asked = [
        Asked(place, call.caller.tenant_id, call.command.queue_id, call.command.visitor_id)
        for place, call in enumerate(calls)
    ]
    given = {"asked": msgspec.json.encode(asked).decode(), "interval": tx.settings.queue_interval}
    # The lock comes first, in a statement of its own: what the next one reads is the last that was committed.
    await tx.run(LOCK, given)
    return [Taken(*row) for row in await tx.tuples(JOIN, given)]
