"""Settlement: accepted registrations get a seat, a place on the waiting list or a rejection, in order of arrival.

Any number of processes accept registrations at the same time, and any of them may settle. Three steps keep the order:

1. An accepting transaction takes the intake lock, shared, before it stamps `received_at`.
2. Settlement takes the same lock, exclusive, in a statement of its own that only reads the clock. This time is the
   *cut*. Every registration stamped before the cut is committed then, and every later one gets a time after the cut.
3. A further transaction locks the events concerned and settles all registrations up to the cut, in order.

So a later registration cannot get a seat while an earlier one is still being stored.

Events that another transaction has locked are left out. If another transaction has locked a registration, it and all
registrations behind it for the same event are left out too. Waiters settle these events later, so that they do not
delay the others.

Registrations of an event that opens with a draw become numbered entries instead (`number_entries`), and `drawn.py`
gives out the seats after the draw. Triggers of `registrations` count the seats and store the mails.
"""

import asyncio
from collections.abc import Collection, Sequence
from functools import partial
from typing import LiteralString, NamedTuple

from msgspec import Struct
from prometheus_client import Counter

from holdfast.events.pricing.operations import reprice
from holdfast.events.resources import Database, Tx
from holdfast.events.seats.held_seats import lock_event_of, open_payments
from holdfast.events.seats.intake import CutTimeout, wait_for_cut
from holdfast.kit.background.loops import Loop, RowWaiters
from holdfast.kit.postgres.notifications import POLL_SECONDS

SETTLED_COUNT = Counter("holdfast_registrations_settled", "Registrations settled.", ["outcome"])

PENDING_CHANNEL = "registrations_pending"
"""The channel that wakes up settlement when registrations are stored."""

SETTLE_BATCH_SIZE = 1000

PAUSE_SECONDS = 0.02
"""Seconds of rest when all are settled: registrations that arrive one by one meanwhile share the next batch."""

SMALL_BATCH_SIZE = 16
SMALL_BATCH_PAUSE_SECONDS = 0.05
"""Seconds of rest after fewer registrations than `SMALL_BATCH_SIZE`: to settle one costs almost as much as ten."""

RETRY_SECONDS = 0.25
"""Seconds until locked events without a waiter are tried again."""

CUT_LOCK_TIMEOUT_SECONDS = (0.05, 1.0)
"""Seconds that the cut waits for accepting transactions, first and at most. Later transactions wait behind the cut. So
if one stalls, the cut is given up, and tried again after a pause of the same length."""


class SettledBatch(NamedTuple):
    """The result of one batch.

    counts        the number of registrations by their new status
    locked_ids    the events that were left out, because others have locked them or one of their registrations
    """

    counts: dict[str, int]
    locked_ids: list[int]


class ConcernedEvents(NamedTuple):
    """The events of a batch, by their ids.

    first_come_ids    those whose registrations get their places in order of arrival
    draw_ids          those whose registrations become entries of a draw
    locked_ids        those that other transactions have locked; this one has the locks on all others
    repriced_ids      those of `first_come_ids` whose prices depend on their seats
    """

    first_come_ids: list[int]
    draw_ids: list[int]
    locked_ids: list[int]
    repriced_ids: list[int]


class _ConcernedEvent(NamedTuple):
    """An event of a batch. `takes_entries`: its registrations become entries of a draw; None: the event is locked."""

    id: int
    takes_entries: bool | None
    is_dynamic: bool | None


class _SettledRow(Struct):
    """How many registrations got a status; or, without a status, an event with a registration that is locked."""

    status: str | None
    count: int
    locked_event_id: int | None


async def settle_pending(database: Database, row_waiters: RowWaiters) -> float:
    """Settle pending registrations. Returns the seconds until the next poll."""
    if count := await settle(database, row_waiters):
        await asyncio.sleep(PAUSE_SECONDS if count >= SMALL_BATCH_SIZE else SMALL_BATCH_PAUSE_SECONDS)
    return RETRY_SECONDS if row_waiters.are_busy else POLL_SECONDS


LOOP = Loop("settlement.run", settle_pending, (PENDING_CHANNEL,))


