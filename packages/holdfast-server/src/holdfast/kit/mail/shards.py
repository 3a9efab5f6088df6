"""Shards of the outbox: all mails to one mailbox are in the same of 64 shards, and one process at a time sends a shard.
In the schema a shard is a share (`mail_shares`).

A process leases a shard (`kit/background/row_work.py`), sends some of its mails, and gives the shard back. A process
may stall, and lose a shard to another process. So it reads its lease immediately before the content of each mail: the
lease must last for a few more seconds, by the clock of the database.

Version 0.2.0 had one sender, which locks the table `mail_sender` in exclusive mode. For one release each process that
sends shards holds a weaker lock of that table: many processes can hold it together, and none while a sender of 0.2.0
holds its own.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from typing import Any, LiteralString
from uuid import UUID, uuid4

import psycopg
from msgspec import Struct
from psycopg import AsyncConnection

from holdfast.kit.background.leases import LEASE_SECONDS, LeaseLost
from holdfast.kit.environment.logs import first_line
from holdfast.kit.mail.outbox import IS_BLOCKED, IS_DUE, OWNER, SHARD, owner_walk
from holdfast.kit.postgres.connection_pool import KEEPALIVE, SESSION_SETTINGS
from holdfast.kit.postgres.database import Database, Reader

SHARD_COUNT: LiteralString = "64"
"""SQL: how many shards there are. The function `mail_share` of PostgreSQL has this number too."""

MIN_LEASE_SECONDS = 5.0
"""Seconds that a lease must last when the content of a mail begins. So a process that stalls for a shorter time right
after it has read its lease may still send the mail: no other process can have leased the shard meanwhile."""

MAX_READ_SECONDS = 0.5
"""Seconds that reading a lease may take. If the answer took longer, it may be too old, so the lease is read again."""

SESSION_CHECK_SECONDS = 2
"""Seconds between two statements of an idle session: less than the idle timeout of sessions."""


class LeasedShard(Struct, frozen=True):
    """A shard that this process has leased.

    owner    the owner whose turn it is; empty: it is the turn of mails of no owner
    """

    number: int
    lease_id: UUID
    owner: str


class _Candidate(Struct):
    """A shard that was free a moment ago. `is_leased`: whether this process has leased it now."""

    shard: int
    owner: str
    is_leased: bool


class ShardLeases:
    """The leases of one process.

    A statement may lease shards, and its answer may be lost, with the connection or because the task was cancelled.
    Such a lease is given back before the next statement: else no process would send these shards until the lease
    ends.
    """

    def __init__(self) -> None:
        self._unanswered: set[UUID] = set()
        """The ids of leases whose statement was sent and has not been answered."""
        self._held: set[LeasedShard] = set()
        """Shards that were leased, and not given back."""

    async def lease(
        self, reader: Reader[Any], limit: int, connections: int, first_owner: str, *, no_owner_first: bool
    ) -> list[LeasedShard]:
        """Lease shards that have due mails, at most `limit`. No more than `connections` are leased by all processes.

        Owners take turns, beginning with `first_owner`. Mails to many people at once come last.

        no_owner_first    whether mails of no owner come before all others. Else they come after mails of owners
        """
        await self._give_back_leases(reader, self._unanswered)
        self._unanswered.clear()
        leased: list[LeasedShard] = []
        while len(leased) < limit:
            lease_id = uuid4()
            self._unanswered.add(lease_id)
            candidates = await reader.rows(
                _Candidate,
                LEASED_SHARDS,
                {
                    "limit": limit - len(leased),
                    "connections": connections,
                    "first": first_owner,
                    "no_owner_place": 0 if no_owner_first else 2,
                    "lease_id": lease_id,
                    "seconds": LEASE_SECONDS,
                },
            )
            if not candidates:
                break
            leased += [LeasedShard(one.shard, lease_id, one.owner) for one in candidates if one.is_leased]
        self._unanswered.clear()
        self._held.update(leased)
        return leased

    async def give_back(self, reader: Reader[Any], shard: LeasedShard) -> None:
        """Let other processes lease the shard at once."""
        await reader.value(
            """
            update mail_shares set lease_id = null, due_at = clock_timestamp()
             where share = %(share)s and lease_id = %(lease_id)s
            returning true
            """,
            {"share": shard.number, "lease_id": shard.lease_id},
        )
        self._held.discard(shard)

    async def give_all_back(self, reader: Reader[Any]) -> None:
        """Give back all shards that the process may still have leased. It must have ended sending them."""
        await self._give_back_leases(reader, {*self._unanswered, *(shard.lease_id for shard in self._held)})
        self._unanswered.clear()
        self._held.clear()

    async def _give_back_leases(self, reader: Reader[Any], lease_ids: set[UUID]) -> None:
        if lease_ids:
            await reader.tuples(
                """
                update mail_shares set lease_id = null, due_at = clock_timestamp()
                 where lease_id = any(%(lease_ids)s)
                returning share
                """,
                {"lease_ids": [*lease_ids]},
            )


# The shards are chosen before any is locked, so that a statement that finds no due mail locks no row. Then all rows are
# locked, in one order: two processes that lease at the same time do not both count the same free connection. A locked
# row is read as it is now.
#
# free           the shards that no process has leased
# room           how many shards can be leased: at most `limit`, and one for each connection that no process uses. Each
#                leased shard uses one, and `free` tells how many of all shards are not leased
# owners         the owners whose turn it is, in the order of their turns, one more than there is room for
# first_mails    the first due mail of each owner in each free shard; `place` is its place among the mails of this turn
# ranked         the same in the order in which they should be sent
# candidates     the shards with the first of these mails
# locked         all shards, as they are after the lock
# chosen         the candidates that are still free, while connections are
# leased         the chosen ones, leased
LEASED_SHARDS: LiteralString = f"""
    with free as materialized (select share from mail_shares where due_at <= clock_timestamp()),
    room as materialized (
        select least(%(limit)s, %(connections)s - {SHARD_COUNT} + count(*))::integer as places from free),
    owners as materialized (
        {owner_walk("true")}
         where (
            select true from free
             cross join lateral (
                select from mails
                 where {IS_DUE} and {SHARD} = free.share and mails.bulk = lap.bulk and {OWNER} = walk.owner
                   and not {IS_BLOCKED}
                 order by due_at, id limit 1) as mails
             limit 1)
         limit (select case when places > 0 then places + 1 else 0 end from room)),
    first_mails as materialized (
        select free.share, owner, owners.bulk, turn, row_number() over (partition by turn order by due_at, id) as place
          from owners
         cross join free
         cross join lateral (
            select due_at, id from mails
             where {IS_DUE} and {SHARD} = free.share and mails.bulk = owners.bulk and {OWNER} = owners.owner
               and not {IS_BLOCKED}
             order by due_at, id limit 1) as mails),
    ranked as materialized (
        select share, owner,
               row_number() over (
                   order by bulk, case when owner = '' then %(no_owner_place)s else 1 end, place, turn) as rank
          from first_mails),
    candidates as materialized (
        select share, owner, rank
          from (select distinct on (share) share, owner, rank from ranked order by share, rank) as shares
         order by rank limit (select greatest(places, 0) from room)),
    locked as materialized (
        select share, due_at from mail_shares where exists (select from candidates)
         order by share for no key update),
    chosen as materialized (
        select share from candidates join locked using (share) where due_at <= clock_timestamp()
         order by rank
         limit greatest(0, %(connections)s - (select count(*) from locked where due_at > clock_timestamp()))),
    leased as (
        update mail_shares
           set lease_id = %(lease_id)s, due_at = clock_timestamp() + %(seconds)s * interval '1 second'
          from chosen where mail_shares.share = chosen.share
        returning mail_shares.share)
    select candidates.share as shard, owner, leased.share is not null as is_leased
      from candidates left join leased on leased.share = candidates.share
     order by rank
