"""Rows of a table that are leased when they are due, and the statements for it."""

import datetime as dt
from collections.abc import Sequence
from typing import Any, LiteralString, NamedTuple
from uuid import UUID, uuid4

from msgspec import Struct

from holdfast.kit.background.leases import LEASE_INTERVAL, LEASE_SECONDS, LeaseFence
from holdfast.kit.postgres.database import Reader, Tx


class LeasedRow(Struct):
    """A row that this process has leased.

    attempts    the number of attempts without success, this one included
    lease_id    the id of the lease
    owner       whose row it is, if rows are leased in turns of owners
    """

    key: Any
    attempts: int
    lease_id: UUID | int
    owner: int = 0


class RowTable(NamedTuple):
    """The table, its columns, and which of its rows are meant.

    key               the primary key
    condition         which rows of the table are meant
    order             the order in which rows are leased
    due_at            the column that says when a row is due, or until when it is leased; null: never
    attempts          the column that counts the leases since the last success
    lease_id          the column with the id of the lease; None: the number of attempts, which never falls, is the id
    lease_interval    SQL: how long a row is leased
    owner             SQL: the id of the owner of a row, for leases in turns
    """

    table: LiteralString
    key: LiteralString
    condition: LiteralString = "true"
    order: LiteralString = "due_at"
    due_at: LiteralString = "due_at"
    attempts: LiteralString = "attempts"
    lease_id: LiteralString | None = "lease_id"
    lease_interval: LiteralString = LEASE_INTERVAL
    owner: LiteralString = "0"

    async def lease_due(
        self, tx: Tx[Any], limit: int, excluded_keys: Sequence[Any] = (), after_owner: int | None = None
    ) -> list[LeasedRow]:
        """Lease due rows that no other transaction has locked, at most `limit`.

        after_owner    only rows of owners with greater ids; None: of all
        """
        new_id: LiteralString = f", {self.lease_id} = %(lease_id)s" if self.lease_id else ""
        of_owners: LiteralString = "true" if after_owner is None else f"{self.owner} > %(after_owner)s"
        return await tx.rows(
            LeasedRow,
            f"""
            update {self.table}
               set {self.due_at} = clock_timestamp() + {self.lease_interval},
                   {self.attempts} = {self.attempts} + 1{new_id}
             where {self.key} = any(array(
                    select {self.key} from {self.table}
                     where {self.due_at} <= now() and {self.condition} and {of_owners}
                       and {self.key} <> all(%(excluded_keys)s)
                     order by {self.order} limit %(limit)s for no key update skip locked))
            returning {self.key} as key, {self.attempts} as attempts, {self.lease_id or self.attempts} as lease_id,
                      {self.owner} as owner
            """,
            {
                "seconds": LEASE_SECONDS,
                "lease_id": uuid4(),
                "limit": limit,
                "excluded_keys": [*excluded_keys],
                "after_owner": after_owner,
            },
        )

    def fence(self, row: LeasedRow) -> LeaseFence:
        """Renews the lease of a row, and checks it."""
        lease = self.lease_id or self.attempts
        return LeaseFence(self.table, self.key, [row.key], row.lease_id, due_at=self.due_at, lease=lease)

    async def seconds_until_due(self, reader: Reader[Any], excluded_keys: Sequence[Any] = ()) -> float | None:
        """Seconds until the next row is due; negative if one is overdue; None if there is none."""
        return await reader.value(
            f"""
            select extract(epoch from min({self.due_at}) - clock_timestamp())::float8 from {self.table}
             where {self.due_at} is not null and {self.condition} and {self.key} <> all(%(excluded_keys)s)
            """,
            {"excluded_keys": [*excluded_keys]},
        )

    async def store(
        self, tx: Tx[Any], row: LeasedRow, due_at: dt.datetime | None, error: str | None, pause: float
    ) -> None:
        """Store the result of handling a row, unless another process has leased it. The table has a column `error`.

        due_at    when the row is due next; None: never
        error     why it failed; None: it did not
        pause     seconds until a failed row is due again

        Leasing set `due_at` to the end of the lease. A `due_at` that another transaction has set to null (never), or to
        a time that has passed, stays. After a success `error` still has the text of the last failure.
        """
        assert self.lease_id, "the result of a table without a column for the lease is stored by its own statement"
        await tx.run(
            f"""
            update {self.table}
               set {self.due_at} = case when {self.due_at} is null or {self.due_at} <= clock_timestamp()
                                        then {self.due_at}
                                        when %(error)s::text is null then %(due_at)s::timestamptz
                                        else now() + %(pause)s * interval '1 second' end,
                   {self.lease_id} = null,
                   {self.attempts} = case when %(error)s::text is null then 0 else {self.attempts} end,
                   error = coalesce(left(%(error)s, 1000), error)
             where {self.key} = %(key)s and {self.lease_id} = %(lease_id)s
            """,
            {"key": row.key, "lease_id": row.lease_id, "due_at": due_at, "error": error, "pause": pause},
        )
