"""Joining: a visitor who joins a queue gets its next ticket, and keeps it until the release.

One statement stores all visitors that join at the same time, under a lock on each of their queues. Tickets are
consecutive in order of arrival. A waiting visitor has one ticket, even if it joins again or through another process;
one that comes back after its release gets a new one. Its position is its place, the ticket if nothing was drawn, minus
the last released place. It can only fall, except before a draw: then each visitor who joins raises it.
"""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import LiteralString, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from prometheus_client import Counter

from holdfast.events.log.model import new_nonces
from holdfast.events.problems import QUEUE_ENDED, QUEUE_FULL, QUEUE_INACTIVE
from holdfast.events.queues.model import QUEUES_CHANNEL
from holdfast.events.queues.places import PLACE
from holdfast.events.resources import Tx
from holdfast.events.settings import Settings
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, Problem
from holdfast.kit.postgres.group_commit import LockedRow

JOINED_COUNT = Counter("holdfast_queue_joined", "Visitors who got a place in a queue.")


class JoinRequest(Struct):
    """A visitor who asks for a ticket of a queue. With the tenant None it may join the queue of any organizer.

    index    the index in the batch
    """

    index: int
    tenant_id: int | None
    queue_id: int
    visitor_id: str


class JoinResult(NamedTuple):
    """The result for one visitor.

    code           the code of the refusal, or of the locked row; None: the visitor has a ticket
    organizer_id   the organizer of the queue
    retry_after    seconds until the queue may have room
    is_new         whether this call stored the ticket
    is_first       whether it is the first ticket in an empty queue
    ticket         the ticket of the visitor; None: refused, or not read yet (`is_earlier`)
    joined_at      when the visitor joined, also if that was before; None: as with `ticket`
    nonce          the nonce of its commitment; None: as with `ticket`, or the ticket is in no log
    """

    code: str | None
    organizer_id: int | None
    retry_after: int
    is_new: bool
    is_first: bool
    ticket: int | None
    joined_at: dt.datetime | None
    nonce: str | None

    @property
    def is_earlier(self) -> bool:
        """Whether the visitor had a ticket before: the statement that stores tickets does not give this one."""
        return self.code is None and self.ticket is None


LOCK_QUEUES: LiteralString = """
    select queues.id from queues
     where id = any(%(queue_ids)s)
       and exists (select from unnest(%(queue_ids)s::bigint[], %(tenant_ids)s::bigint[]) as call (queue_id, tenant_id)
                    where queue_id = queues.id and (tenant_id is null or tenant_id = organizer_id))
     order by queues.id for no key update
"""
WAIT_FOR_VISITORS: LiteralString = """
    select from queue_visitors
      join (select distinct queue_id, visitor_id
              from json_to_recordset(%(requests)s::json) as request (queue_id bigint, visitor_id text)) as request
           using (queue_id, visitor_id)
     order by queue_id, visitor_id for no key update of queue_visitors
"""
# The ids of these queues are kept for the next statement, which is sent before this one has answered.
LOCK_ALL_QUEUES: LiteralString = f"""
    select set_config('holdfast.locked_queues', coalesce(string_agg(id::text, ','), ''), true)
      from ({LOCK_QUEUES}) as own_queue
"""
LOCK_FREE_QUEUES: LiteralString = f"""
    select set_config('holdfast.locked_queues', coalesce(string_agg(id::text, ','), ''), true)
      from ({LOCK_QUEUES} skip locked) as own_queue
"""

# `is_in`: a visitor is in the queue while it waits and, after its release, while its token can be got or is valid.
_CHECK_ALL: LiteralString = f"""
        select request.index, request.queue_id, request.visitor_id, is_in,
               case when comes_again and code is null and is_free is null then 'visitor_locked' else code end as code
          from json_to_recordset(%(requests)s::json)
               as request (index integer, tenant_id bigint, queue_id bigint, visitor_id text)
          left join joined_queue as queues on queues.id = request.queue_id
          left join lateral (select * from queue_visitors
                              where queue_id = request.queue_id and visitor_id = request.visitor_id limit 1)
               as visitor on true
         -- Without `offset 0` PostgreSQL writes an expression into each of its uses.
         cross join lateral (select {PLACE} as place offset 0) as visitor_place
         cross join lateral (
            select coalesce(case when place > queues.serving then (queues.ends_at <= now()) is not true
                                 when visitor.token_id is not null
                                 then visitor.consumed_at is null and visitor.expires_at > now()
                                 else (select released_at from queue_releases
                                        where queue_id = visitor.queue_id and last_ticket >= place
                                        order by last_ticket limit 1)
                                      + queues.token_ttl_minutes * interval '1 minute' > now()
                            end, false) as is_in offset 0) as presence
         cross join lateral (
            select visitor.ticket is not null and not is_in as comes_again,
                   case when queues.id is null then 'not_found'
                        when request.tenant_id <> queues.organizer_id then 'forbidden'
                        when is_in then null
                        else queues.closed_code
                   end as code offset 0) as verdict
          -- A visitor who comes again gets a new ticket in the row there is.
          left join lateral (select true as is_free from queue_visitors
                              where comes_again and code is null
                                and queue_id = request.queue_id and visitor_id = request.visitor_id
                              limit 1 for no key update skip locked) as free_visitor on true"""