async def settle(
    database: Database, row_waiters: RowWaiters | None = None, *, batch_size: int = SETTLE_BATCH_SIZE
) -> int:
    """Settle all pending registrations, and leave locked events to the waiters. Returns the number settled."""
    total = 0
    while cut := await read_cut(database):
        total_before = total
        skipped_ids = set(row_waiters.ids if row_waiters else ())
        while True:
            batch_result = await database.transact(
                partial(_settle_skip_locked, cut=cut, limit=batch_size, skipped_ids=list(skipped_ids))
            )
            count = count_settled(batch_result)
            total += count
            if count < batch_size and not batch_result.locked_ids:
                break
            skipped_ids.update(batch_result.locked_ids)
            if row_waiters:
                for event_id in batch_result.locked_ids:
                    row_waiters.leave(event_id, partial(settle_when_unlocked, database, event_id))
        if total == total_before:
            # The others are locked, another process has settled them, or the clock was set back.
            break
    return total


async def settle_when_unlocked(database: Database, event_id: int) -> None:
    """Wait until an event and the first of its pending registrations are free, and settle the oldest."""
    await database.transact(lambda tx: wait_for_first_pending(tx, event_id))
    cut = await read_cut(database)

    async def settle_oldest(tx: Tx) -> SettledBatch:
        await lock_event_of(tx, event_id)
        return await _settle_batch_of_event(tx, event_id, str(cut))

    if cut:
        count_settled(await database.transact(settle_oldest))


async def settle_event(tx: Tx, event_id: int) -> None:
    """Settle all pending registrations of an event that is locked for update: no other is stored until the end."""
    while cut := await tx.value(CUT_OF_EVENT, {"event_id": event_id}):
        await wait_for_first_pending(tx, event_id)
        count_settled(await _settle_batch_of_event(tx, event_id, cut))


# The event is locked, so all registrations that are stored for it are committed. Their times may be later than the
# clock, if it was set back.
CUT_OF_EVENT: LiteralString = """
    select greatest(clock_timestamp(), max(received_at))::text
      from registrations where event_id = %(event_id)s and status = 'pending' having count(*) > 0
"""


def count_settled(result: SettledBatch) -> int:
    """Count a batch in the metric. Returns the number settled."""
    for status, count in result.counts.items():
        SETTLED_COUNT.labels(status).inc(count)
    return sum(result.counts.values())


async def _settle_skip_locked(tx: Tx, cut: str, limit: int, skipped_ids: Sequence[int]) -> SettledBatch:
    """Settle the oldest registrations of events that are not locked."""
    events = await lock_events(tx, cut, limit, skipped_ids)
    seat_batch = (
        await _settle_events(tx, events.first_come_ids, cut, limit, events.repriced_ids)
        if events.first_come_ids
        else SettledBatch({}, [])
    )
    entry_batch = await number_entries(tx, events.draw_ids, cut, limit) if events.draw_ids else SettledBatch({}, [])
    return SettledBatch(
        seat_batch.counts | entry_batch.counts, [*seat_batch.locked_ids, *entry_batch.locked_ids, *events.locked_ids]
    )


async def _settle_batch_of_event(tx: Tx, event_id: int, cut: str) -> SettledBatch:
    """Settle the oldest registrations of an event on which this transaction has the lock."""
    if await tx.value("select takes_entries from events where id = %(id)s", {"id": event_id}):
        return await number_entries(tx, [event_id], cut, SETTLE_BATCH_SIZE)
    # A fixed price stays as it is when it is computed again.
    return await _settle_events(tx, [event_id], cut, SETTLE_BATCH_SIZE, [event_id])


async def _settle_events(
    tx: Tx, event_ids: Sequence[int], cut: str, limit: int, repriced_ids: Sequence[int]
) -> SettledBatch:
    batch_result = await assign_seats(tx, event_ids, cut, limit)
    if "held" in batch_result.counts:
        await open_payments(tx, event_ids)
    if repriced_ids and {"registered", "held"} & batch_result.counts.keys():
        await reprice(tx, repriced_ids, "registration")
    return batch_result


async def read_cut(database: Database) -> str | None:
    """The cut: the time up to which every accepted registration is committed. None when no registration is pending."""
    timeout, max_timeout = CUT_LOCK_TIMEOUT_SECONDS
    while True:
        try:
            return await database.autocommit(partial(wait_for_cut, lock_timeout=timeout, if_pending=True))
        except CutTimeout:
            await asyncio.sleep(timeout)
            timeout = min(2 * timeout, max_timeout)


