"""Shards of the outbox: all mails to one mailbox are in the same of 64 shards, and one process at a time sends a shard.
In the schema a shard is a share (`mail_shares`).

A process leases some shards together (`kit/background/row_work.py`), sends some of their mails over one connection, and
gives the shards back. A process may stall, and lose its shards to another process. So it reads its lease immediately
before the content of each mail: the lease must last for a few more seconds, by the clock of the database.

Version 0.2.0 had one sender, which locks the table `mail_sender` in exclusive mode. For one release each process that
sends shards holds a weaker lock of that table: many processes can hold it together, and none while a sender of 0.2.0
holds its own.
"""

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Collection, Sequence
from typing import Any, LiteralString, NamedTuple
from uuid import UUID, uuid4

import psycopg
from msgspec import Struct
from psycopg import AsyncConnection

from holdfast.kit.background.leases import LEASE_SECONDS, LeaseLost
from holdfast.kit.environment.logs import first_line
from holdfast.kit.mail.outbox import OWNER
from holdfast.kit.mail.turns import IS_BLOCKED, IS_DUE, SHARD, owners_in_turn
from holdfast.kit.postgres.connection_pool import KEEPALIVE, SESSION_SETTINGS
from holdfast.kit.postgres.database import Database, Writer

MIN_LEASE_SECONDS = 5.0
"""Seconds that a lease must last when the content of a mail begins. So a process that stalls for a shorter time right
after it has read its lease may still send the mail: no other process can have leased the shard meanwhile."""

MAX_READ_SECONDS = 0.5
"""Seconds that reading a lease may take. If the answer took longer, it may be too old, so the lease is read again."""

SESSION_CHECK_SECONDS = 2
"""Seconds between two statements of an idle session: less than the idle timeout of sessions."""


class LeasedShard(NamedTuple):
    """A shard that this process has leased.

    owner    the owner whose turn it is; empty: it is the turn of mails of no owner
    """

    number: int
    owner: str


class ShardLease:
    """Shards that this process has leased together, in the order in which they should be sent, over one connection.

    shards    those of them that were not given back
    """

    def __init__(self, id: UUID, shards: Sequence[LeasedShard]) -> None:
        self.id = id
        self.shards = shards

    def has(self, number: int) -> bool:
        """Whether a shard belongs to it, and was not given back."""
        return any(shard.number == number for shard in self.shards)

    def lasts(self, numbers: Collection[int]) -> bool:
        """Whether all its shards are among these."""
        return all(shard.number in numbers for shard in self.shards)

    def keep_only(self, number: int) -> list[int]:
        """Drop all shards except one. Returns the numbers of the others."""
        dropped = [shard.number for shard in self.shards if shard.number != number]
        self.shards = [shard for shard in self.shards if shard.number == number]
        return dropped


class _Candidate(Struct):
    """A shard that was free a moment ago. `lease_id`: the lease of this process to which it belongs now, if any."""

    shard: int
    owner: str
    lease_id: UUID | None


