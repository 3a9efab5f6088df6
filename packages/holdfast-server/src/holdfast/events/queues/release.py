"""Releases the visitors who are first in a queue: `release_rate` in each interval, evenly spread. The clock is the
database's.

Any number of processes may release. The process that has the lock on a queue reads the clock and increases `serving`,
the place of the last released visitor. This one change releases any number of visitors. Queues that another
transaction has locked are left to waiters. Three rules keep the rate:

1. `paced_at` is the time up to which the rate has been used. Each release advances it by one step per visitor. So
   late releases are caught up: as long as a process releases, no visitor waits longer than the estimated wait.
2. Time in which no visitor could be released is not made up for. No releases are saved up while no visitor waits,
   while the queue is paused, or for more than `MAX_CATCH_UP_SECONDS` while no process releases.
3. In any interval at most `release_rate` visitors are released, even if some are late. A release that is at most
   `TOLERANCE_SECONDS` late counts as made when it was due.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import LiteralString, NamedTuple

from prometheus_client import Counter, Gauge, Histogram

from holdfast.events.queues.model import QUEUES_CHANNEL
from holdfast.events.resources import Database, Reader, Tx
from holdfast.kit.background.leaders import MAX_TAKEOVER_SECONDS
from holdfast.kit.background.loops import Loop, RowWaiters
from holdfast.kit.postgres.connection_pool import STALL_TIMEOUT_SECONDS
from holdfast.kit.postgres.notifications import POLL_SECONDS

RELEASED_COUNT = Counter("holdfast_queue_released", "Visitors released from a queue.")
RELEASE_DELAY_SECONDS = Histogram(
    "holdfast_queue_release_late_seconds",
    "Time from the moment a release was due until it was made.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60),
)
WAITING_COUNT = Gauge(
    "holdfast_queue_waiting",
    "Visitors waiting in queues that release: not paused, ended or before their draw.",
    multiprocess_mode="mostrecent",
)

MAX_CATCH_UP_SECONDS = STALL_TIMEOUT_SECONDS + MAX_TAKEOVER_SECONDS + 1.0
"""The most seconds for which late releases are caught up (at most an interval): the time until the locks of a stalled
process are free, plus the time until another process has taken over, plus a second."""

TOLERANCE_SECONDS = 0.25
"""The seconds by which a release may be late and still count as made when it was due. A visitor is released at least an
interval after the visitor `release_rate` places before. So without the tolerance every small delay would add to the
wait of all later visitors."""

TICK_SECONDS = 0.05
"""The least seconds between two releases; at higher rates one release has several visitors."""

MIN_POLL_SECONDS = 0.01
"""The least seconds between two checks."""


async def run_step(database: Database, row_waiters: RowWaiters) -> float:
    """Release the visitors who are due. Returns the seconds until the next ones are."""
    await release_due(database, row_waiters)
    seconds = await database.read(partial(poll_status, excluded_ids=row_waiters.ids))
    return max(seconds, TICK_SECONDS if row_waiters.are_busy else 0)


LOOP = Loop("release.run", run_step, (QUEUES_CHANNEL,), gauges=(WAITING_COUNT,))


async def release_due(database: Database, row_waiters: RowWaiters | None = None) -> int:
    """Release all due visitors, and leave locked queues to the waiters. Returns the number of released visitors."""
    due = await database.read(partial(read_due, excluded_ids=row_waiters.ids if row_waiters else ()))
    if not due:
        return 0
    releases = await database.transact(lambda tx: release_from_queues(tx, due, skip_locked=True))
    if row_waiters:
        # While many visitors join a queue, its lock is hardly ever free, so a waiter waits for it.
        for queue_id in set(due) - releases.keys():
            row_waiters.leave(queue_id, partial(release_when_unlocked, database, queue_id))
    return _record(releases)


async def release_when_unlocked(database: Database, queue_id: int) -> None:
    """Wait for the lock on a queue, and release the due visitors."""
    _record(await database.transact(lambda tx: release_from_queues(tx, [queue_id], skip_locked=False)))


def _record(releases: Mapping[int, "QueueRelease"]) -> int:
    """Count the released visitors in the metrics. Returns how many they are."""
    for release in releases.values():
        if release.visitors:
            RELEASED_COUNT.inc(release.visitors)
            RELEASE_DELAY_SECONDS.observe(release.late_seconds)
    return sum(release.visitors for release in releases.values())


# The status of each queue that releases its waiting visitors, at `now`. If `paced_at` is later than now and the start,
# the clock was set back. Then `is_due` is true, and the change releases no visitor: it sets `paced_at` to `used_until`.
#
# step            the time between two visitors
# used_until      the time up to which the rate has been used: `paced_at`, or now if that is in the future, but not
#                 before the start of the queue, and not further back than late releases are caught up
# reopens_at      the earliest time that keeps rule 3: an interval after the release of the visitor `release_rate`
#                 places before. Null if that visitor was released at another rate
# due_at          when the next visitor is due: a step after `used_until`, and not before `reopens_at`
# is_due          whether the row is changed now
# recorded_at     the recorded time of a release that is made now
RELEASING_QUEUES: LiteralString = """
    select queues.id, tickets, serving, release_rate, rated_at, now, interval_length, step, used_until, due_at,
           paced_at > greatest(now, starts_at) or due_at <= now as is_due,
           case when due_at between now - %(tolerance)s * interval '1 second' and now then due_at
                else now end as recorded_at
      from queues
     cross join (select clock_timestamp() as now, %(interval)s * interval '1 second' as interval_length) as clock
     cross join lateral (select interval_length / release_rate as step) as pace
     cross join lateral (
        select greatest(least(paced_at, now), starts_at, now - step - %(catch_up)s * interval '1 second')
               as used_until) as used_rate
      left join lateral (
        select released_at + interval_length as reopens_at
          from (select first_ticket, released_at from queue_releases
                 where serving >= release_rate and queue_id = queues.id and last_ticket > serving - release_rate
                 order by last_ticket limit 1) as earlier_release
         where first_ticket <= serving - release_rate + 1 and released_at > rated_at and released_at <= now
           ) as full_interval on true
     cross join lateral (
        select greatest(used_until + greatest(step, %(tick)s * interval '1 second'), reopens_at)
               as due_at) as next_release
     where active and deleted_at is null and serving < tickets and (ends_at is null or ends_at > now)
       and (draw_at is null or drawn_at is not null)
