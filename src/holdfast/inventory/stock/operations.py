"""What can be done with stock."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TypeVar

from holdfast.inventory.problems import ALREADY_REVERTED, HOLD_ENDED, NOT_REVERTIBLE, no_pool
from holdfast.inventory.settings import Tx
from holdfast.inventory.stock import sql
from holdfast.inventory.stock.book import Draft, Touched, write
from holdfast.inventory.stock.ledger import Line, Stock
from holdfast.inventory.stock.model import (
    AdjustPoolQuantity,
    BulkAdjust,
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
    StoredHold,
    TransferQuantity,
    Write,
)
from holdfast.kit.cursor import paged
from holdfast.kit.operation import Call, Caller
from holdfast.kit.problems import NOT_FOUND, Problem, invalid

W = TypeVar("W", bound=Write)


async def set(tx: Tx, calls: Sequence[Call[SetPoolQuantity]]) -> Sequence[StockChange | Problem]:
    """Set what a pool has on hand, as after counting it.

    The ledger keeps the difference. Give `expected_quantity` or `expected_version` to make sure that nothing was sold
    between your reading and this call.
    """

    def drafted(stock: Stock, command: SetPoolQuantity) -> Draft:
        pool = stock.pool(
            command.pool_id,
            expected_version=command.expected_version,
            expected_quantity=command.expected_quantity,
        )
        return Draft([Line(pool.id, "set", command.quantity - pool.on_hand)])

    return await write(tx, calls, "set_pool_quantity", lambda command: Touched([command.pool_id]), drafted)


async def adjust(tx: Tx, calls: Sequence[Call[AdjustPoolQuantity]]) -> Sequence[StockChange | Problem]:
    """Add to what a pool has on hand, or take from it.

    Never takes more than is there, or what is held for somebody, unless the pool allows it.
    """

    def drafted(stock: Stock, command: AdjustPoolQuantity) -> Draft:
        pool = stock.pool(
            command.pool_id,
            expected_version=command.expected_version,
            expected_quantity=command.expected_quantity,
        )
        return Draft([Line(pool.id, command.kind, command.delta)])

    return await write(tx, calls, "adjust_pool_quantity", lambda command: Touched([command.pool_id]), drafted)


async def adjust_many(tx: Tx, calls: Sequence[Call[BulkAdjust]]) -> Sequence[StockChange | Problem]:
    """Adjust up to 250 pools at once: all of them, or none."""

    def drafted(stock: Stock, command: BulkAdjust) -> Draft:
        for item in command.items:
            stock.pool(item.pool_id, expected_version=item.expected_version, expected_quantity=item.expected_quantity)
        return Draft([Line(item.pool_id, "adjust", item.delta) for item in command.items])

    return await write(
        tx,
        calls,
        "bulk_adjust",
        lambda command: Touched([item.pool_id for item in command.items]),
        drafted,
    )


async def transfer(tx: Tx, calls: Sequence[Call[TransferQuantity]]) -> Sequence[StockChange | Problem]:
    """Move a quantity from one pool to another of the same unit."""

    def drafted(stock: Stock, command: TransferQuantity) -> Draft:
        giving = stock.pool(
            command.from_pool_id,
            expected_version=command.expected_version,
            expected_quantity=command.expected_quantity,
        )
        taking = stock.pool(command.to_pool_id)
        if giving.unit != taking.unit:
            raise invalid({"to_pool_id": [f"counts in {taking.unit}, not in {giving.unit}"]})
        return Draft([Line(giving.id, "transfer", -command.quantity), Line(taking.id, "transfer", command.quantity)])

    return await write(
        tx,
        calls,
        "transfer_quantity",
        lambda command: Touched([command.from_pool_id, command.to_pool_id]),
        drafted,
    )


async def hold(tx: Tx, calls: Sequence[Call[HoldQuantity]]) -> Sequence[StockChange | Problem]:
    """Keep a quantity for somebody until a moment; it is no longer available to others.

    With `variant_gid` every pool the variant draws on is held, or none. It ends by itself after `ttl_s` seconds.
    """

    def drafted(stock: Stock, command: HoldQuantity) -> Draft:
        if command.pool_id is not None:
            takes = [(stock.pool(command.pool_id), 1)]
        else:
            assert command.variant_gid
            takes = stock.draws(command.variant_gid)
            if not takes:
                raise NOT_FOUND(
                    f"{command.variant_gid} is not linked to a pool.", hint="Link it with link_variants first."
                )
        lines = [Line(stock.pool(pool.id).id, "hold", 0, command.quantity * units) for pool, units in takes]
        return Draft(lines, command.reference, hold_for=timedelta(seconds=command.ttl_s))

    def touched(command: HoldQuantity) -> Touched:
        return Touched([command.pool_id]) if command.pool_id else Touched([], [command.variant_gid or ""])

    return await write(tx, calls, "hold_quantity", touched, drafted)


async def release(tx: Tx, caller: Caller, command: ReleaseHold) -> StockChange:
    """End a hold before its time; what it kept is available again."""
    await sql.lock_shop(tx, caller.tenant)
    stored = {hold.id: hold for hold in await sql.find_holds(tx, caller.tenant, [command.hold_id])}
    if not stored:
        raise NOT_FOUND(f"No hold has the id {command.hold_id}.", hint="list_holds shows the holds of the shop.")
    return _answered(await end_holds(tx, [Call(caller, command)], stored, "release_hold"))


async def end_holds(
    tx: Tx, calls: Sequence[Call[ReleaseHold]], stored: Mapping[int, StoredHold], source: str
) -> Sequence[StockChange | Problem]:
    """Give back what holds keep. Their shop must be locked."""

    def drafted(_: Stock, command: ReleaseHold) -> Draft:
        hold = stored[command.hold_id]
        if hold.released_at:
            raise HOLD_ENDED(f"Hold {hold.id} has ended.")
        lines = [Line(pool_id, "release", 0, -quantity) for pool_id, quantity in hold.lines.items()]
        return Draft(lines, hold.reference, hold_id=hold.id)

    answers = await write(tx, calls, source, lambda command: Touched(stored[command.hold_id].lines), drafted)
    ended = [
        call.command.hold_id
        for call, answer in zip(calls, answers, strict=True)
        if isinstance(answer, StockChange) and not answer.dry_run
    ]
    await sql.end_holds(tx, calls[0].caller.tenant, ended)
    return answers


async def list_holds(tx: Tx, caller: Caller, command: ListHolds) -> HoldList:
    """List the holds that have not ended, with what each keeps, the newest first."""
    rows = await sql.list_holds(tx, caller.tenant, command)
    holds, cursor = paged(rows, command, lambda hold: hold.id)
    return HoldList(holds, cursor)


async def revert(tx: Tx, caller: Caller, command: RevertEntry) -> StockChange:
    """Undo an entry of the history by its opposite; an entry can be undone once.

    Entries of one change (a transfer, a bulk adjustment, an import) are undone together.
    """
    shop_id = caller.tenant
    await sql.lock_shop(tx, shop_id)
    found = await sql.find_entry(tx, shop_id, command.entry_id)
    if found is None:
        raise NOT_FOUND(f"No entry has the id {command.entry_id}.", hint="get_stock_history shows the entries.")
    entry, reverted_by = found
    together = await sql.entries_of_change(tx, shop_id, entry)

    def drafted(stock: Stock, _: RevertEntry) -> Draft:
        if entry.kind not in REVERTIBLE:
            raise NOT_REVERTIBLE(f"A {entry.kind} cannot be reverted.")
        if reverted_by is not None:
            raise ALREADY_REVERTED(f"Entry {entry.id} was reverted by entry {reverted_by}.", reverted_by=reverted_by)
        lines = [Line(stock.pool(each.pool_id).id, "revert", -each.delta, 0, each.id) for each in together]
        return Draft(lines, f"entry {entry.id}")

    return await _one(tx, caller, command, "revert_entry", Touched([each.pool_id for each in together]), drafted)


REVERTIBLE = frozenset({"restock", "set", "adjust", "transfer", "import"})


async def history(tx: Tx, caller: Caller, command: GetStockHistory) -> StockHistory:
    """Read the ledger, the newest entries first: what changed, by how much, when, by whom and why."""
    entries, cursor = paged(await sql.history(tx, caller.tenant, command), command, lambda entry: entry.id or 0)
    return StockHistory(entries, cursor)


async def at(tx: Tx, caller: Caller, command: GetStockAt) -> StockAt:
    """What a pool held at a moment in the past."""
    if answer := await sql.stock_at(tx, caller.tenant, command):
        return answer
    raise no_pool(command.pool_id)


async def _one(
    tx: Tx, caller: Caller, command: W, source: str, touched: Touched, drafted: Callable[[Stock, W], Draft]
) -> StockChange:
    return _answered(await write(tx, [Call(caller, command)], source, lambda _: touched, drafted))


def _answered(answers: Sequence[StockChange | Problem]) -> StockChange:
    """The only answer. Raises it when it is a refusal."""
    [answer] = answers
    if isinstance(answer, Problem):
        raise answer
    return answer
