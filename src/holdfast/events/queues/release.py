"""Release: lets in the first visitors of a queue, `release_rate` per interval, evenly spread, by the database's clock.

Any number of processes may release. The process that has the lock on a queue reads the clock and increases `serving`.
This one change releases any number of visitors. Queues that somebody else has locked are left to waiters. Three rules
keep the pace:

1. `paced_at` is the time up to which the rate has been used. Each release advances it by one step per visitor. So a
   release that is late is made up for, and nobody waits longer than the estimated wait.
2. Unused time is lost. No releases are saved up while nobody waits, while the queue is paused, or for more than
   `CATCH_UP` seconds while no process releases.
3. In any interval at most `release_rate` visitors are released, even if some are late. A release that is made at most
   `TOLERANCE` seconds late counts as made when it was due.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import LiteralString

from prometheus_client import Counter, Gauge, Histogram

from holdfast.events.queues.joining import CHANNEL
from holdfast.events.resources import Database, Reader, Tx
from holdfast.kit.leaders import TAKEN_OVER_SECONDS
from holdfast.kit.notifications import notified
from holdfast.kit.waiters import Waiters

RELEASED = Counter("holdfast_queue_released", "Visitors released from a queue.")
LATE = Histogram(
    "holdfast_queue_release_late_seconds",
    "Time from the moment a release was due until it was made.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60),
)
WAITING = Gauge("holdfast_queue_waiting", "Visitors waiting in all queues.", multiprocess_mode="mostrecent")

CATCH_UP = TAKEN_OVER_SECONDS + 1.0
"""The most seconds for which late releases are made up for, and at most an interval: until another process has taken
over from one that was killed or stalled, and a second more."""

TOLERANCE = 0.25
"""Seconds by which a release may be late and still count as made when it was due. Between the releases of a visitor and
of the one `release_rate` later there must be an interval. So without this every small delay would add to the wait of
all later visitors."""

TICK_SECONDS = 0.05
"""The least number of seconds between two releases; at higher rates several visitors are released at once."""

SHORTEST = 0.01
"""The least number of seconds between two checks."""

PATROL_SECONDS = 5
"""Seconds between checks without a notification, in case one was lost with a connection."""


async def run(database: Database) -> None:
    """Release visitors whenever some are due, until cancelled."""
    changed = asyncio.Event()
    with database.listen(CHANNEL, lambda _: changed.set()):
        async with Waiters(changed.set) as waiters:
            try:
                while True:
                    changed.clear()
                    await release(database, waiters)
                    seconds = await database.read(partial(seconds_to_next, but=waiters.rows))
                    await notified(changed, max(seconds, TICK_SECONDS if waiters.are_busy else 0))
            finally:
                WAITING.set(0)  # another process tells it from now on


async def release(database: Database, waiters: Waiters | None = None) -> int:
    """Release all visitors that are due, and leave locked queues to the waiters. Returns how many were released."""
    due = await database.read(partial(read_due, but=waiters.rows if waiters else ()))
    if not due:
        return 0
    done = await database.transact(lambda tx: release_from(tx, due))
    if waiters:
        # When many visitors join a queue, its lock is hardly ever free: it has to be waited for.
        for queue in set(due) - done.keys():
            waiters.leave(queue, partial(release_locked, database, queue))
    return _counted(done)


async def release_locked(database: Database, queue: int) -> None:
    """Wait until a queue is free, and release the visitors that are due."""
    _counted(await database.transact(lambda tx: release_from(tx, [queue], wait=True)))


def _counted(done: dict[int, tuple[int, float]]) -> int:
    for visitors, late in done.values():
        RELEASED.inc(visitors)
        LATE.observe(late)
    return sum(visitors for visitors, _ in done.values())


# The state of each queue at `now`: `step`, the time between two visitors; `base`, the time up to which the rate has
# been used; `due_at`, when the next visitor is released, at least an interval after the visitor `release_rate` places
# before, if that one was released at the present rate; `moment`, the time that is recorded for a release made now.
PACE: LiteralString = """
    select queues.id, tickets, serving, release_rate, rated_at, now, length, step, base, due_at,
           paced_at > now or due_at <= now as is_due,
           case when due_at between now - %(tolerance)s * interval '1 second' and now then due_at else now end as moment
      from queues
     cross join (select clock_timestamp() as now, %(interval)s * interval '1 second' as length) as clock
     cross join lateral (select length / release_rate as step) as cost
     cross join lateral (
        -- `least(paced_at, now)`: if the clock was set back, the queue must not stop.
        select greatest(least(paced_at, now), starts_at, now - step - %(catch_up)s * interval '1 second')
               as base) as spent
      left join lateral (
        select released_at + length as opens_at
          from (select first_ticket, released_at from queue_releases
                 where serving >= release_rate and queue_id = queues.id and last_ticket > serving - release_rate
                 order by last_ticket limit 1) as before
         where first_ticket <= serving - release_rate + 1 and released_at > rated_at and released_at <= now
           ) as rate on true
     cross join lateral (
        select greatest(base + greatest(step, %(tick)s * interval '1 second'), opens_at) as due_at) as next
     where active and deleted_at is null and serving < tickets and (ends_at is null or ends_at > now)
