"""The rows of entries of the ledger: many of them are stored by one statement."""

from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from holdfast.inventory.resources import Tx
from holdfast.inventory.stock.model import Entry, EntryKind

NUMBERS_PER_ENTRY = 11
"""How many numbers an entry has: those of `EntryRows.add`, with the number of its cause."""


class SharedEntryColumns(NamedTuple):
    """The columns in which several entries can have the same values: those of a `ChangeCause`, and others.

    by_variant    JSON
    """

    kind: EntryKind
    below_zero: bool
    actor: str
    actor_id: int | None
    agent_name: str | None
    source: str
    source_ref: str | None
    reason: str | None
    idempotency_key: str | None
    by_variant: bytes | None


class EntryRows:
    """The rows of entries that are made at the same time.

    Their numbers are sent apart from what they have in common: JSON with every field of every entry would cost
    PostgreSQL more than all indexes of the ledger.
    """

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.count = 0
        self._numbers: list[int] = []
        self._cause_numbers: dict[SharedEntryColumns, int] = {}

    def add(
        self,
        entry: Entry,
        seq: int,
        *,
        below_zero: bool,
        actor_id: int | None,
        agent_name: str | None,
        idempotency_key: str | None,
    ) -> None:
        """Add an entry, which is number `seq` of its pool."""
        cause = SharedEntryColumns(
            entry.kind,
            below_zero,
            entry.actor,
            actor_id,
            agent_name,
            entry.source,
            entry.source_ref,
            entry.reason,
            idempotency_key,
            None if entry.by_variant is None else msgspec.json.encode(entry.by_variant),
        )
        cause_number = self._cause_numbers.setdefault(cause, len(self._cause_numbers))
        assert entry.id is not None
        assert entry.version is not None
        self._numbers += (
            *(entry.id, entry.pool_id, seq, entry.delta, entry.held_delta, entry.balance_after, entry.held_after),
            *(entry.version, entry.reverts_id or 0, entry.hold_id or 0, cause_number),
        )
        self.count += 1

    def numbers_text(self) -> str:
        """The numbers of all entries as the text of an array in PostgreSQL; 0 for an id that is missing."""
        return "{" + msgspec.json.encode(self._numbers)[1:-1].decode() + "}"

    def causes_text(self) -> str:
        """The causes as JSON, each with its number."""
        causes: list[dict[str, Any]] = [
            {
                "cause_number": cause_number,
                **{name: value for name, value in cause._asdict().items() if value is not None},
                **({} if cause.by_variant is None else {"by_variant": msgspec.Raw(cause.by_variant)}),
            }
            for cause, cause_number in self._cause_numbers.items()
        ]
        return msgspec.json.encode(causes).decode()


async def insert_entries(tx: Tx, shop_id: int, version: int, stamp: int, entries: EntryRows) -> None:
    """Add entries to the ledger, and set the shop's version and stamp; a trigger changes the balances of the pools."""
    await tx.run(
        """
        with counted as (
            update shared_inventories set version = %(version)s, stamp = %(stamp)s, entries = entries + %(count)s
             where shop_id = %(shop_id)s)
        insert into ledger (shop_id, id, pool_id, seq, delta, held_delta, balance_after, held_after, version,
                            reverts_id, hold_id, kind, below_zero, actor, actor_id, agent_name, source, source_ref,
                            reason, idempotency_key, by_variant, created_at, heard_at)
        select %(shop_id)s, number[n], number[n + 1], number[n + 2], number[n + 3], number[n + 4], number[n + 5],
               number[n + 6], number[n + 7], nullif(number[n + 8], 0), nullif(number[n + 9], 0), kind, below_zero,
               actor, actor_id, agent_name, source, source_ref, reason, idempotency_key, by_variant, %(now)s,
               -- Once, and not for each entry as the default of the column.
               (select nullif(current_setting('holdfast.heard_at', true), '')::timestamptz)
          from (select %(numbers)s::bigint[] as number) as entry
         cross join generate_series(1, %(last)s, %(width)s) as n
          join json_to_recordset(%(causes)s) as cause (
               cause_number bigint, kind entry_kind, below_zero boolean, actor text, actor_id bigint, agent_name text,
               source text, source_ref text, reason text, idempotency_key text, by_variant jsonb)
            on cause_number = number[n + 10]
        """,
        {
            "shop_id": shop_id,
            "version": version,
            "stamp": stamp,
            "now": entries.now,
            "numbers": entries.numbers_text(),
            "width": NUMBERS_PER_ENTRY,
            "last": NUMBERS_PER_ENTRY * entries.count,
            "count": entries.count,
            "causes": entries.causes_text(),
        },
    )
