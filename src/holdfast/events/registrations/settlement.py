"""Settlement: registrations that were accepted get their outcome, strictly in order of arrival.

Any number of processes accept registrations at the same time, and any of them may settle. Three steps keep the order:

1. An accepting transaction takes the intake lock, shared, before it stamps `received_at`.
2. A settling transaction takes the same lock, exclusive, only to read the clock. This time is the *cut*. Every
   registration stamped before the cut is committed then, and every later one gets a time after the cut.
3. It locks the events concerned and settles all registrations up to the cut, in order, in one statement.

So a later registration cannot get a seat while an earlier one is still being stored.
"""

import asyncio
import contextlib
from collections.abc import Sequence

from prometheus_client import Counter

from holdfast.events.pricing.changes import reprice
from holdfast.events.registrations import intake
from holdfast.events.resources import Database, Reader, Tx

SETTLED = Counter("holdfast_registrations_settled", "Registrations settled.", ["outcome"])

CHANNEL = "registrations_pending"
BATCH = 1000
PATROL_SECONDS = 5
"""Seconds between checks without a notification, in case one was lost with a connection."""


async def run(database: Database) -> None:
    """Settle registrations whenever some are pending, until cancelled."""
    waiting = asyncio.Event()
    with database.listen(CHANNEL, lambda _: waiting.set()):
        while True:
            waiting.clear()
            await settle(database)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(waiting.wait(), PATROL_SECONDS)


async def settle(database: Database, *, batch: int = BATCH) -> int:
    """Settle all registrations that are pending now. Returns how many were settled."""
    total = 0
    while cut := await database.read(read_cut):
        before = total
        while outcomes := await database.transact(lambda tx, cut=cut: _settle_batch(tx, cut, batch)):
            for outcome, count in outcomes.items():
                SETTLED.labels(outcome).inc(count)
            settled = sum(outcomes.values())
            total += settled
            if settled < batch:
                break
        if total == before:
            # Another process has settled them, or the clock was set back: wait before the next check.
            break
    return total


async def _settle_batch(tx: Tx, cut: str, batch: int) -> dict[str, int]:
    events = await lock_events(tx, cut, batch)
    outcomes = await give_places(tx, events, cut, batch) if events else {}
    if "registered" in outcomes:
        await reprice(tx, events, "registration")
    return outcomes


async def read_cut(reader: Reader) -> str | None:
    """The cut: the time up to which every accepted registration is committed. None when no registration is pending.

    The exclusive lock waits for accepting transactions that are running; later ones get a time after the cut.
    """
    if not await reader.value("select exists (select from registrations where status = 'pending')"):
        return None
    return await reader.value(
        """
        with locked as materialized (select pg_advisory_xact_lock(%(lock)s))
        select clock_timestamp()::text from locked
        """,
        {"lock": intake.LOCK},
    )


async def lock_events(tx: Tx, cut: str, limit: int) -> list[int]:
    """Lock the events of the oldest pending registrations, in the order of their ids to avoid deadlocks."""
    rows = await tx.tuples(
        """
        select id from events
         where id in (select event_id from (select event_id from registrations
                                             where status = 'pending' and received_at <= %(cut)s::timestamptz
                                             order by received_at, arrival limit %(limit)s) as oldest)
         order by id for no key update
        """,
        {"cut": cut, "limit": limit},
    )
    return [id for (id,) in rows]


async def give_places(tx: Tx, event_ids: Sequence[int], cut: str, limit: int) -> dict[str, int]:
    """Settle the oldest registrations of locked events, by one statement: seats, then the waiting list, then no place.

    Returns how many got each outcome.
    """
    rows = await tx.tuples(
        """
        with oldest as (
            select event_id, user_id,
                   row_number() over (partition by event_id order by received_at, arrival) as place
              from (select event_id, user_id, received_at, arrival from registrations
                     where status = 'pending' and received_at <= %(cut)s::timestamptz
                       and event_id = any(%(event_ids)s)
                     order by received_at, arrival limit %(limit)s) as batch),
        outcome as (
            select oldest.event_id, oldest.user_id,
                   (case when cancelled_at is not null then 'rejected'
                         when place <= seats then 'registered'
                         when place <= seats + waiting_places then 'waitlisted'
                         else 'rejected' end)::registration_status as status,
                   case when cancelled_at is not null then 'event_cancelled'
                        when place > seats + waiting_places then 'event_full' end as reason
              from oldest
              join events on events.id = oldest.event_id
             cross join lateral (
                select capacity - registered_count as seats,
                       greatest(waitinglist_capacity - waitlisted_count, 0) as waiting_places) as room),
        settled as (
            update registrations
               set status = outcome.status, reason = outcome.reason, settled_at = now()
              from outcome
             where registrations.event_id = outcome.event_id and registrations.user_id = outcome.user_id
         returning registrations.status)
        select status, count(*) from settled group by status
        """,
        {"event_ids": list(event_ids), "cut": cut, "limit": limit},
    )
    return dict(rows)
