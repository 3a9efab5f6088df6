"""Applies orders to the stock, many of a shop in one transaction."""

from collections.abc import Sequence

from holdfast.inventory.orders import sql
from holdfast.inventory.orders.effects import Effect, Unclear, effect
from holdfast.inventory.orders.model import Order, StoredOrder
from holdfast.inventory.resources import Tx
from holdfast.inventory.stock.book import Draft, Touched, lock, write
from holdfast.inventory.stock.ledger import Posting, Stock
from holdfast.inventory.stock.model import Write
from holdfast.inventory.sync import levels
from holdfast.inventory.sync.model import Moved
from holdfast.kit.caller import platform
from holdfast.kit.modes import Batch, Call
from holdfast.kit.problems import Problem

SOURCE = "webhook"
"""What the ledger names as the source of what orders do."""


class Uncountable(Exception):
    """An order would make a pool hold or lack more than it can. The message says which order, and why."""


class Book(Write, kw_only=True):
    """Write into the ledger what an order does."""

    order_gid: str
    postings: Sequence[Posting]


async def apply(tx: Tx, shop_id: int, orders: Sequence[Order]) -> list[Order]:
    """Let the ledger have what orders do that it does not have yet. An order may be applied again at any time.

    Returns the orders that must be read from the platform, because what came does not say what they are like now.
    Raises `Uncountable`; then nothing is applied.
    """
    await lock(tx, shop_id)
    stored = await sql.find_orders(tx, shop_id, {order.id for order in orders})
    variants = {(order.id, line.variant_gid) for order in orders for line in order.lines if line.variant_gid}
    moments = {order.id: order.placed_at for order in orders}
    draws = await sql.draws_at(tx, shop_id, moments, [*variants]) if variants else {}
    effects: list[Effect] = []
    unclear: list[Order] = []
    for order in orders:
        try:
            found = effect(order, stored.get(order.id), draws.get(order.id, {}))
        except Unclear:
            unclear.append(order)
            continue
        if found:
            effects.append(found)
            stored[order.id] = _after(found, stored.get(order.id))
    if effects:
        await _write(tx, shop_id, effects)
        await sql.save(tx, shop_id, effects)
        await levels.explain(tx, shop_id, _moved(effects))
    return unclear


def _moved(effects: Sequence[Effect]) -> list[Moved]:
    """How the platform has changed its levels by itself."""
    return [Moved(gid, change, each.at) for each in effects for gid, change in each.levels.items() if change]


def _after(effect: Effect, before: StoredOrder | None) -> StoredOrder:
    lines = {**(before.lines if before else {}), **effect.lines}
    return StoredOrder(effect.order.updated_at, before.revision + 1 if before else 1, lines)


async def _write(tx: Tx, shop_id: int, effects: Sequence[Effect]) -> None:
    caller = platform(shop_id)
    calls = [
        Call(caller, Book(reason=each.reason, order_gid=each.order.gid, postings=each.postings))
        for each in effects
        if each.postings
    ]

    def touched(book: Book) -> Touched:
        return Touched([posting.pool_id for posting in book.postings])

    def draft(_: Stock, book: Book) -> Draft:
        return Draft([*book.postings], book.order_gid)

    if calls:
        answers = await write(tx, Batch(shop_id, calls), SOURCE, touched, draft)
        for call, answer in zip(calls, answers, strict=True):
            if isinstance(answer, Problem):
                why = "; ".join(text for texts in answer.errors.values() for text in texts) or answer.message
                raise Uncountable(f"{call.command.order_gid} cannot be counted: {why}.")