_CHECK_NEW: LiteralString = """
        select request.index, request.queue_id, request.visitor_id, false as is_in,
               case when queues.id is null then 'not_found'
                    when request.tenant_id <> queues.organizer_id then 'forbidden'
                    when visitor.is_known then 'known'
                    else queues.closed_code
               end as code
          from json_to_recordset(%(requests)s::json)
               as request (index integer, tenant_id bigint, queue_id bigint, visitor_id text)
          left join joined_queue as queues on queues.id = request.queue_id
          left join lateral (select true as is_known from queue_visitors
                              where queue_id = request.queue_id and visitor_id = request.visitor_id limit 1)
               as visitor on true"""


def _store_statement(check: LiteralString, on_conflict: LiteralString) -> LiteralString:
    """SQL that gives tickets to visitors.

    check          SQL: the requests, each with the code of its refusal; null: it gets a ticket
    on_conflict    SQL: what happens to a visitor who has a row already
    """
    return f"""
    -- Many visitors join few queues.
    with joined_queue as materialized (
        select *, tickets = serving as was_empty, max_queue_size - (tickets - serving) as places_left,
               ceil(%(interval)s::float8 / release_rate)::integer as step,
               case when ends_at <= now() then 'queue_ended'
                    when not active then 'queue_inactive'
                    when id <> all(string_to_array(current_setting('holdfast.locked_queues'), ',')::bigint[])
                    then 'queue_locked'
               end as closed_code,
               (select id from logs where queue_id = queues.id and closed_at is null) as log_id
          from queues where id = any(%(queue_ids)s) and deleted_at is null),
    checked_request as materialized ({check}),
    -- The first call of each visitor who needs a ticket, in order of arrival, while there is room.
    new_ticket as materialized (
        select index, queue_id, visitor_id, log_id, was_empty, nth, tickets + nth as ticket,
               clock_timestamp() as joined_at,
               case when log_id is not null
                    then encode(substr(%(nonces)s::bytea, 16 * index + 1, 16), 'hex')::uuid end as nonce
          from (select *, row_number() over (partition by queue_id order by index) as nth
                  from (select distinct on (queue_id, visitor_id) index, queue_id, visitor_id from checked_request
                         where code is null and not is_in
                         order by queue_id, visitor_id, index) as first_call) as numbered_call
          join joined_queue on joined_queue.id = queue_id
         where places_left is null or nth <= places_left),
    -- Time without waiting visitors does not count: the first visitor is released one step from now.
    counted_queue as (
        update queues set tickets = queues.tickets + new_tickets.visitors,
                          paced_at = case when new_tickets.was_empty then clock_timestamp() else paced_at end
          from (select queue_id, was_empty, count(*) as visitors
                  from new_ticket group by queue_id, was_empty) as new_tickets
         where queues.id = new_tickets.queue_id),
    stored_visitor as (
        insert into queue_visitors (queue_id, visitor_id, ticket, joined_at, nonce)
        select queue_id, visitor_id, ticket, joined_at, nonce from new_ticket
        {on_conflict}),
    log_arrivals as (
        insert into log_pending (log_id, kind, first_number, received_at, visitor_ids, nonces)
        select log_id, 'arrivals', min(ticket), array_agg(joined_at order by ticket),
               array_agg(visitor_id order by ticket), array_agg(nonce order by ticket)
          from new_ticket where log_id is not null group by log_id)
    select case when checked_request.code is null and not checked_request.is_in and new_ticket.index is null
                then 'queue_full' else checked_request.code end,
           joined_queue.organizer_id, joined_queue.step, coalesce(new_ticket.index = checked_request.index, false),
           coalesce(new_ticket.index = checked_request.index and new_ticket.nth = 1 and new_ticket.was_empty, false),
           new_ticket.ticket, new_ticket.joined_at, new_ticket.nonce::text
      from checked_request
      left join joined_queue on joined_queue.id = checked_request.queue_id
      left join new_ticket
             on checked_request.code is null
            and (new_ticket.queue_id, new_ticket.visitor_id) = (checked_request.queue_id, checked_request.visitor_id)
     order by checked_request.index
"""


STORE_NEW_VISITORS = _store_statement(_CHECK_NEW, on_conflict="")
"""Gives tickets to visitors who never had one of their queue. The code of others is `known`."""