async def wait_for_first_pending(tx: Tx, event_id: int) -> None:
    """Wait until the first pending registration of an event is free."""
    await tx.run(
        """
        select from registrations where event_id = %(event_id)s and status = 'pending'
         order by received_at, arrival limit 1 for no key update
        """,
        {"event_id": event_id},
    )


async def lock_events(tx: Tx, cut: str, limit: int, skipped_ids: Collection[int] = ()) -> ConcernedEvents:
    """Lock the events of the oldest pending registrations, except the skipped ones.

    They are locked in the order of their ids to avoid deadlocks.
    """
    events = await tx.rows(
        _ConcernedEvent,
        """
        with concerned_event as materialized (
            select distinct event_id as id
              from (select event_id from registrations
                     where status = 'pending' and received_at <= %(cut)s::timestamptz
                       and event_id <> all(%(skipped_ids)s)
                     order by received_at, arrival limit %(limit)s) as oldest),
        lockable_events as (
            select id, takes_entries, pricing_mode = 'dynamic' as is_dynamic from events
             where id in (select id from concerned_event)
             order by id for no key update skip locked)
        select concerned_event.id, takes_entries, is_dynamic from concerned_event left join lockable_events using (id)
        """,
        {"cut": cut, "limit": limit, "skipped_ids": list(skipped_ids)},
    )
    return ConcernedEvents(
        first_come_ids=[event.id for event in events if event.takes_entries is False],
        draw_ids=[event.id for event in events if event.takes_entries],
        locked_ids=[event.id for event in events if event.takes_entries is None],
        repriced_ids=[event.id for event in events if event.takes_entries is False and event.is_dynamic],
    )


OLDEST_PENDING: LiteralString = """
        -- The xmax of a row without a lock is 0. Only the other rows are locked here, one by one.
        pending_registration as materialized (
            select event_id, user_id, received_at, arrival, amount_due, xmax <> '0'::xid as was_locked
              from registrations
             where status = 'pending' and received_at <= %(cut)s::timestamptz and event_id = any(%(event_ids)s)
             order by received_at, arrival limit %(limit)s),
        free_registrations as materialized (
            select registration.* from pending_registration
             cross join lateral (select event_id, user_id from registrations
                                  where was_locked and event_id = pending_registration.event_id
                                    and user_id = pending_registration.user_id
                                  limit 1 for no key update skip locked) as registration),
        oldest as materialized (
            select event_id, user_id, amount_due, row_number() over by_arrival as rank,
                   bool_and(not was_locked
                            or (event_id, user_id) in (select event_id, user_id from free_registrations))
                   over by_arrival as is_next
              from pending_registration
            window by_arrival as (partition by event_id order by received_at, arrival))
"""
"""SQL for WITH.

pending_registration    the registrations to settle next
oldest                  the same registrations, each with its `rank` within its event. `is_next` is false for a
                        registration that another transaction has locked, and for all that came after it for the same
                        event
"""


def logged_arrivals(outcomes: LiteralString) -> LiteralString:
    """SQL for WITH: writes the rows of `settled_registration` to the log of their `event` as arrivals, and counts them.

    outcomes    an aggregate of these rows: what was stored; null if the arrivals have no outcome yet (a draw)
    """
    return f"""log_arrivals as (
            insert into log_pending (log_id, kind, first_number, received_at, user_ids, nonces, outcomes, cut)
            select log_id, 'arrivals', first_number, received_at, user_ids, nonces, outcomes,
                   case when (select count(*) from pending_registration) < %(limit)s
                             and event_id not in (select event_id from oldest where not is_next)
                        then %(cut)s::timestamptz end
              from (select event_id, min(log_number) as first_number,
                           array_agg(received_at order by log_number) as received_at,
                           array_agg(user_id order by log_number) as user_ids,
                           array_agg(nonce order by log_number) as nonces,
                           {outcomes} as outcomes
                      from settled_registration where log_number is not null group by event_id) as arrivals
              join event on event.id = event_id
         returning log_id, cardinality(user_ids) as arrivals),
        numbered_log as (
            update logs set arrivals = logs.arrivals + log_arrivals.arrivals
              from log_arrivals where logs.id = log_arrivals.log_id)"""


