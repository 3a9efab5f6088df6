"""Release: visitors leave the line at its front, `release_rate` an interval, evenly spread, by the database's clock.

Any number of processes may release. Whoever has the lock on a queue reads the clock and moves `serving` on, which is
all, whatever the number of visitors. What keeps the pace:

1. `paced_at` is the moment up to which the rate has been spent. Each release moves it on by what it cost, so that a
   tick that comes late is made up for, and nobody waits longer than was told.
2. What could not be spent is lost. Nothing is saved up while nobody waits, while the queue is paused, or, beyond
   `CATCH_UP`, while no process runs.
3. In any interval no more than `release_rate` are released, whatever was to be made up for. A release that is made
   within `TOLERANCE` of the moment it was due belongs to that moment.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import LiteralString

from prometheus_client import Counter, Gauge, Histogram
from psycopg.errors import LockNotAvailable

from holdfast.events.queues.line import CHANNEL
from holdfast.events.settings import Database, Tx

RELEASED = Counter("holdfast_queue_released", "Visitors released from a queue.")
LATE = Histogram(
    "holdfast_queue_release_late_seconds",
    "Time from the moment a release was due until it was made.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60),
)
WAITING = Gauge("holdfast_queue_waiting", "Visitors waiting in all queues.", multiprocess_mode="mostrecent")

CATCH_UP = 1
"""Seconds for which releases that did not happen in time are made up for."""

TOLERANCE = 0.25
"""Seconds by which a release may be late and still count as made when it was due. An interval must lie between it and
the one `release_rate` later: without this each delay, however small, would add to the wait of everybody behind."""

TICK_SECONDS = 0.05
"""How often to release at most; at higher rates several visitors leave at once."""

SHORTEST = 0.01
"""Seconds to wait at least, when a queue that is due could not be had."""

PATROL_SECONDS = 5
"""How often to look without being told, in case a notification was lost with a connection."""

PATIENCE = "200ms"
"""How long to wait for a queue that others are busy with, before the other queues have their turn."""


class Busy(Exception):
    """Somebody else holds a queue for longer than is waited for."""


async def run(database: Database) -> None:
    """Release whenever it is time, until cancelled."""
    changed = asyncio.Event()
    with database.hearing(CHANNEL, lambda _: changed.set()):
        while True:
            changed.clear()
            await release(database)
            seconds = await database.read(seconds_to_next)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), seconds)


async def release(database: Database) -> int:
    """Release everybody whose time has come; how many that were."""
    due = await database.read(read_due)
    if not due:
        return 0
    done = await database.transact(lambda tx: release_from(tx, due))
    # Where visitors join in masses somebody always has the lock: wait for it, but not at the cost of the others.
    for queue in set(due) - done.keys():
        with contextlib.suppress(Busy):
            done |= await database.transact(lambda tx, queue=queue: release_from(tx, [queue], wait=True))
    for visitors, late in done.values():
        RELEASED.inc(visitors)
        LATE.observe(late)
    return sum(visitors for visitors, _ in done.values())


# How each queue stands at `now`: what one release costs, since when it may be spent; when somebody is to be released
# next, no earlier than an interval after `release_rate` visitors ago; the moment to which a release made now belongs.
PACE: LiteralString = """
    select queues.id, tickets, serving, release_rate, rated_at, now, length, step, base, due_at,
           paced_at > now or due_at <= now as is_due,
           case when due_at between now - %(tolerance)s * interval '1 second' and now then due_at else now end as moment
      from queues
     cross join (select clock_timestamp() as now, %(interval)s * interval '1 second' as length) as clock
     cross join lateral (select length / release_rate as step) as cost
     cross join lateral (
        -- A clock that was set back must not stop the queue.
        select greatest(least(paced_at, now), starts_at, now - step - %(catch_up)s * interval '1 second')
               as base) as spent
      left join lateral (
        select released_at + length as opens_at from queue_releases
         where serving >= release_rate and queue_id = queues.id and last_ticket > serving - release_rate
           and released_at > rated_at and released_at <= now
         order by last_ticket limit 1) as rate on true
     cross join lateral (
        select greatest(base + greatest(step, %(tick)s * interval '1 second'), opens_at) as due_at) as next
     where active and deleted_at is null and serving < tickets and (ends_at is null or ends_at > now)
"""


async def read_due(tx: Tx) -> list[int]:
    """The queues from which somebody is to be released now."""
    return [id for (id,) in await tx.tuples(f"select id from ({PACE}) as queues where is_due", _given(tx))]


async def seconds_to_next(tx: Tx) -> float:
    """How long nothing will have to be done, unless something changes."""
    [(seconds, waiting)] = await tx.tuples(
        f"""
        select extract(epoch from min(due_at) - clock_timestamp())::float8, coalesce(sum(tickets - serving), 0)
          from ({PACE}) as queues
        """,
        _given(tx),
    )
    WAITING.set(waiting)
    return PATROL_SECONDS if seconds is None else min(max(seconds, SHORTEST), PATROL_SECONDS)


async def release_from(tx: Tx, ids: Sequence[int], *, wait: bool = False) -> dict[int, tuple[int, float]]:
    """Release from those of the queues that nobody else holds, or with `wait` from all of them.

    How many were released from each, and how many seconds after they were due. Raises `Busy` after `PATIENCE`.
    """
    if wait:
        await tx.run(f"set local lock_timeout = '{PATIENCE}'")
    # In a statement of its own: what the next one reads is the last that was committed.
    try:
        held = [id for (id,) in await tx.tuples(LOCK if wait else LOCK_IF_FREE, {"ids": list(ids)})]
    except LockNotAvailable as error:
        raise Busy from error
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


def _given(tx: Tx) -> dict[str, float]:
    return {
        "interval": tx.settings.queue_interval,
        "catch_up": CATCH_UP,
        "tick": TICK_SECONDS,
        "tolerance": TOLERANCE,
    }
