"""Settlement: registrations that were accepted get their outcome, strictly in order of arrival.

Any number of processes accept at once and any of them may settle. What keeps the order:

1. An accepting transaction takes the intake lock, shared, before it stamps `received_at`.
2. A settler takes that lock, exclusive, just long enough to read the clock: the *cut*. By then every registration
   stamped before the cut is stored, and whatever is stamped later is later than the cut.
3. It locks the events concerned and gives places to everything up to the cut, in order, in one statement.

So nobody who came later can be seated while somebody earlier is still being stored.
"""

import asyncio
import contextlib
from collections.abc import Sequence

from prometheus_client import Counter

from holdfast.events.pricing.changes import reprice
from holdfast.events.registrations import intake
from holdfast.events.settings import Database, Tx

SETTLED = Counter("holdfast_registrations_settled", "Registrations settled.", ["outcome"])

CHANNEL = "registrations_pending"
BATCH = 1000
PATROL_SECONDS = 5
"""How often to look without being told, in case a notification was lost with a connection."""


async def run(database: Database) -> None:
    """Settle whenever registrations are waiting, until cancelled."""
    waiting = asyncio.Event()
    with database.hearing(CHANNEL, lambda _: waiting.set()):
        while True:
            waiting.clear()
            await settle(database)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(waiting.wait(), PATROL_SECONDS)


async def settle(database: Database, *, batch: int = BATCH) -> int:
    """Settle everything that waits now; how many registrations were settled."""
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
            # Another process was quicker, or the clock was set back: no reason to ask again at once.
            break
    return total


async def _settle_batch(tx: Tx, cut: str, batch: int) -> dict[str, int]:
    events = await lock_events(tx, cut, batch)
    outcomes = await give_places(tx, events, cut, batch) if events else {}
    if "registered" in outcomes:
        await reprice(tx, events, "registration")
    return outcomes


async def read_cut(tx: Tx) -> str | None:
    """The moment up to which every accepted registration is stored; None when none waits to be settled.

    The exclusive lock waits for accepting transactions under way; those that come later are stamped after the cut.
    """
    if not await tx.value("select exists (select from registrations where status = 'pending')"):
        return None
    return await tx.value(
        """
        with locked as materialized (select pg_advisory_xact_lock(%(lock)s))
        select clock_timestamp()::text from locked
        """,
        {"lock": intake.LOCK},
    )


async def lock_events(tx: Tx, cut: str, limit: int) -> list[int]:
    """The events of the oldest registrations to settle, locked in the order of their ids so that nobody deadlocks."""
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

    How many got each outcome.
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
