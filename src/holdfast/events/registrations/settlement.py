"""Settlement: registrations that were accepted get their outcome, strictly in order of arrival.

Any number of processes accept registrations at the same time, and any of them may settle. Three steps keep the order:

1. An accepting transaction takes the intake lock, shared, before it stamps `received_at`.
2. A settling transaction takes the same lock, exclusive, only to read the clock. This time is the *cut*. Every
   registration stamped before the cut is committed then, and every later one gets a time after the cut.
3. It locks the events concerned and settles all registrations up to the cut, in order, in one statement.

So a later registration cannot get a seat while an earlier one is still being stored.

Events that somebody else has locked are left out, and a registration that somebody else has locked ends its event's
part of the batch. These events are left to waiters, and do not hold up the others.
"""

import asyncio
from collections.abc import Collection, Sequence
from functools import partial
from typing import NamedTuple

from prometheus_client import Counter
from psycopg.errors import LockNotAvailable

from holdfast.events.pricing.changes import reprice
from holdfast.events.registrations import intake, sql
from holdfast.events.registrations.opening import open_payments
from holdfast.events.resources import Database, Reader, Tx
from holdfast.kit.notifications import notified
from holdfast.kit.waiters import Waiters

SETTLED = Counter("holdfast_registrations_settled", "Registrations settled.", ["outcome"])

CHANNEL = "registrations_pending"
BATCH = 1000
PATROL_SECONDS = 5
"""Seconds between checks without a notification, in case one was lost with a connection."""

PAUSE_SECONDS = 0.02
"""Seconds of rest when all are settled: those that arrive one by one meanwhile share the next batch."""

RETRY_SECONDS = 0.25
"""Seconds until locked events are tried again for which there is no waiter."""

CUT_SECONDS = (0.05, 1.0)
"""How long the cut waits for accepting transactions, at first and at most. Later ones wait behind the cut. So if one
stalls, the cut is given up, and tried again after a pause of the same length."""


class Settled(NamedTuple):
    """The result of one batch.

    outcomes    how many registrations got each outcome
    locked      the events that were left out, since others have locked them or one of their registrations
    """

    outcomes: dict[str, int]
    locked: list[int]


async def run(database: Database) -> None:
    """Settle registrations whenever some are pending, until cancelled."""
    waiting = asyncio.Event()
    with database.listen(CHANNEL, lambda _: waiting.set()):
        async with Waiters(waiting.set) as waiters:
            while True:
                waiting.clear()
                if await settle(database, waiters):
                    await asyncio.sleep(PAUSE_SECONDS)
                await notified(waiting, RETRY_SECONDS if waiters.are_busy else PATROL_SECONDS)


async def settle(database: Database, waiters: Waiters | None = None, *, batch: int = BATCH) -> int:
    """Settle all registrations that are pending now, and leave locked events to the waiters. Returns how many."""
    total = 0
    while cut := await read_cut(database):
        before, locked = total, set(waiters.rows if waiters else ())
        while True:
            settled = await database.transact(partial(_settle_free, cut=cut, limit=batch, locked=list(locked)))
            count = _counted(settled)
            total += count
            if count < batch and not settled.locked:
                break
            locked.update(settled.locked)
            if waiters:
                for event_id in settled.locked:
                    waiters.leave(event_id, partial(settle_locked, database, event_id))
        if total == before:
            # The others are locked, another process has settled them, or the clock was set back.
            break
    return total


async def settle_locked(database: Database, event_id: int) -> None:
    """Wait until an event and the first of its pending registrations are free, and settle the oldest."""
    await database.transact(lambda tx: wait_for_first(tx, event_id))
    cut = await read_cut(database)

    async def settle(tx: Tx) -> Settled:
        await sql.lock_event_of(tx, event_id)
        return await _settle_events(tx, [event_id], str(cut), BATCH)

    if cut:
        _counted(await database.transact(settle))


def _counted(settled: Settled) -> int:
    for outcome, count in settled.outcomes.items():
        SETTLED.labels(outcome).inc(count)
    return sum(settled.outcomes.values())


async def _settle_free(tx: Tx, cut: str, limit: int, locked: Sequence[int]) -> Settled:
    """Settle the oldest registrations of events that are not locked."""
    events = await lock_events(tx, cut, limit, locked)
    free = [id for id, is_free in events.items() if is_free]
    settled = await _settle_events(tx, free, cut, limit) if free else Settled({}, [])
    return settled._replace(locked=[*settled.locked, *(events.keys() - free)])


async def _settle_events(tx: Tx, events: Sequence[int], cut: str, limit: int) -> Settled:
    settled = await give_places(tx, events, cut, limit)
    if "held" in settled.outcomes:
        await open_payments(tx, events)
    if {"registered", "held"} & settled.outcomes.keys():
        await reprice(tx, events, "registration")
    return settled


