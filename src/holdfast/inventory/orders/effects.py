"""What an order does to the stock: what it takes now, without what it took before. No database, no clock."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeAlias

from holdfast.inventory.orders.model import Line, Order, StoredLine, StoredOrder
from holdfast.inventory.stock.ledger import Posting

LONGEST = 500
"""The most characters of a reason."""

Draws: TypeAlias = Mapping[str, Mapping[int, int]]
"""For each variant the pools that it drew on when the order was placed, and how much one took of each."""


class Unclear(Exception):
    """What came does not say what the order is like now: it must be read from the platform."""


class Effect(NamedTuple):
    """What is to be stored of an order, and what it does to pools.

    lines     those that are new or different
    levels    by variant, how its levels at the platform change by it: a sale of two is -2
    at        when the platform has changed them
    """

    order: Order
    lines: Mapping[int, StoredLine]
    postings: Sequence[Posting]
    levels: Mapping[str, int]
    at: datetime
    reason: str


def effect(order: Order, stored: StoredOrder | None, draws: Draws) -> Effect | None:
    """What an order does, given what is stored of it; None if it does nothing.

    Raises `Unclear`: it has changed twice in one second, and which of the two came last is not known; or not all of its
    lines came.
    """
    if stored and order.updated_at < stored.updated_at:
        return None
    known = stored.lines if stored else {}
    now = _lines(order, known, draws)
    changed = {id: line for id, line in now.items() if id not in known or known[id].taken != line.taken}
    if stored:
        was_read = order.revision == stored.revision
        if changed and order.updated_at == stored.updated_at and not was_read:
            raise Unclear
        if order.revision is None and known.keys() - {line.id for line in order.lines}:
            raise Unclear
        if not changed and order.updated_at == stored.updated_at:
            return None
    elif not now:
        return None
    drawn: dict[int, dict[str, int]] = {}
    levels: dict[str, int] = {}
    words: list[str] = []
    for id, line in changed.items():
        more = line.taken - (known[id].taken if id in known else 0)
        for pool_id, units in line.draws.items():
            by_variant = drawn.setdefault(pool_id, {})
            by_variant[line.variant_gid] = by_variant.get(line.variant_gid, 0) + more * units
        if more:
            levels[line.variant_gid] = levels.get(line.variant_gid, 0) - more
            words.append(f"{abs(more)} of {line.variant_gid} {'sold' if more > 0 else 'came back'} (line {id})")
    postings = [
        Posting(pool_id, "sale" if taken > 0 else "cancel", -taken, by_variant=by_variant)
        for pool_id, by_variant in drawn.items()
        if (taken := sum(by_variant.values()))
    ]
    at = order.updated_at if stored else order.placed_at
    return Effect(order, changed, postings, levels, at, _said(f"Order {order.name or order.id}: ", words))


def _lines(order: Order, known: Mapping[int, StoredLine], draws: Draws) -> dict[int, StoredLine]:
    """The lines that draw on pools, as they are now. What is stored and did not come has taken nothing."""
    came: dict[int, Line] = {line.id: line for line in order.lines}
    lines = {
        id: StoredLine(line.variant_gid, came[id].taken if id in came else 0, line.draws) for id, line in known.items()
    }
    for id, line in came.items():
        if id not in known and line.variant_gid and (drawn := draws.get(line.variant_gid)):
            lines[id] = StoredLine(line.variant_gid, line.taken, drawn)
    return lines


def _said(start: str, words: Sequence[str]) -> str:
    """The words in one sentence that is not too long."""
    text = f"{start}{'; '.join(words)}."
    count = len(words)
    while len(text) > LONGEST and count:
        count -= 1
        text = f"{start}{'; '.join([*words[:count], f'and {len(words) - count} more'])}."
    return text
