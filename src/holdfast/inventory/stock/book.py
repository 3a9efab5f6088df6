"""Changes of one shop's stock, many calls at a time.

The shop is locked, what the calls need is read once, the rules of `ledger.py` decide on one call after the other, and
one statement stores the entries of all of them. So five hundred changes cost about as much as one.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import asdict, replace

from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.stock import sql
from holdfast.inventory.stock.ledger import Cause, Posting, Stock
from holdfast.inventory.stock.model import Actor, Entry, Hold, StockChange, StoredHold, Write
from holdfast.inventory.stock.neighbours import pools_around
from holdfast.kit.caller import Principal
from holdfast.kit.modes import Batch, Call
from holdfast.kit.problems import Problem

CHANGES = "stock"
"""The channel on which a change is announced; the payload is `shop version`."""

HOLDS = "holds"
"""The channel on which new holds are announced, since they will expire."""

ACTORS: Mapping[Principal, Actor] = {
    "api_key": "agent",
    "access_token": "agent",
    "person": "staff",
    "platform": "platform",
    "system": "system",
}

W = TypeVar("W", bound=Write)

lock = sql.lock_shop
bump = sql.bump
present_version = sql.present_version


class Draft(NamedTuple):
    """What a call asks the ledger to do.

    hold_for    how long the hold that it takes lasts
    ends        the hold that it ends
    """

    postings: list[Posting]
    source_ref: str | None = None
    hold_for: timedelta | None = None
    ends: StoredHold | None = None


class Touched(NamedTuple):
    """The pools, variants and holds that a call reads or changes."""

    pool_ids: Collection[int] = ()
    variant_gids: Collection[str] = ()
    hold_ids: Collection[int] = ()


def named(pool_id: int | None, variant_gid: str | None, hold_id: int | None = None) -> Touched:
    """What a call touches that names a pool or a variant, and maybe a hold."""
    return Touched(
        [] if pool_id is None else [pool_id],
        [] if variant_gid is None else [variant_gid],
        [] if hold_id is None else [hold_id],
    )


async def write(
    tx: Tx,
    batch: Batch[W],
    source: str,
    touched: Callable[[W], Touched],
    draft: Callable[[Stock, W], Draft],
) -> list[StockChange | Problem]:
    """Apply the calls of one shop in order, and store them. A call that is refused changes nothing.

    source     the tool or the job that the entries name
    touched    the pools, variants and holds that a call needs
    draft      what a call asks for, given the stock after the calls before it; it raises a `Problem`
    """
    shop_id = batch.tenant_id
    await sql.lock_shop(tx, shop_id)
    needs = [touched(call.command) for call in batch.calls]
    pool_ids = {id for need in needs for id in need.pool_ids}
    variant_gids = {gid for need in needs for gid in need.variant_gids}
    hold_ids = {id for need in needs for id in need.hold_ids}
    stock = await read_stock(tx, shop_id, Touched(pool_ids, variant_gids, hold_ids))
    book = Book(stock, source)
    answers: list[StockChange | Problem] = []
    for call in batch.calls:
        try:
            answers.append(book.apply(call, draft(stock, call.command)))
        except Problem as problem:
            answers.append(problem)
    await book.flush(tx, shop_id)
    return answers


async def read_stock(reader: Reader, shop_id: int, touched: Touched) -> Stock:
    """The holds named, and the pools: those named, those that the holds and the variants concern, and those that share
    a variant with them, as they are now.
    """
    holds = await sql.find_holds(reader, shop_id, touched.hold_ids) if touched.hold_ids else []
    pool_ids = {*touched.pool_ids, *(id for hold in holds for id in hold.lines)}
    position, pools = await pools_around(reader, shop_id, pool_ids, touched.variant_gids)
    return Stock(*position, pools, holds)


class Book:
    """The entries and holds of the calls that were applied, until they are stored."""

    def __init__(self, stock: Stock, source: str) -> None:
        self._stock = stock
        self._source = source
        self._entries: list[dict[str, Any]] = []
        self._taken: list[StoredHold] = []
        self._ended: list[StoredHold] = []

    def apply(self, call: Call[W], draft: Draft) -> StockChange:
        """Apply one call. Raises a `Problem`, and then has changed nothing."""
        command, stock = call.command, self._stock
        cause = Cause(
            ACTORS[call.caller.principal],
            call.caller.id or None,
            self._source,
            draft.source_ref,
            command.reason,
            # A hold has the id of the first entry it makes.
            stock.entries + 1 if draft.hold_for else draft.ends and draft.ends.id,
        )
        entries, pools, affected = stock.apply(draft.postings, cause)
        drawn = {posting.pool_id: posting.by_variant for posting in draft.postings}
        self._entries += [self._row(entry, cause, command.idempotency_key, drawn[entry.pool_id]) for entry in entries]
        hold = Hold(cause.hold_id, stock.now + draft.hold_for, draft.source_ref) if draft.hold_for else None
        if hold and hold.id:
            quantities = {entry.pool_id: entry.held_delta for entry in entries}
            self._taken.append(StoredHold(hold.id, hold.reference, hold.expires_at, None, quantities))
        if ended := draft.ends:
            ended.released_at, ended.sold = stock.now, any(entry.kind == "sale" for entry in entries)
            self._ended.append(ended)
        change = StockChange(stock.version, command.dry_run, entries, pools, affected, hold)
        return tried(change) if command.dry_run else change

    def _row(self, entry: Entry, cause: Cause, key: str | None, by_variant: Mapping[str, int] | None) -> dict[str, Any]:
        pool = self._stock.pools[entry.pool_id]
        return {
            **asdict(entry),
            "seq": pool.entries,
            "below_zero": pool.allow_negative,
            "actor_id": cause.actor_id,
            "idempotency_key": key,
            "by_variant": by_variant,
        }

    async def flush(self, tx: Tx, shop_id: int) -> None:
        """Store all entries by one statement, and the holds that were taken and ended; announce the change."""
        if not self._entries:
            return
        await sql.insert_entries(tx, shop_id, self._stock.version, self._entries)
        if self._taken:
            await sql.insert_holds(tx, shop_id, self._taken, self._stock.now)
            await tx.notify(HOLDS)
        if self._ended:
            await sql.end_holds(tx, shop_id, self._ended)
        await tx.notify(CHANGES, f"{shop_id} {self._stock.version}")


def tried(change: StockChange) -> StockChange:
    """A change as a dry run answers it: nothing is stored, so its entries and its new hold have no ids, and there are
    no versions.
    """
    hold = change.hold and replace(change.hold, id=None)
    entries = [
        replace(entry, id=None, version=None, hold_id=None if hold else entry.hold_id) for entry in change.entries
    ]
    pools = [replace(pool, version=None) for pool in change.pools]
    return replace(change, version=None, entries=entries, pools=pools, hold=hold)
