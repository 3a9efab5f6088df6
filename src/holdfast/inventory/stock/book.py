"""The open book of one shop: everyone who waits writes into it, in order, and it is closed once for all.

Opening it takes the shop's turn. What the calls need is read once; the rules (`ledger.py`) are tried call by call; what
they leave is written by one statement. So five hundred changes cost what one does.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

import msgspec

from holdfast.inventory.settings import Tx
from holdfast.inventory.stock import idempotency, sql
from holdfast.inventory.stock.ledger import Cause, Line, Stock
from holdfast.inventory.stock.model import Entry, Hold, StockChange, StoredHold, Write
from holdfast.kit.operation import Call
from holdfast.kit.problems import Problem

CHANGES = "stock"
"""Where a change is announced; the payload is `shop version`."""

HOLDS = "holds"
"""Where a hold is announced, which will expire one day."""

W = TypeVar("W", bound=Write)

lock = sql.lock_shop
bump = sql.bump
present_version = sql.present_version


class Draft(NamedTuple):
    """What a call wants written."""

    lines: Sequence[Line]
    source_ref: str | None = None
    hold_id: int | None = None
    hold_for: timedelta | None = None


class Touched(NamedTuple):
    """What a call has to do with."""

    pool_ids: Collection[int] = ()
    variant_gids: Collection[str] = ()


async def write(
    tx: Tx,
    calls: Sequence[Call[W]],
    source: str,
    touched: Callable[[W], Touched],
    drafted: Callable[[Stock, W], Draft],
) -> list[StockChange | Problem]:
    """Write what the calls of one shop want, in order; each is answered for itself.

    touched    what a call has to do with
    drafted    what it wants, given the stock as those before it left it; it raises a `Problem`
    """
    shop_id = calls[0].caller.tenant
    await sql.lock_shop(tx, shop_id)
    keys = {key for call in calls if (key := idempotency.key_of(call.command))}
    known = dict(await idempotency.recall(tx, shop_id, keys)) if keys else {}
    needs = [touched(call.command) for call in calls]
    stock = Stock(
        *await sql.position(tx, shop_id),
        await sql.pools_around(
            tx,
            shop_id,
            {id for need in needs for id in need.pool_ids},
            {gid for need in needs for gid in need.variant_gids},
        ),
    )
    book = Book(stock, source)
    fresh: dict[str, idempotency.Remembered] = {}
    answers: list[StockChange | Problem] = []
    for call in calls:
        key, print = idempotency.key_of(call.command), idempotency.fingerprint(source, call.command)
        try:
            if key and (earlier := known.get(key)):
                answers.append(idempotency.replayed(earlier, print, StockChange))
                continue
            change = book.write(call, drafted(stock, call.command))
        except Problem as problem:
            answers.append(problem)
            continue
        answers.append(change)
        if key:
            known[key] = fresh[key] = idempotency.Remembered(print, msgspec.json.encode(change))
    await book.close(tx, shop_id)
    if fresh:
        await idempotency.remember(tx, shop_id, fresh)
    return answers


class Book:
    """The entries and holds that the calls at hand leave."""

    def __init__(self, stock: Stock, source: str) -> None:
        self._stock = stock
        self._source = source
        self._entries: list[dict[str, Any]] = []
        self._holds: list[StoredHold] = []

    def write(self, call: Call[W], draft: Draft) -> StockChange:
        """Apply one call. Raises a `Problem`, and then has changed nothing."""
        command, stock = call.command, self._stock
        by_key = call.caller.key_id != 0
        cause = Cause(
            "agent" if by_key else "system",
            call.caller.key_id if by_key else None,
            self._source,
            draft.source_ref,
            command.reason,
            # A hold goes by the id of the first entry it makes.
            stock.entries + 1 if draft.hold_for and not command.dry_run else draft.hold_id,
        )
        entries, pools, affected = stock.write(draft.lines, cause, dry_run=command.dry_run)
        version = entries[0].version
        if not command.dry_run:
            self._entries += [self._row(entry, cause, command.idempotency_key) for entry in entries]
        hold = Hold(cause.hold_id, stock.now + draft.hold_for, draft.source_ref) if draft.hold_for else None
        if hold and hold.id is not None:
            lines = {entry.pool_id: entry.held_delta for entry in entries}
            self._holds.append(StoredHold(hold.id, hold.reference, hold.expires_at, None, lines))
        return StockChange(version, command.dry_run, entries, pools, affected, hold)

    def _row(self, entry: Entry, cause: Cause, key: str | None) -> dict[str, Any]:
        pool = self._stock.pools[entry.pool_id]
        return {
            **msgspec.structs.asdict(entry),
            "seq": pool.entries,
            "below_zero": pool.allow_negative,
            "actor_id": cause.actor_id,
            "idempotency_key": key,
        }

    async def close(self, tx: Tx, shop_id: int) -> None:
        """Store everything, by one statement, and tell everyone who watches the shop."""
        if not self._entries:
            return
        await sql.insert_entries(tx, shop_id, self._stock.version, self._entries)
        if self._holds:
            await sql.insert_holds(tx, shop_id, self._holds, self._stock.now)
            await tx.notify(HOLDS)
        await tx.notify(CHANGES, f"{shop_id} {self._stock.version}")


async def look(tx: Tx, shop_id: int, touched: Touched) -> Stock:
    """The stock as it is now, for whoever only wants to look: what is tried on it is never stored."""
    position = await sql.position(tx, shop_id)
    return Stock(*position, await sql.pools_around(tx, shop_id, touched.pool_ids, touched.variant_gids))
