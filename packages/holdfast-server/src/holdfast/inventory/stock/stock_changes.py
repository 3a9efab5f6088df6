"""Changes the stock of one shop, many calls at a time, and remembers it for the next change (`remembered_stock.py`).

The shop is locked, the rows of all calls are read once if they are not remembered, the rules (`ledger_rules.py`) decide
on one call after the other, and one statement stores all entries. So five hundred changes cost about as much as one.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from holdfast.accounts.agents import limits as agent_limits
from holdfast.accounts.agents.limits import DailyUse
from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.stock import sql
from holdfast.inventory.stock.entry_rows import EntryRows, insert_entries
from holdfast.inventory.stock.ledger_rules import ChangeCause, Posting, Stock
from holdfast.inventory.stock.model import (
    Actor,
    Hold,
    StockChange,
    StoredHold,
    Write,
)
from holdfast.inventory.stock.remembered_stock import RememberedStock, TouchedRows, lock_stock, new_stamp, remember
from holdfast.inventory.stock.shop_versions import STOCK_CHANNEL
from holdfast.inventory.stock.sql import pools_around
from holdfast.kit.contract.caller import Principal
from holdfast.kit.contract.problems import Problem
from holdfast.kit.operations.operation import Batch, Call
from holdfast.kit.webhooks.endpoints import MESSAGES_CHANNEL

HOLDS_CHANNEL = "holds"
"""The channel on which new holds are announced, so that the loop that ends expired holds knows of them."""

ACTORS: Mapping[Principal, Actor] = {
    "api_key": "agent",
    "access_token": "agent",
    "person": "staff",
    "platform": "platform",
    "system": "system",
}

NO_LIMITS: Mapping[int, DailyUse] = {}

LIMIT_SENTENCE = (
    "This agent may move {limit} units a day. {used} are moved today, and this would move {requested} more."
)

W = TypeVar("W", bound=Write)


class Draft(NamedTuple):
    """The change that a call requests of the ledger.

    hold_for    how long its new hold lasts
    ended_hold  the hold that it ends
    """

    postings: list[Posting]
    source_ref: str | None = None
    hold_for: timedelta | None = None
    ended_hold: StoredHold | None = None


async def apply_and_store(
    tx: Tx,
    batch: Batch[W],
    source: str,
    rows_of: Callable[[W], TouchedRows],
    draft_of: Callable[[Stock, W], Draft],
) -> list[StockChange | Problem]:
    """Apply the calls of one shop in order, and store them. A refused call changes nothing.

    source     the tool or the job that the entries name
    rows_of    the rows that a call touches
    draft_of   returns the change that a call requests, from the stock after the calls before it; may raise a `Problem`
    """
    shop_id = batch.tenant_id
    rows_of_calls = [rows_of(call.command) for call in batch.calls]
    pool_ids = {id for rows in rows_of_calls for id in rows.pool_ids}
    variant_gids = {gid for rows in rows_of_calls for gid in rows.variant_gids}
    hold_ids = {id for rows in rows_of_calls for id in rows.hold_ids}
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


async def lock_limits(tx: Tx, calls: Sequence[Call[Any]]) -> Mapping[int, DailyUse]:
    """Lock the daily limits of the callers, which are of the same shop. Those without a limit any more are left out."""
    uses = await agent_limits.lock(tx, {call.caller.limit_id for call in calls if call.caller.limit_id})
    return {id: use for id, use in uses.items() if use}


def moved_units(postings: Collection[Posting]) -> int:
    """The units that a change moves: the larger of what it puts into pools and what it takes or holds of them.

    So a transfer counts once. The units of a hold that becomes a sale count as sold; the end of a hold moves nothing.
    """
    units_in = sum(posting.delta for posting in postings if posting.delta > 0)
    units_out = sum(max(0, -posting.delta if posting.delta else posting.held_delta) for posting in postings)
    return max(units_in, units_out)


async def read_stock(reader: Reader, shop_id: int, rows: TouchedRows) -> Stock:
    """The stock as it is now: the holds, and the pools of the ids, of the holds and of the variants, with every
    pool that shares a variant with one of them.
    """
    holds = await sql.find_holds(reader, shop_id, rows.hold_ids) if rows.hold_ids else []
    pool_ids = {*rows.pool_ids, *(id for hold in holds for id in hold.lines)}
    shop_position, pools = await pools_around(reader, shop_id, pool_ids, rows.variant_gids)
    return Stock(shop_position.version, shop_position.entry_count, shop_position.now, pools, holds)


class PendingEntries:
    """The entries and holds of the calls that were applied, until they are stored."""

    def __init__(self, stock: Stock, source: str, limits: Mapping[int, DailyUse]) -> None:
        self._limits = limits
        self._stock = stock
        self._source = source
        self._entries = EntryRows(stock.now)
        self._new_holds: list[StoredHold] = []
        self._ended: list[StoredHold] = []

    def apply(self, call: Call[W], draft: Draft) -> StockChange:
        """Apply one call. Raises a `Problem` and then changes nothing."""
        command, stock = call.command, self._stock
        ended_hold_id = draft.ended_hold.id if draft.ended_hold else None
        cause = ChangeCause(
            ACTORS[call.caller.principal],
            call.caller.id or None,
            self._source,
            draft.source_ref,
            command.reason,
            # A new hold has the id of the first entry it makes.
            stock.entry_count + 1 if draft.hold_for else ended_hold_id,
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
        if ended_hold := draft.ended_hold:
            ended_hold.released_at, ended_hold.sold = stock.now, any(entry.kind == "sale" for entry in entries)
            self._ended.append(ended_hold)
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
