"""Changes the stock of one shop, many calls at a time, and remembers it for the next change (`remembered_stock.py`).

The shop is locked, the rows of all calls are read once if they are not remembered, the rules (`ledger_rules.py`) decide
on one call after the other, and one statement stores all entries. So five hundred changes cost about as much as one.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from holdfast.accounts.agents import limits as agent_limits
from holdfast.accounts.agents.limits import LockedLimit
from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.stock import sql
from holdfast.inventory.stock.ledger_rules import ChangeCause, Posting, Stock
from holdfast.inventory.stock.model import (
    Actor,
    Entry,
    EntryKind,
    Hold,
    StockChange,
    StoredHold,
    Write,
)
from holdfast.inventory.stock.remembered_stock import RememberedStock, TouchedRows, lock_stock, new_stamp, remember
from holdfast.inventory.stock.sql import pools_around
from holdfast.kit.contract.caller import Principal
from holdfast.kit.contract.problems import Problem
from holdfast.kit.running.operation import Batch, Call
from holdfast.kit.webhooks.endpoints import MESSAGES_CHANNEL

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


STOCK_CHANNEL = "stock"
"""The channel on which a change is announced; the payload is `shop version`."""

HOLDS_CHANNEL = "holds"
"""The channel on which new holds are announced, so that the loop that ends expired holds knows of them."""

ACTORS: Mapping[Principal, Actor] = {
    "api_key": "agent",
    "access_token": "agent",
    "person": "staff",
    "platform": "platform",
    "system": "system",
}

W = TypeVar("W", bound=Write)


async def increase_version(tx: Tx, shop_id: int) -> int:
    """Count a change that is not in the ledger. Returns the new version of the shop, which must be locked."""
    return await tx.value(
        "update shared_inventories set version = version + 1 where shop_id = %(shop_id)s returning version",
        {"shop_id": shop_id},
    )


async def present_version(reader: Reader, shop_id: int) -> int:
    return await reader.value(
        "select version from shared_inventories where shop_id = %(shop_id)s", {"shop_id": shop_id}
    )


class Draft(NamedTuple):
    """The change that a call requests of the ledger.

    hold_for    how long its new hold lasts
    ended_hold  the hold that it ends
    """

    postings: list[Posting]
    source_ref: str | None = None
    hold_for: timedelta | None = None
    ended_hold: StoredHold | None = None


def touched_rows(pool_id: int | None, variant_gid: str | None, hold_id: int | None = None) -> TouchedRows:
    """The rows that a call touches by the ids in its command."""
    return TouchedRows(
        [] if pool_id is None else [pool_id],
        [] if variant_gid is None else [variant_gid],
        [] if hold_id is None else [hold_id],
    )


async def apply_and_store(
    tx: Tx,
    batch: Batch[W],
    source: str,
    touched: Callable[[W], TouchedRows],
    draft_of: Callable[[Stock, W], Draft],
) -> list[StockChange | Problem]:
    """Apply the calls of one shop in order, and store them. A refused call changes nothing.

    source     the tool or the job that the entries name
    touched    the pools, variants and holds that a call needs
    draft_of   returns the change that a call requests, from the stock after the calls before it; may raise a `Problem`
    """
    shop_id = batch.tenant_id
    needs = [touched(call.command) for call in batch.calls]
    pool_ids = {id for need in needs for id in need.pool_ids}
    variant_gids = {gid for need in needs for gid in need.variant_gids}
    hold_ids = {id for need in needs for id in need.hold_ids}
    remembered = await lock_stock(tx, shop_id, TouchedRows(pool_ids, variant_gids, hold_ids))
    stock = remembered.stock
    limits = await lock_limits(tx, batch.calls) if any(call.caller.limit_id for call in batch.calls) else NO_LIMITS
    pending = PendingEntries(stock, source, limits)
    answers: list[StockChange | Problem] = []
    for call in batch.calls:
        try:
            answers.append(pending.apply(call, draft_of(stock, call.command)))
        except Problem as problem:
            answers.append(problem)
    await pending.flush(tx, shop_id, remembered)
    return answers


NO_LIMITS: Mapping[int, LockedLimit] = {}


async def lock_limits(tx: Tx, calls: Sequence[Call[Any]]) -> Mapping[int, LockedLimit]:
    """Lock the daily limits of the callers, which are of the same shop. Those without a limit any more are left out."""
    locked = await agent_limits.lock(tx, {call.caller.limit_id for call in calls if call.caller.limit_id})
    return {id: limit for id, limit in locked.items() if limit}


LIMIT_SENTENCE = (
    "This agent may move {limit} units a day. {used} are moved today, and this would move {requested} more."
)


def moved_units(postings: Collection[Posting]) -> int:
    """The units that a change moves: the larger of what it puts into pools and what it takes or holds of them.

    So a transfer counts once. The units of a hold that becomes a sale count as sold; the end of a hold moves nothing.
    """
    units_in = sum(posting.delta for posting in postings if posting.delta > 0)
    units_out = sum(max(0, -posting.delta or posting.held_delta) for posting in postings)
    return max(units_in, units_out)


async def read_stock(reader: Reader, shop_id: int, touched: TouchedRows) -> Stock:
    """The stock as it is now: the holds, and the pools of the ids, of the holds and of the variants, with every
    pool that shares a variant with one of them.
    """
    holds = await sql.find_holds(reader, shop_id, touched.hold_ids) if touched.hold_ids else []
    pool_ids = {*touched.pool_ids, *(id for hold in holds for id in hold.lines)}
    shop_position, pools = await pools_around(reader, shop_id, pool_ids, touched.variant_gids)
    return Stock(*shop_position[:3], pools, holds)


class PendingEntries:
    """The entries and holds of the calls that were applied, until they are stored."""

    def __init__(self, stock: Stock, source: str, limits: Mapping[int, LockedLimit]) -> None:
        self._limits = limits
        self._stock = stock
        self._source = source
        self._entries = EntryRows(stock.now)
        self._new_holds: list[StoredHold] = []
        self._ended: list[StoredHold] = []

    def apply(self, call: Call[W], draft: Draft) -> StockChange:
        """Apply one call. Raises a `Problem` and then changes nothing."""
        command, stock = call.command, self._stock
        cause = ChangeCause(
            ACTORS[call.caller.principal],
            call.caller.id or None,
            self._source,
            draft.source_ref,
            command.reason,
            # A hold has the id of the first entry it makes.
            stock.entry_count + 1 if draft.hold_for else draft.ended_hold and draft.ended_hold.id,
        )
        limit = self._limits.get(call.caller.limit_id) if self._limits else None
        units = moved_units(draft.postings) if limit else 0
        if limit and limit.used + units > limit.allowed:
            raise limit.refusal(LIMIT_SENTENCE, units)
        entries, pools, affected = stock.apply(draft.postings, cause)
        if limit:
            limit.used += units
        for entry in entries:
            pool = stock.pools[entry.pool_id]
            self._entries.add(
                entry,
                pool.entry_count,
                below_zero=pool.allow_negative,
                actor_id=cause.actor_id,
                agent_name=call.caller.program or None,
                idempotency_key=command.idempotency_key,
            )
        hold = Hold(cause.hold_id, stock.now + draft.hold_for, draft.source_ref) if draft.hold_for else None
        if hold and hold.id:
            quantities = {entry.pool_id: entry.held_delta for entry in entries}
            self._new_holds.append(StoredHold(hold.id, hold.reference, hold.expires_at, None, quantities))
        if ended := draft.ended_hold:
            ended.released_at, ended.sold = stock.now, any(entry.kind == "sale" for entry in entries)
            self._ended.append(ended)
        change = StockChange(stock.version, command.dry_run, entries, pools, affected, hold)
        return as_dry_run(change) if command.dry_run else change

    async def flush(self, tx: Tx, shop_id: int, remembered: RememberedStock) -> None:
        """Store all entries by one statement, and the new and the ended holds. Announce the change, and remember it."""
        if not self._entries.count:
            remember(tx, shop_id, remembered)
            return
        if self._limits:
            await agent_limits.store_use(tx, self._limits.values())
        remembered.stamp = new_stamp()
        await insert_entries(tx, shop_id, self._stock.version, remembered.stamp, self._entries)
        if self._new_holds:
            await sql.insert_holds(tx, shop_id, self._new_holds, self._stock.now)
            await tx.notify(HOLDS_CHANNEL)
        if self._ended:
            await sql.end_holds(tx, shop_id, self._ended)
        remember(tx, shop_id, remembered)
        await tx.notify(STOCK_CHANNEL, f"{shop_id} {self._stock.version}")
        if remembered.has_endpoints:
            await tx.notify(MESSAGES_CHANNEL)


def as_dry_run(change: StockChange) -> StockChange:
    """A change as the answer to a dry run. Nothing is stored, so it has no versions, and its entries and its new
    hold have no ids.
    """
    hold = change.hold and replace(change.hold, id=None)
    entries = [
        replace(entry, id=None, version=None, hold_id=None if hold else entry.hold_id) for entry in change.entries
    ]
    pools = [replace(pool, version=None) for pool in change.pools]
    return replace(change, version=None, entries=entries, pools=pools, hold=hold)