async def assign_seats(tx: Tx, event_ids: Sequence[int], cut: str, limit: int) -> SettledBatch:
    """Settle the oldest registrations of locked events, in one statement: seats, waiting list, rejections.

    A seat that has to be paid is held. Registrations behind a locked one of the same event are not settled. If the
    event has an open log, each gets the next number in the order of arrivals, and the statement tells the log.
    """
    rows = await tx.rows(
        _SettledRow,
        f"""
        with {OLDEST_PENDING},
        -- Many registrations are for few events. Each event is looked up once.
        event as materialized (
            select events.id, capacity - registered_count as seats,
                   greatest(waitinglist_capacity - waitlisted_count, 0) as waitlist_places,
                   -- A draft has no registrations. Only an older version, during an upgrade, does not know of drafts.
                   cancelled_at is not null or not published as is_closed,
                   log.id as log_id, log.arrivals
              from events
              left join lateral (select id, arrivals from logs
                                  where event_id = events.id and closed_at is null limit 1) as log on true
             where events.id = any(%(event_ids)s)),
        decision as materialized (
            select oldest.event_id, oldest.user_id, arrivals + rank as log_number,
                   (case when is_closed then 'rejected'
                         when rank <= seats and amount_due is null then 'registered'
                         when rank <= seats then 'held'
                         when rank <= seats + waitlist_places then 'waitlisted'
                         else 'rejected' end)::registration_status as status,
                   case when is_closed then 'event_cancelled'
                        when rank > seats + waitlist_places then 'event_full' end as reason
              from oldest
              join event on event.id = oldest.event_id
             where is_next
             -- Indexes take rising keys at less cost.
             order by oldest.event_id, rank),
        settled_registration as (
            update registrations
               set status = decision.status, reason = decision.reason, settled_at = now(),
                   held_until = case when decision.status = 'held' then now() + %(hold)s * interval '1 minute' end,
                   log_number = decision.log_number
              from decision
             where registrations.event_id = decision.event_id and registrations.user_id = decision.user_id
         returning registrations.event_id, registrations.user_id, received_at, nonce, registrations.status,
                   registrations.log_number),
        {logged_arrivals(outcomes="array_agg(status order by log_number)")}
        select status::text as status, count(*), null as locked_event_id from settled_registration group by status
        union all
        select null, 0, event_id from oldest where not is_next group by event_id
        """,
        {"event_ids": list(event_ids), "cut": cut, "limit": limit, "hold": tx.resources.settings.hold_minutes},
    )
    return _settled_batch(rows)


async def number_entries(tx: Tx, event_ids: Sequence[int], cut: str, limit: int) -> SettledBatch:
    """Make the oldest pending registrations of locked events numbered entries of their draws, in one statement.

    The ticket of an entry is the next number of the log of its event. Registrations behind a locked one of the same
    event wait.
    """
    rows = await tx.rows(
        _SettledRow,
        f"""
        with {OLDEST_PENDING},
        event as materialized (
            select logs.event_id as id, logs.id as log_id, arrivals from logs
             where event_id = any(%(event_ids)s) and closed_at is null),
        entry as materialized (
            select oldest.event_id, oldest.user_id, arrivals + rank as ticket
              from oldest join event on event.id = oldest.event_id
             where is_next
             order by oldest.event_id, rank),
        settled_registration as (
            update registrations set status = 'in_draw', settled_at = now(), log_number = ticket
              from entry
             where registrations.event_id = entry.event_id and registrations.user_id = entry.user_id
         returning registrations.event_id, registrations.user_id, received_at, nonce, log_number),
        new_entry as (
            insert into event_entries (event_id, ticket, user_id, entered_at)
            select event_id, log_number, user_id, received_at from settled_registration order by event_id, log_number),
        {logged_arrivals(outcomes="null::registration_status[]")}
        select 'in_draw' as status, count(*), null as locked_event_id from settled_registration having count(*) > 0
        union all
        select null, 0, event_id from oldest where not is_next group by event_id
        """,
        {"event_ids": list(event_ids), "cut": cut, "limit": limit},
    )
    return _settled_batch(rows)


def _settled_batch(rows: Sequence[_SettledRow]) -> SettledBatch:
    return SettledBatch(
        {row.status: row.count for row in rows if row.status is not None},
        [row.locked_event_id for row in rows if row.locked_event_id is not None],
    )