class ShardLeases:
    """The leases of one process.

    A statement may lease shards, and its answer may be lost, with the connection or because the task was cancelled.
    Such a lease is given back before the next statement: else no process would send these shards until the lease
    ends.
    """

    def __init__(self) -> None:
        self._unanswered: set[UUID] = set()
        """The ids of leases whose statement was sent and has not been answered."""
        self._held: set[UUID] = set()
        """The ids of leases that were not given back."""

    async def lease(
        self,
        writer: Writer[Any],
        limit: int,
        max_shards: int,
        connections: int,
        first_owner: str,
        *,
        no_owner_first: bool,
    ) -> list[ShardLease]:
        """Lease shards that have due mails: at most `limit` leases, of at most `max_shards` shards each.

        All processes together have at most `connections` leases. Owners take turns, beginning with `first_owner`.
        Mails to many people at once come last.

        no_owner_first    whether mails of no owner come before all others. Else they come after mails of owners
        """
        await self._give_back_leases(writer, self._unanswered)
        self._unanswered.clear()
        shards: dict[UUID, list[LeasedShard]] = {}
        is_lost = True
        while is_lost and len(shards) < limit:
            lease_ids = [uuid4() for _ in range(limit - len(shards))]
            self._unanswered.update(lease_ids)
            candidates = await writer.rows(
                _Candidate,
                LEASED_SHARDS,
                {
                    "lease_ids": lease_ids,
                    "max_shards": max_shards,
                    "connections": connections,
                    "first": first_owner,
                    "no_owner_place": 0 if no_owner_first else 2,
                    "seconds": LEASE_SECONDS,
                },
            )
            for candidate in candidates:
                if candidate.lease_id:
                    shards.setdefault(candidate.lease_id, []).append(LeasedShard(candidate.shard, candidate.owner))
            # Another process has leased a candidate meanwhile: there may be others.
            is_lost = any(candidate.lease_id is None for candidate in candidates)
        self._unanswered.clear()
        self._held.update(shards)
        return [ShardLease(*item) for item in shards.items()]

    async def give_back(self, writer: Writer[Any], lease: ShardLease) -> None:
        """Let other processes lease the shards at once."""
        await self._give_back_leases(writer, {lease.id})
        self._held.discard(lease.id)

    async def give_others_back(self, writer: Writer[Any], lease: ShardLease, number: int) -> None:
        """Let other processes lease all shards of a lease at once, except one."""
        await writer.tuples(
            """
            update mail_shares set lease_id = null, due_at = clock_timestamp()
             where lease_id = %(lease_id)s and share = any(%(shards)s)
            returning share
            """,
            # From now on only one shard is sent: also if the answer is lost.
            {"lease_id": lease.id, "shards": lease.keep_only(number)},
        )

    async def give_all_back(self, writer: Writer[Any]) -> None:
        """Give back all shards that the process may still have leased. It must have ended sending them."""
        await self._give_back_leases(writer, self._unanswered | self._held)
        self._unanswered.clear()
        self._held.clear()

    async def _give_back_leases(self, writer: Writer[Any], lease_ids: set[UUID]) -> None:
        if lease_ids:
            await writer.tuples(
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
# free_shards        the shards that no process has leased
# lease_count        how many leases can be made: one for each id, and for each connection that no process uses
# owners             the owners whose turn it is, in the order of their turns, some more than leases can be made for
# first_mails        the first due mail of each owner in each free shard; `place`: among the mails of this turn
# ranked_mails       the same in the order in which they should be sent
# candidate_shards   the shards with the first of these mails
# locked_shards      all shards, as they are after the lock
# remaining_count    how many leases can be made now
# chosen_shards      the candidates that are still free
# leased_shards      the first of the chosen ones; each lease is filled before the next
LEASED_SHARDS: LiteralString = f"""
    with free_shards as materialized (select share from mail_shares where due_at <= clock_timestamp()),
    lease_count as materialized (
        select least(cardinality(%(lease_ids)s::uuid[]), %(connections)s - count(distinct lease_id)) as leases
          from mail_shares where due_at > clock_timestamp()),
    owners as materialized (
        {owners_in_turn("true", "%(first)s")}
         where (
            select true from free_shards
             cross join lateral (
                select from mails
                 where {IS_DUE} and {SHARD} = free_shards.share and mails.bulk = owner_range.bulk
                   and {OWNER} = due_owner.owner and not {IS_BLOCKED}
                 order by due_at, id limit 1) as mails
             limit 1)
         limit (select case when leases > 0 then leases + %(max_shards)s else 0 end from lease_count)),
    first_mails as materialized (
        select free_shards.share, owner, owners.bulk, turn,
               row_number() over (partition by turn order by due_at, id) as place
          from owners
         cross join free_shards
         cross join lateral (
            select due_at, id from mails
             where {IS_DUE} and {SHARD} = free_shards.share and mails.bulk = owners.bulk and {OWNER} = owners.owner
               and not {IS_BLOCKED}
             order by due_at, id limit 1) as mails),
    ranked_mails as materialized (
        select share, owner,
               row_number() over (
                   order by bulk, case when owner = '' then %(no_owner_place)s else 1 end, place, turn) as rank
          from first_mails),
    candidate_shards as materialized (
        select share, owner, rank
          from (select distinct on (share) share, owner, rank from ranked_mails order by share, rank) as shares
         order by rank limit (select greatest(leases, 0) * %(max_shards)s from lease_count)),
    locked_shards as materialized (
        select share, lease_id, due_at from mail_shares where exists (select from candidate_shards)
         order by share for no key update),
    remaining_count as materialized (
        select least(leases, %(connections)s - (
                   select count(distinct lease_id) from locked_shards where due_at > clock_timestamp())) as leases
          from lease_count),
    chosen_shards as materialized (
        select share, row_number() over (order by rank) - 1 as number
          from candidate_shards join locked_shards using (share) where due_at <= clock_timestamp()),
    leased_shards as (
        update mail_shares
           set lease_id = (%(lease_ids)s::uuid[])[1 + number / %(max_shards)s],
               due_at = clock_timestamp() + %(seconds)s * interval '1 second'
          from chosen_shards cross join remaining_count
         where mail_shares.share = chosen_shards.share and number < leases * %(max_shards)s
        returning mail_shares.share, mail_shares.lease_id)
    select candidate_shards.share as shard, owner, leased_shards.lease_id
      from candidate_shards left join leased_shards on leased_shards.share = candidate_shards.share
     order by rank
"""


async def renew(writer: Writer[Any], lease: ShardLease) -> bool:
    """Renew a lease. Returns False if it has ended."""
    renewed = await writer.tuples(
        """
        update mail_shares set due_at = clock_timestamp() + %(seconds)s * interval '1 second'
         where lease_id = %(lease_id)s and due_at > clock_timestamp()
        returning share
        """,
        {"lease_id": lease.id, "seconds": LEASE_SECONDS},
    )
    return lease.lasts([share for (share,) in renewed])


LASTING_SHARDS: LiteralString = """
    select lease_id, share from mail_shares
     where lease_id = any(%(lease_ids)s) and due_at > clock_timestamp() + %(seconds)s * interval '1 second'
"""
"""The shards whose leases last for a while."""


class _LeaseReading:
    """A read of a lease. `sent_at`: when the statement that read it was sent; None: it is not read yet."""

    def __init__(self, lease: ShardLease) -> None:
        self.lease = lease
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

    async def check(self, lease: ShardLease) -> None:
        """Raises `LeaseLost` unless the whole lease lasts for `MIN_LEASE_SECONDS` more. Raises `SenderSessionLost`.

        Nothing is awaited after the answer was found recent, so a caller that sends immediately can rely on it.
        """
        reading = _LeaseReading(lease)
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
                    "lease_ids": [reading.lease.id for reading in readings],
                    "seconds": MIN_LEASE_SECONDS,
                },
            )
            lasting = defaultdict[UUID, list[int]](list)
            for lease_id, shard in await cursor.fetchall():
                lasting[lease_id].append(shard)
        except psycopg.Error as error:
            raise SenderSessionLost(first_line(error)) from error
        for reading in readings:
            reading.sent_at, reading.lasts = sent_at, reading.lease.lasts(lasting[reading.lease.id])


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
