"""The operations on stock."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TypeVar

from holdfast.inventory.cursor import cursor_page
from holdfast.inventory.problems import (
    ALREADY_REVERTED,
    HOLD_ENDED,
    NOT_ENOUGH_STOCK,
    NOT_REVERTIBLE,
    POOL_NOT_ACTIVE,
    STALE,
    no_pool,
)
from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.stock import sql
from holdfast.inventory.stock.ledger_rules import Posting, Stock
from holdfast.inventory.stock.model import (
    RECORDED_SALE,
    AdjustPoolQuantity,
    BulkAdjust,
    Entry,
    GetStockAt,
    GetStockHistory,
    HoldList,
    HoldQuantity,
    ListHolds,
    ReleaseHold,
    RevertEntry,
    SetPoolQuantity,
    StockAt,
    StockChange,
    StockHistory,
    TransferQuantity,
)
from holdfast.inventory.stock.remembered_stock import TouchedRows, touched_rows
from holdfast.inventory.stock.shop_versions import lock_shop
from holdfast.inventory.stock.stock_changes import Draft, apply_and_store
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import DAILY_LIMIT_REACHED, NOT_FOUND, VALIDATION_FAILED, Problem, invalid, refuses
from holdfast.kit.operations.operation import Batch, Call

A = TypeVar("A")

_REVERTIBLE = frozenset({"restock", "set", "adjust", "transfer", "import"})


def is_revertible(entry: Entry) -> bool:
    """Whether an entry can be undone by its opposite: a sale only if a call recorded it, since orders keep theirs."""
    return entry.kind in _REVERTIBLE or (entry.kind == "sale" and entry.source == RECORDED_SALE)


@refuses(NOT_FOUND, POOL_NOT_ACTIVE, STALE, NOT_ENOUGH_STOCK, DAILY_LIMIT_REACHED)
async def set(tx: Tx, batch: Batch[SetPoolQuantity]) -> Sequence[StockChange | Problem]:
    """Set what a pool has on hand, as after counting it.

    The ledger keeps the difference. With `expected_quantity` or `expected_version` it is refused if
    something was sold since you read.
    """

    def draft(stock: Stock, command: SetPoolQuantity) -> Draft:
        pool = stock.require_pool(
            command.pool_id,
            expected_version=command.expected_version,
            expected_quantity=command.expected_quantity,
        )
        return Draft([Posting(pool.id, "set", command.quantity - pool.on_hand)])

    return await apply_and_store(tx, batch, "set_pool_quantity", lambda command: TouchedRows([command.pool_id]), draft)


@refuses(NOT_FOUND, POOL_NOT_ACTIVE, STALE, NOT_ENOUGH_STOCK, VALIDATION_FAILED, DAILY_LIMIT_REACHED)
async def adjust(tx: Tx, batch: Batch[AdjustPoolQuantity]) -> Sequence[StockChange | Problem]:
    """Add to what a pool has on hand, or take from it.

    It never takes more than is there, or what is on hold, unless the pool allows it.
    """

    def draft(stock: Stock, command: AdjustPoolQuantity) -> Draft:
        pool = stock.require_pool(
            command.pool_id,
            expected_version=command.expected_version,
            expected_quantity=command.expected_quantity,
        )
        return Draft([Posting(pool.id, command.kind, command.delta)])

    return await apply_and_store(
        tx, batch, "adjust_pool_quantity", lambda command: TouchedRows([command.pool_id]), draft
    )


@refuses(NOT_FOUND, POOL_NOT_ACTIVE, STALE, NOT_ENOUGH_STOCK, VALIDATION_FAILED, DAILY_LIMIT_REACHED)
async def adjust_many(tx: Tx, batch: Batch[BulkAdjust]) -> Sequence[StockChange | Problem]:
    """Adjust up to 250 pools at once: all of them, or none."""

    def draft(stock: Stock, command: BulkAdjust) -> Draft:
        for item in command.items:
            stock.require_pool(
                item.pool_id, expected_version=item.expected_version, expected_quantity=item.expected_quantity
            )
        return Draft([Posting(item.pool_id, "adjust", item.delta) for item in command.items])

    def rows_of(command: BulkAdjust) -> TouchedRows:
        return TouchedRows([item.pool_id for item in command.items])

    return await apply_and_store(tx, batch, "bulk_adjust", rows_of, draft)


@refuses(NOT_FOUND, POOL_NOT_ACTIVE, STALE, NOT_ENOUGH_STOCK, VALIDATION_FAILED, DAILY_LIMIT_REACHED)
async def transfer(tx: Tx, batch: Batch[TransferQuantity]) -> Sequence[StockChange | Problem]:
    """Move a quantity from one pool to another of the same unit."""

    def draft(stock: Stock, command: TransferQuantity) -> Draft:
        source = stock.require_pool(
            command.from_pool_id,
            expected_version=command.expected_version,
            expected_quantity=command.expected_quantity,
        )
        target = stock.require_pool(command.to_pool_id)
        if source.unit != target.unit:
            raise invalid({"to_pool_id": [f"counts in {target.unit}, not in {source.unit}"]})
        return Draft(
            [Posting(source.id, "transfer", -command.quantity), Posting(target.id, "transfer", command.quantity)]
        )

    def rows_of(command: TransferQuantity) -> TouchedRows:
        return TouchedRows([command.from_pool_id, command.to_pool_id])

    return await apply_and_store(tx, batch, "transfer_quantity", rows_of, draft)


@refuses(NOT_FOUND, POOL_NOT_ACTIVE, NOT_ENOUGH_STOCK, VALIDATION_FAILED, DAILY_LIMIT_REACHED)
async def hold(tx: Tx, batch: Batch[HoldQuantity]) -> Sequence[StockChange | Problem]:
    """Keep a quantity for one buyer until a moment; it is no longer available to others.

    With `variant_gid` every pool the variant draws on is held, or none. It ends by itself after `ttl_s` seconds.
    """

    def draft(stock: Stock, command: HoldQuantity) -> Draft:
        pools_and_units = stock.require_pools(command.pool_id, command.variant_gid)
        postings = [Posting(pool.id, "hold", 0, command.quantity * units) for pool, units in pools_and_units]
        return Draft(postings, command.reference, hold_for=timedelta(seconds=command.ttl_s))

    return await apply_and_store(
        tx, batch, "hold_quantity", lambda command: touched_rows(command.pool_id, command.variant_gid), draft
    )


@refuses(NOT_FOUND, HOLD_ENDED)
async def release(tx: Tx, batch: Batch[ReleaseHold]) -> Sequence[StockChange | Problem]:
    """End a hold before its time; what it kept is available again."""
    return await end_holds(tx, batch, "release_hold")


async def end_holds(tx: Tx, batch: Batch[ReleaseHold], source: str) -> Sequence[StockChange | Problem]:
    """End holds, and make their quantities available again."""

    def draft(stock: Stock, command: ReleaseHold) -> Draft:
        hold = stock.require_hold(command.hold_id)
        postings = [Posting(pool_id, "release", 0, -quantity) for pool_id, quantity in hold.lines.items()]
        return Draft(postings, hold.reference, ended_hold=hold)

    return await apply_and_store(tx, batch, source, lambda command: TouchedRows(hold_ids=[command.hold_id]), draft)


@refuses(VALIDATION_FAILED)
async def list_holds(reader: Reader, caller: Caller, command: ListHolds) -> HoldList:
    """List the holds that have not ended, the newest first."""
    rows = await sql.list_holds(reader, caller.tenant, command)
    holds, cursor = cursor_page(rows, command, lambda hold: hold.id)
    return HoldList(holds, cursor)


@refuses(
    NOT_FOUND,
    NOT_REVERTIBLE,
    ALREADY_REVERTED,
    POOL_NOT_ACTIVE,
    NOT_ENOUGH_STOCK,
    VALIDATION_FAILED,
    DAILY_LIMIT_REACHED,
)
async def revert(tx: Tx, caller: Caller, command: RevertEntry) -> StockChange:
    """Undo an entry of the history by its opposite; an entry can be undone once.

    Entries of one change, such as a transfer, are undone together. A hold that was sold stays ended.
    """
    shop_id = caller.tenant
    await lock_shop(tx, shop_id)
    entry_and_reversal = await sql.find_entry(tx, shop_id, command.entry_id)
    if entry_and_reversal is None:
        raise NOT_FOUND(f"No entry has the id {command.entry_id}.", hint="get_stock_history shows the entries.")
    entry, reverted_by = entry_and_reversal
    if not is_revertible(entry):
        by_order = " of an order" if entry.kind == "sale" else ""
        raise NOT_REVERTIBLE(f"A {entry.kind}{by_order} cannot be reverted.")
    if reverted_by is not None:
        raise ALREADY_REVERTED(f"Entry {entry.id} was reverted by entry {reverted_by}.", reverted_by=reverted_by)
    change = await sql.list_entries_of_change(tx, shop_id, entry)

    def draft(stock: Stock, _: RevertEntry) -> Draft:
        postings = [
            Posting(stock.require_pool(reverted.pool_id).id, "revert", -reverted.delta, 0, reverted.id)
            for reverted in change
        ]
        return Draft(postings, f"entry {entry.id}")

    rows = TouchedRows([reverted.pool_id for reverted in change])
    return only_answer(
        await apply_and_store(tx, Batch(shop_id, [Call(caller, command)]), "revert_entry", lambda _: rows, draft)
    )


@refuses(VALIDATION_FAILED)
async def history(reader: Reader, caller: Caller, command: GetStockHistory) -> StockHistory:
    """Read the ledger, the newest entries first."""
    rows = await sql.history(reader, caller.tenant, command)
    entries, cursor = cursor_page(rows, command, lambda entry: entry.id or 0)
    return StockHistory(entries, cursor)


@refuses(NOT_FOUND)
async def get_at(reader: Reader, caller: Caller, command: GetStockAt) -> StockAt:
    """What a pool held at a moment in the past."""
    if answer := await sql.stock_at(reader, caller.tenant, command):
        return answer
    raise no_pool(command.pool_id)


def only_answer(answers: Sequence[A | Problem]) -> A:
    """The answer to the only call of a batch. Raises the answer if it is a `Problem`."""
    [answer] = answers
    if isinstance(answer, Problem):
        raise answer
    return answer