"""


async def read_due(reader: Reader, but: Sequence[int] = ()) -> list[int]:
    """The ids of the queues that have a visitor to release now, except those in `but`."""
    statement: LiteralString = f"select id from ({PACE}) as queues where is_due and id <> all(%(but)s)"
    return [id for (id,) in await reader.tuples(statement, {**_given(reader), "but": list(but)})]


async def seconds_to_next(reader: Reader, but: Sequence[int] = ()) -> float:
    """Seconds until the next release is due, if no queue changes; at most `PATROL_SECONDS`.

    Queues in `but` do not count.
    """
    [(seconds, waiting)] = await reader.tuples(
        f"""
        select extract(epoch from min(due_at) filter (where id <> all(%(but)s)) - clock_timestamp())::float8,
               coalesce(sum(tickets - serving), 0)
          from ({PACE}) as queues
        """,
        {**_given(reader), "but": list(but)},
    )
    WAITING.set(waiting)
    return PATROL_SECONDS if seconds is None else min(max(seconds, SHORTEST), PATROL_SECONDS)


async def release_from(tx: Tx, ids: Sequence[int], *, wait: bool = False) -> dict[int, tuple[int, float]]:
    """Release from those of the queues that are not locked, or with `wait` from all of them.

    Returns for each queue how many were released, and how many seconds late.
    """
    # A statement of its own, so that the next one sees what was committed before the lock was granted.
    held = [id for (id,) in await tx.tuples(LOCK if wait else LOCK_IF_FREE, {"ids": list(ids)})]
    rows = await tx.tuples(RELEASE, {**_given(tx), "ids": held}) if held else []
    return {id: (visitors, late) for id, visitors, late in rows}


LOCK: LiteralString = "select id from queues where id = any(%(ids)s) order by id for no key update"
LOCK_IF_FREE: LiteralString = f"{LOCK} skip locked"

RELEASE: LiteralString = f"""
    with counted as materialized (
        select *, least(tickets - serving, release_rate - recent,
                        floor(extract(epoch from moment - base) / extract(epoch from step) + 1e-6)::bigint) as visitors
          from ({PACE}) as paced
         cross join lateral (
            select coalesce((select serving - first_ticket + 1 from queue_releases
                              where queue_id = paced.id and released_at > greatest(rated_at, moment - length)
                                and released_at <= moment
                              order by released_at, first_ticket limit 1), 0) as recent) as in_this_interval
         where is_due and id = any(%(ids)s)),
    moved as (
        update queues
           set serving = queues.serving + visitors,
               paced_at = case when visitors = counted.tickets - counted.serving then moment
                               else base + visitors * step end
          from counted where queues.id = counted.id),
    logged as (
        insert into queue_releases (queue_id, first_ticket, last_ticket, released_at)
        select id, serving + 1, serving + visitors, moment from counted where visitors > 0)
    select id, visitors, greatest(0, extract(epoch from now - due_at))::float8 from counted
"""


def _given(tx: Reader) -> dict[str, float]:
    return {
        "interval": tx.resources.settings.queue_interval,
        "catch_up": min(CATCH_UP, tx.resources.settings.queue_interval),
        "tick": TICK_SECONDS,
        "tolerance": TOLERANCE,
    }