"""


async def renew(reader: Reader[Any], shard: LeasedShard) -> bool:
    """Renew a lease. Returns False if it has ended."""
    is_renewed = await reader.value(
        """
        update mail_shares set due_at = clock_timestamp() + %(seconds)s * interval '1 second'
         where share = %(share)s and lease_id = %(lease_id)s and due_at > clock_timestamp()
        returning true
        """,
        {"share": shard.number, "lease_id": shard.lease_id, "seconds": LEASE_SECONDS},
    )
    return bool(is_renewed)


LASTING_SHARDS: LiteralString = """
    select share from mail_shares
      join unnest(%(shares)s::integer[], %(lease_ids)s::uuid[]) as lease (share, lease_id) using (share, lease_id)
     where due_at > clock_timestamp() + %(seconds)s * interval '1 second'
"""
"""The shards whose leases last for a while."""


class _LeaseReading:
    """A read of a lease. `sent_at`: when the statement that read it was sent; None: it is not read yet."""

    def __init__(self, shard: LeasedShard) -> None:
        self.shard = shard
        self.sent_at: float | None = None
        self.lasts = False


class SenderSessionLost(Exception):
    """The session has ended, and with it the lock that keeps senders of version 0.2.0 out."""


class SenderSession:
    """A connection that holds the lock, in a transaction, and reads leases."""

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        self._connection = connection
        self._using = asyncio.Lock()
        self._readings: list[_LeaseReading] = []
        """What waits for the next statement, which reads all of these leases."""

    async def check(self, shard: LeasedShard) -> None:
        """Raises `LeaseLost` unless the lease lasts for `MIN_LEASE_SECONDS` more. Raises `SenderSessionLost`.

        Nothing is awaited after the answer was found recent, so a caller that sends immediately can rely on it.
        """
        reading = _LeaseReading(shard)
        while reading.sent_at is None or time.monotonic() > reading.sent_at + MAX_READ_SECONDS:
            reading.sent_at = None
            self._readings.append(reading)
            async with self._using:
                if reading.sent_at is None:
                    await self._read_leases()
        if not reading.lasts:
            raise LeaseLost

    async def check_regularly(self) -> None:
        """Use the session, so that it does not end. Raises `SenderSessionLost`."""
        while True:
            await asyncio.sleep(SESSION_CHECK_SECONDS)
            async with self._using:
                await self._read_leases()

    async def _read_leases(self) -> None:
        """Read the leases that wait, in one statement. Raises `SenderSessionLost`."""
        readings, self._readings = self._readings, []
        sent_at = time.monotonic()
        try:
            cursor = await self._connection.execute(
                LASTING_SHARDS,
                {
                    "shares": [reading.shard.number for reading in readings],
                    "lease_ids": [reading.shard.lease_id for reading in readings],
                    "seconds": MIN_LEASE_SECONDS,
                },
            )
            lasting = {shard for (shard,) in await cursor.fetchall()}
        except psycopg.Error as error:
            raise SenderSessionLost(first_line(error)) from error
        for reading in readings:
            reading.sent_at, reading.lasts = sent_at, reading.shard.number in lasting


@contextlib.asynccontextmanager
async def sender_session(database: Database[Any]) -> AsyncGenerator[SenderSession]:
    """Wait until no sender of version 0.2.0 is at work, and keep them out while the block lasts."""
    name = f"{database.name} mails"
    async with await AsyncConnection.connect(
        database.url, autocommit=True, application_name=name, **KEEPALIVE
    ) as connection:
        await connection.execute(SESSION_SETTINGS)
        await connection.execute("set lock_timeout = 0; set statement_timeout = 0")
        await connection.execute("begin")
        # This statement looks the table up, which takes a snapshot. So the next one, which waits, needs none: VACUUM
        # can remove rows that are deleted meanwhile.
        await connection.execute("lock table mail_sender in access share mode")
        await connection.execute("lock table mail_sender in row share mode")
        yield SenderSession(connection)