async def read_cut(database: Database) -> str | None:
    """The cut: the time up to which every accepted registration is committed. None when no registration is pending."""
    if not await database.read(lambda reader: reader.value(ANY_PENDING)):
        return None
    patience, longest = CUT_SECONDS
    while not (cut := await database.read(partial(_cut, patience=patience))):
        await asyncio.sleep(patience)
        patience = min(2 * patience, longest)
    return cut


ANY_PENDING = "select exists (select from registrations where status = 'pending')"


async def _cut(reader: Reader, patience: float) -> str | None:
    """The time, once the accepting transactions that are running have ended. None if that takes longer than `patience`.

    The exclusive lock waits for them; later ones wait for it, and get a later time.
    """
    try:
        return await reader.value(
            """
            with limited as materialized (select set_config('lock_timeout', %(patience)s, true)),
                 locked as materialized (select pg_advisory_xact_lock(%(lock)s) from limited)
            select clock_timestamp()::text from locked
            """,
            {"lock": intake.LOCK, "patience": f"{round(patience * 1000)}ms"},
        )
    except LockNotAvailable:
        return None


async def wait_for_first(tx: Tx, event_id: int) -> None:
    """Wait until the first pending registration of an event is free."""
    await tx.run(
        """
        select from registrations where event_id = %(event_id)s and status = 'pending'
         order by received_at, arrival limit 1 for no key update
        """,
        {"event_id": event_id},
    )


async def lock_events(tx: Tx, cut: str, limit: int, but: Collection[int] = ()) -> dict[int, bool]:
    """Lock the events of the oldest pending registrations, except those in `but`. Returns which of them are free.

    They are locked in the order of their ids to avoid deadlocks.
    """
    rows = await tx.tuples(
        """
        with concerned as materialized (
            select distinct event_id as id
              from (select event_id from registrations
                     where status = 'pending' and received_at <= %(cut)s::timestamptz and event_id <> all(%(but)s)
                     order by received_at, arrival limit %(limit)s) as oldest),
        free as (
            select id from events where id in (select id from concerned) order by id for no key update skip locked)
        select concerned.id, free.id is not null from concerned left join free using (id)
        """,
        {"cut": cut, "limit": limit, "but": list(but)},
    )
    return dict(rows)


async def give_places(tx: Tx, event_ids: Sequence[int], cut: str, limit: int) -> Settled:
    """Settle the oldest registrations of locked events, by one statement: seats, then the waiting list, then no place.

    A seat that has to be paid is held.
    Behind a registration that others have locked, nobody of the same event is settled.
    """
    rows = await tx.tuples(
        """
        -- A row that was never locked has no xmax: only the others are asked for, which costs a lock each.
        with pending as materialized (
            select event_id, user_id, received_at, arrival, amount_due, xmax <> '0'::xid as was_locked
              from registrations
             where status = 'pending' and received_at <= %(cut)s::timestamptz and event_id = any(%(event_ids)s)
             order by received_at, arrival limit %(limit)s),
        free as materialized (
            select mine.* from pending
             cross join lateral (select event_id, user_id from registrations
                                  where was_locked and event_id = pending.event_id and user_id = pending.user_id
                                  limit 1 for no key update skip locked) as mine),
        oldest as (
            select event_id, user_id, amount_due, row_number() over line as place,
                   bool_and(not was_locked or (event_id, user_id) in (select event_id, user_id from free)) over line
                   as is_next
              from pending
            window line as (partition by event_id order by received_at, arrival)),
        outcome as (
            select oldest.event_id, oldest.user_id,
                   (case when cancelled_at is not null then 'rejected'
                         when place <= seats and amount_due is null then 'registered'
                         when place <= seats then 'held'
                         when place <= seats + waiting_places then 'waitlisted'
                         else 'rejected' end)::registration_status as status,
                   case when cancelled_at is not null then 'event_cancelled'
                        when place > seats + waiting_places then 'event_full' end as reason
              from oldest
              join events on events.id = oldest.event_id
             cross join lateral (
                select capacity - registered_count as seats,
                       greatest(waitinglist_capacity - waitlisted_count, 0) as waiting_places) as room
             where is_next),
        settled as (
            update registrations
               set status = outcome.status, reason = outcome.reason, settled_at = now(),
                   held_until = case when outcome.status = 'held' then now() + %(hold)s * interval '1 minute' end
              from outcome
             where registrations.event_id = outcome.event_id and registrations.user_id = outcome.user_id
         returning registrations.status)
        select status::text, count(*), null from settled group by status
        union all
        select null, 0, event_id from oldest where not is_next group by event_id
        """,
        {"event_ids": list(event_ids), "cut": cut, "limit": limit, "hold": tx.resources.settings.hold_minutes},
    )
    return Settled(
        {status: count for status, count, _ in rows if status}, [event_id for status, _, event_id in rows if not status]
    )