"""


async def read_due(reader: Reader, excluded_ids: Sequence[int] = ()) -> list[int]:
    """The ids of the queues that have a visitor to release now, except the excluded ones."""
    rows = await reader.tuples(
        f"select id from ({RELEASING_QUEUES}) as queue where is_due and id <> all(%(excluded_ids)s)",
        {**_parameters(reader), "excluded_ids": list(excluded_ids)},
    )
    return [id for (id,) in rows]


async def poll_status(reader: Reader, excluded_ids: Sequence[int] = ()) -> float:
    """Set the metric of waiting visitors, and return the seconds until the next check, at most `POLL_SECONDS`.

    These are the seconds until the next release is due, if no queue changes, without the excluded queues.
    """
    [(seconds, waiting_count)] = await reader.tuples(
        f"""
        select extract(epoch from min(due_at) filter (where id <> all(%(excluded_ids)s)) - clock_timestamp())::float8,
               coalesce(sum(tickets - serving), 0)
          from ({RELEASING_QUEUES}) as queue
        """,
        {**_parameters(reader), "excluded_ids": list(excluded_ids)},
    )
    WAITING_COUNT.set(waiting_count)
    return POLL_SECONDS if seconds is None else min(max(seconds, MIN_POLL_SECONDS), POLL_SECONDS)


class QueueRelease(NamedTuple):
    """What was released from one queue.

    visitors        the number of released visitors
    late_seconds    the seconds by which the release was late
    """

    visitors: int
    late_seconds: float


async def release_from_queues(tx: Tx, ids: Sequence[int], *, skip_locked: bool) -> dict[int, QueueRelease]:
    """Lock queues, and release the due visitors. Returns what was released, by the id of the queue.

    skip_locked    leave out queues that other transactions have locked; otherwise wait for them
    """
    lock = LOCK_QUEUES_SKIP_LOCKED if skip_locked else LOCK_QUEUES
    # A separate statement, so that the next one sees all commits before the lock was granted.
    free_queue_ids = [id for (id,) in await tx.tuples(lock, {"ids": list(ids)})]
    rows = await tx.tuples(RELEASES, {**_parameters(tx), "ids": free_queue_ids}) if free_queue_ids else []
    return {id: QueueRelease(visitors, late_seconds) for id, visitors, late_seconds in rows}


LOCK_QUEUES: LiteralString = "select id from queues where id = any(%(ids)s) order by id for no key update"
LOCK_QUEUES_SKIP_LOCKED: LiteralString = f"{LOCK_QUEUES} skip locked"

RELEASES: LiteralString = f"""
    with due_queue as materialized (
        select *, greatest(0, least(
                        tickets - serving, release_rate - visitors_of_interval,
                        floor(extract(epoch from recorded_at - used_until) / extract(epoch from step) + 1e-6)::bigint))
                  as visitors
          from ({RELEASING_QUEUES}) as queue
         cross join lateral (
            select coalesce((select serving - first_ticket + 1 from queue_releases
                              where queue_id = queue.id
                                and released_at > greatest(rated_at, recorded_at - interval_length)
                                and released_at <= recorded_at
                              order by released_at, first_ticket limit 1), 0) as visitors_of_interval) as earlier
         where is_due and id = any(%(ids)s)),
    released_queue as (
        update queues
           set serving = queues.serving + visitors,
               paced_at = case when visitors = due_queue.tickets - due_queue.serving then recorded_at
                               else used_until + visitors * step end
          from due_queue where queues.id = due_queue.id),
    new_release as (
        insert into queue_releases (queue_id, first_ticket, last_ticket, released_at)
        select id, serving + 1, serving + visitors, recorded_at from due_queue
         -- The trigger `log_release_of_older_version` reads the setting. Both go in the release after 0.3.
         cross join set_config('holdfast.logs_releases', 'yes', true)
         where visitors > 0),
    log_entry as (
        insert into log_pending (log_id, kind, details)
        select logs.id, 'release', jsonb_build_object('from', serving + 1, 'to', serving + visitors)
          from due_queue join logs on logs.queue_id = due_queue.id and closed_at is null
         where visitors > 0)
    select id, visitors, greatest(0, extract(epoch from now - due_at))::float8 from due_queue
"""


def _parameters(tx: Reader) -> dict[str, float]:
    return {
        "interval": tx.resources.settings.queue_interval,
        "catch_up": min(MAX_CATCH_UP_SECONDS, tx.resources.settings.queue_interval),
        "tick": TICK_SECONDS,
        "tolerance": TOLERANCE_SECONDS,
    }