STORE_VISITORS = _store_statement(
    _CHECK_ALL,
    on_conflict="""
            on conflict (queue_id, visitor_id) do update
           set ticket = excluded.ticket, joined_at = excluded.joined_at, nonce = excluded.nonce, token_id = null,
               issued_at = null, expires_at = null, use_count = 0, consumed_at = null""",
)
"""Gives tickets to visitors of any kind."""

STORED_TICKETS: LiteralString = """
    select visitor.ticket, visitor.joined_at, visitor.nonce::text
      from json_to_recordset(%(requests)s::json) as request (index integer, queue_id bigint, visitor_id text)
      left join lateral (select ticket, joined_at, nonce from queue_visitors
                          where queue_id = request.queue_id and visitor_id = request.visitor_id limit 1)
           as visitor on true
     order by request.index
"""
"""The tickets of visitors who had one before."""


async def give_tickets(
    tx: Tx, requests: Sequence[JoinRequest], *, waits: bool = True, can_commit_early: bool = False
) -> list[JoinResult]:
    """Give a ticket to every visitor who may have one, in the order of the requests.

    waits               whether to wait for queues and visitors that other transactions have locked
    can_commit_early    whether each statement may commit by itself: what follows is in another transaction
    """
    if waits:
        await tx.run(WAIT_FOR_VISITORS, {"requests": msgspec.json.encode(requests).decode()})
        results = await _store(tx, LOCK_ALL_QUEUES, STORE_VISITORS, requests, can_commit_early)
    else:
        results = await _store(tx, LOCK_FREE_QUEUES, STORE_NEW_VISITORS, requests, can_commit_early)
        known_indexes = [index for index, result in enumerate(results) if result.code == "known"]
        if known_indexes:
            retried_requests = [
                replace(requests[index], index=retry_index) for retry_index, index in enumerate(known_indexes)
            ]
            retry_results = await _store(tx, LOCK_FREE_QUEUES, STORE_VISITORS, retried_requests, can_commit_early)
            for index, result in zip(known_indexes, retry_results, strict=True):
                results[index] = result
    if earlier_requests := [requests[index] for index, result in enumerate(results) if result.is_earlier]:
        find = tx.tuples_and_commit if can_commit_early else tx.tuples
        stored_tickets = iter(await find(STORED_TICKETS, {"requests": msgspec.json.encode(earlier_requests).decode()}))
        results = [
            JoinResult(*result[:-3], *next(stored_tickets)) if result.is_earlier else result for result in results
        ]
    JOINED_COUNT.inc(sum(result.is_new for result in results))
    if any(result.is_first for result in results):
        await tx.notify(QUEUES_CHANNEL)
    return results


async def _store(
    tx: Tx, lock: LiteralString, statement: LiteralString, requests: Sequence[JoinRequest], can_commit_early: bool
) -> list[JoinResult]:
    queues = {(request.queue_id, request.tenant_id) for request in requests}
    params = {
        "requests": msgspec.json.encode(requests).decode(),
        "queue_ids": [queue_id for queue_id, _ in queues],
        "tenant_ids": [tenant_id for _, tenant_id in queues],
        "interval": tx.resources.settings.queue_interval,
        "nonces": new_nonces(len(requests)),
    }
    # The lock is a separate statement, so that the next one sees all commits before the lock was granted.
    await tx.run(lock, params)
    rows = await (tx.tuples_and_commit if can_commit_early else tx.tuples)(statement, params)
    return [JoinResult(*row) for row in rows]


def refusal(result: JoinResult, request: JoinRequest, settings: Settings) -> Problem | LockedRow | None:
    """The problem for a result; None for a visitor who has a ticket."""
    if result.code is None:
        return None
    if result.code == "queue_locked":
        return LockedRow(request.queue_id, result.organizer_id)
    if result.code == "visitor_locked":
        return LockedRow((request.queue_id, request.visitor_id), result.organizer_id)
    return REFUSALS[result.code](request.queue_id, result.retry_after, settings.queue_interval)


REFUSALS: Mapping[str, Callable[[int, int, int], Problem]] = {
    "not_found": lambda queue_id, retry_after, interval: NOT_FOUND(f"No queue has the id {queue_id}."),
    "forbidden": lambda queue_id, retry_after, interval: FORBIDDEN(f"Queue {queue_id} belongs to another organizer."),
    "queue_ended": lambda queue_id, retry_after, interval: QUEUE_ENDED(f"Queue {queue_id} has ended."),
    "queue_inactive": lambda queue_id, retry_after, interval: QUEUE_INACTIVE(
        f"Queue {queue_id} is paused.", retry_after=interval
    ),
    "queue_full": lambda queue_id, retry_after, interval: QUEUE_FULL(
        f"Queue {queue_id} is full.", retry_after=retry_after
    ),
}
"""The problem for each code of the statement. The arguments are the id of the queue, the seconds until it may have
room, and the seconds of an interval."""
