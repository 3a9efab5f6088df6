"""Entering: registrations of events that open with a draw become entries of its list (see `draws.py`)."""

from collections.abc import Sequence

from holdfast.events.registrations.pending_batch import OLDEST, SettledBatch
from holdfast.events.resources import Tx


async def enter(tx: Tx, event_ids: Sequence[int], cut: str, limit: int) -> SettledBatch:
    """Give tickets to the oldest pending registrations of locked events that take entries, in one statement.

    A ticket is the next number of the log of the event. Registrations behind a locked one of the same event wait.
    """
    rows = await tx.tuples(
        f"""
        with {OLDEST},
        event as materialized (
            select logs.event_id as id, logs.id as log_id, arrivals from logs
             where event_id = any(%(event_ids)s) and closed_at is null),
        entry as materialized (
            select oldest.event_id, oldest.user_id, arrivals + rank as ticket
              from oldest join event on event.id = oldest.event_id
             where is_next
             order by oldest.event_id, rank),
        settled as (
            update registrations set status = 'in_draw', settled_at = now(), log_number = ticket
              from entry
             where registrations.event_id = entry.event_id and registrations.user_id = entry.user_id
         returning registrations.event_id, registrations.user_id, received_at, nonce, log_number),
        entered as (
            insert into event_entries (event_id, ticket, user_id, entered_at)
            select event_id, log_number, user_id, received_at from settled order by event_id, log_number),
        arrived as (
            insert into log_pending (log_id, kind, first_number, received_at, user_ids, nonces, cut)
            select log_id, 'arrivals', first_number, received_at, user_ids, nonces,
                   case when (select count(*) from pending) < %(limit)s
                             and event_id not in (select event_id from oldest where not is_next)
                        then %(cut)s::timestamptz end
              from (select event_id, min(log_number) as first_number,
                           array_agg(received_at order by log_number) as received_at,
                           array_agg(user_id order by log_number) as user_ids,
                           array_agg(nonce order by log_number) as nonces
                      from settled group by event_id) as arrivals
              join event on event.id = event_id
         returning log_id, cardinality(user_ids) as arrivals),
        numbered as (
            update logs set arrivals = logs.arrivals + arrived.arrivals from arrived where logs.id = arrived.log_id)
        select count(*), null from settled
        union all
        select 0, event_id from oldest where not is_next group by event_id
        """,
        {"event_ids": list(event_ids), "cut": cut, "limit": limit},
    )
    count = sum(count for count, _ in rows)
    return SettledBatch({"in_draw": count} if count else {}, [event_id for _, event_id in rows if event_id is not None])
