"""The progress of a queue: what is the same for all who wait in it. A page that knows its ticket needs no more.

So the pages of a waiting room read one row a second, not one row each.
"""

import datetime as dt
from collections.abc import Sequence

from holdfast.events.draws.subject import CHECKED
from holdfast.events.ids import QueueId
from holdfast.events.queues.draw_sql import OPENS_AT
from holdfast.events.queues.draws import QUEUE_DRAWS
from holdfast.events.queues.joining import CHANNEL
from holdfast.events.queues.rows import RoomRow
from holdfast.events.queues.sql import QUEUE
from holdfast.events.resources import Database, Reader
from holdfast.kit.contract.bounds import cache_bound
from holdfast.kit.contract.caller import ADMIN
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import NOT_FOUND, Problem, refuses
from holdfast.kit.postgres.lookup_cache import MAX_RESULTS, LookupCache
from holdfast.kit.running.operation import Operation
from holdfast.kit.running.run_modes import Batch, read_batched
from holdfast.kit.running.runner import Runner

QUEUES_LOOKED_UP = cache_bound("Queues that waiting rooms show", "events", f"{MAX_RESULTS} in a process, for a second")


class GetProgress(Command):
    queue_id: QueueId


class QueueProgress(RoomRow, kw_only=True):
    """A stored queue, and how far it has come.

    serving      the last released ticket
    until_start  seconds until somebody can be released, 0 after that
    is_over      whether the queue has ended
    read_at      the time of the database
    """

    serving: int
    until_start: int
    is_over: bool
    read_at: dt.datetime


@refuses(NOT_FOUND)
async def read(reader: Reader, batch: Batch[GetProgress]) -> Sequence[QueueProgress | Problem]:
    """Read how far queues have come."""
    queue_ids = [call.command.queue_id for call in batch.calls]
    rows = {row.id: row for row in await find_progress(reader, [*{*queue_ids}])}
    return [rows.get(id) or NOT_FOUND(f"No queue has the id {id}.") for id in queue_ids]


READ_PROGRESS = Operation("read_queue_progress", None, read_batched(read))
"""It has no route and no tool of its own."""


def progress_cache(database: Database, runner: Runner) -> LookupCache[int, QueueProgress]:
    """The progress of queues by id, at most a second old. `get` raises `not_found`."""

    async def look_up(queue_id: int) -> QueueProgress:
        return await runner[READ_PROGRESS](ADMIN, GetProgress(queue_id=queue_id))

    return LookupCache(QUEUES_LOOKED_UP, database, CHANNEL, int, look_up)


async def find_progress(reader: Reader, ids: Sequence[int]) -> list[QueueProgress]:
    return await reader.rows(
        QueueProgress,
        f"""
        select room.*, organizers.proved_at is not null as is_confirmed, {CHECKED}, line.serving,
               greatest(0, ceil(extract(epoch from line.opens_at - now())))::bigint as until_start,
               coalesce(room.ends_at <= now(), false) as is_over, now() as read_at
          from ({QUEUE} where id = any(%(ids)s) and deleted_at is null) as room
         cross join lateral (select serving, {OPENS_AT} as opens_at from queues where id = room.id limit 1) as line
         cross join lateral (select proved_at from users where id = room.organizer_id limit 1) as organizers
        {QUEUE_DRAWS.check_of("room")}
        """,
        {"ids": list(ids)},
    )
