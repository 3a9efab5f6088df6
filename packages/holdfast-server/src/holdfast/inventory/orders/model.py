"""Orders of the storefront platform, as far as stock depends on them, and what each does to the stock."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from holdfast.inventory.catalog.model import VariantName
from holdfast.inventory.partner_webhooks.payloads import OrderPayload, RefundedLine
from holdfast.inventory.stock.ledger_rules import Posting

MAX_NAME_CHARACTERS = 100
"""The most characters of the name of an order."""

NO_NAME = VariantName(None, None)

MAX_REASON_CHARACTERS = 500
"""The most characters of a reason."""


class OrderedLine(Struct, frozen=True):
    """A line of an order.

    variant_gid    None: it is not a variant of the shop, or no longer
    taken          how many units are taken: those ordered that did not come back into stock
    returned       units that came back into stock, of each refund, the oldest first
    """

    id: int
    variant_gid: str | None
    taken: int
    returned: Sequence[int] = ()


class Order(Struct, frozen=True):
    """An order as it was at one moment.

    name         what the merchant calls it, such as `#1001`; "": not known
    placed_at    when it was made, by the platform's clock
    updated_at   when it changed last, by the platform's clock and in whole seconds
    refund_ids   the refunds that it has
    revision     of the stored order before it was read from the platform; None: it came in a webhook
    """

    id: int
    name: str
    placed_at: datetime
    updated_at: datetime
    lines: Sequence[OrderedLine]
    refund_ids: frozenset[int] = frozenset()
    revision: int | None = None

    @property
    def gid(self) -> str:
        return f"gid://shopify/Order/{self.id}"


UnitsByPool: TypeAlias = Mapping[int, int]
"""The units that one sale takes of each pool, by the id of the pool."""


class StoredLine(Struct):
    """A row of `order_lines`.

    units_by_pool  as they were when the order was placed
    returned       how many units came back into stock
    """

    variant_gid: str
    taken: int
    units_by_pool: UnitsByPool
    returned: int = 0


class StoredOrder(Struct):
    """A row of `orders`, with those of its lines that draw on pools."""

    updated_at: datetime
    revision: int
    lines: dict[int, StoredLine]


def ordered_units(current: int, refunded: Sequence[RefundedLine]) -> int:
    """How many units of a line are taken: the present ones, and removed ones that did not come back."""
    return current + sum(refund.quantity for refund in refunded if refund.is_lost)


def returned_units(refunded: Sequence[RefundedLine]) -> list[int]:
    """How many units of a line came back into stock, of each refund."""
    return [refund.quantity for refund in refunded if refund.quantity and not refund.is_lost]


def from_payload(order: OrderPayload) -> Order:
    """The order in the payload of a webhook."""
    lines: list[OrderedLine] = []
    for line in order.line_items:
        returned = [
            refunded
            for refund in sorted(order.refunds, key=lambda refund: refund.id)
            for refunded in refund.refund_line_items
            if refunded.line_item_id == line.id
        ]
        current = line.current_quantity
        if current is None:
            current = max(0, line.quantity - sum(refunded.quantity for refunded in returned))
        gid = None if line.variant_id is None else f"gid://shopify/ProductVariant/{line.variant_id}"
        lines.append(OrderedLine(line.id, gid, ordered_units(current, returned), returned_units(returned)))
    refund_ids = frozenset(refund.id for refund in order.refunds)
    updated_at = order.updated_at.replace(microsecond=0)
    return Order(order.id, order.name[:MAX_NAME_CHARACTERS], order.created_at, updated_at, lines, refund_ids)


class AmbiguousOrder(Exception):
    """The webhooks do not say how the order is now. It must be read from the platform."""


class OrderEffect(NamedTuple):
    """The changes of an order that are to be stored, and what they do to pools.

    lines           those that are new or different
    level_changes   each variant with a change of one of its levels at the platform: a sale of two is -2
    not_before      a moment that is not after these changes
    """

    order: Order
    lines: Mapping[int, StoredLine]
    postings: Sequence[Posting]
    level_changes: Sequence[tuple[str, int]]
    not_before: datetime
    reason: str


def order_effect(
    order: Order,
    stored_order: StoredOrder | None,
    pools_by_variant: Mapping[str, UnitsByPool],
    names: Mapping[str, VariantName],
) -> OrderEffect | None:
    """What an order does, given what is stored of it; None if it does nothing.

    pools_by_variant    for each variant the units of each pool, as they were when the order was placed
    names               the names of variants

    Raises `AmbiguousOrder` if it has changed twice in one second and the last change is not known, or if some of its
    lines are missing.
    """
    if stored_order and order.updated_at < stored_order.updated_at:
        return None
    stored_lines = stored_order.lines if stored_order else {}
    current_lines = _lines(order, stored_lines, pools_by_variant)
    changed_lines = {
        id: line for id, line in current_lines.items() if id not in stored_lines or stored_lines[id].taken != line.taken
    }
    returns = {line.id: line.returned for line in order.lines}
    if stored_order:
        was_read = order.revision == stored_order.revision
        if changed_lines and order.updated_at == stored_order.updated_at and not was_read:
            raise AmbiguousOrder
        if order.revision is None and stored_lines.keys() - {line.id for line in order.lines}:
            raise AmbiguousOrder
        if not changed_lines and order.updated_at == stored_order.updated_at:
            return None
    elif not current_lines:
        return None
    units_by_pool: dict[int, dict[str, int]] = {}
    level_changes: list[tuple[str, int]] = []
    sold: dict[str, int] = {}
    returned: dict[str, int] = {}
    for id, line in changed_lines.items():
        units_delta = line.taken - (stored_lines[id].taken if id in stored_lines else 0)
        for pool_id, units in line.units_by_pool.items():
            units_by_variant = units_by_pool.setdefault(pool_id, {})
            units_by_variant[line.variant_gid] = units_by_variant.get(line.variant_gid, 0) + units_delta * units
        level_changes += [
            (line.variant_gid, change) for change in _level_changes(line, stored_lines.get(id), returns.get(id, ()))
        ]
        if units_delta:
            units_by_gid = sold if units_delta > 0 else returned
            units_by_gid[line.variant_gid] = units_by_gid.get(line.variant_gid, 0) + abs(units_delta)
    postings = [
        Posting(pool_id, "sale" if net_units > 0 else "cancel", -net_units, by_variant=units_by_variant)
        for pool_id, units_by_variant in units_by_pool.items()
        if (net_units := sum(units_by_variant.values()))
    ]
    words = [
        f"{units} of {names.get(gid, NO_NAME).words(gid)} {verb}"
        for units_by_gid, verb in ((sold, "sold"), (returned, "came back"))
        for gid, units in units_by_gid.items()
    ]
    not_before = stored_order.updated_at if stored_order else order.placed_at
    return OrderEffect(
        order, changed_lines, postings, level_changes, not_before, _reason(f"Order {order.name or order.id}: ", words)
    )


def _level_changes(line: StoredLine, stored_line: StoredLine | None, returns: Sequence[int]) -> list[int]:
    """The changes that a line has made to levels since it was stored: each return can be at another location."""
    stored_units, stored_returns = (stored_line.taken, stored_line.returned) if stored_line else (0, 0)
    more_ordered = line.taken + line.returned - stored_units - stored_returns
    more_returned = line.returned - stored_returns
    returned_units: list[int] = []
    for units in reversed(returns):
        if sum(returned_units) + units <= more_returned:
            returned_units.append(units)
    if sum(returned_units) != more_returned:
        returned_units = [more_returned]
    return [change for change in (-more_ordered, *returned_units) if change]


def _lines(
    order: Order, stored_lines: Mapping[int, StoredLine], pools_by_variant: Mapping[str, UnitsByPool]
) -> dict[int, StoredLine]:
    """The lines that draw on pools, as they are now. A stored line that did not come has taken nothing."""
    present_lines: dict[int, OrderedLine] = {line.id: line for line in order.lines}
    lines = {
        id: StoredLine(
            line.variant_gid,
            present_lines[id].taken if id in present_lines else 0,
            line.units_by_pool,
            sum(present_lines[id].returned) if id in present_lines else line.returned,
        )
        for id, line in stored_lines.items()
    }
    for id, line in present_lines.items():
        if id not in stored_lines and line.variant_gid and (units_by_pool := pools_by_variant.get(line.variant_gid)):
            lines[id] = StoredLine(line.variant_gid, line.taken, units_by_pool, sum(line.returned))
    return lines


def _reason(start: str, words: Sequence[str]) -> str:
    """A sentence of the words, of at most `MAX_REASON_CHARACTERS` characters."""
    text = f"{start}{'; '.join(words)}."
    count = len(words)
    while len(text) > MAX_REASON_CHARACTERS and count:
        count -= 1
        text = f"{start}{'; '.join([*words[:count], f'and {len(words) - count} more'])}."
    return text
