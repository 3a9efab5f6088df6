"""Orders of the storefront platform, as far as stock depends on them."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from holdfast.inventory.webhooks.payloads import OrderPayload, RefundedLine

MAX_NAME_CHARACTERS = 100
"""The most characters of the name of an order."""


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


class StoredLine(Struct):
    """A row of `order_lines`.

    draws       the units that one sale takes of each pool
    returned    how many units came back into stock
    """

    variant_gid: str
    taken: int
    draws: Mapping[int, int]
    returned: int = 0


class StoredOrder(Struct):
    """A row of `orders`, with those of its lines that draw on pools."""

    updated_at: datetime
    revision: int
    lines: dict[int, StoredLine]


def taken_units(current: int, refunded: Sequence[RefundedLine]) -> int:
    """How many units of a line are taken: the present ones, and removed ones that did not come back."""
    return current + sum(back.quantity for back in refunded if back.is_lost)


def returned_units(refunded: Sequence[RefundedLine]) -> list[int]:
    """How many units of a line came back into stock, of each refund."""
    return [back.quantity for back in refunded if back.quantity and not back.is_lost]


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
        lines.append(OrderedLine(line.id, gid, taken_units(current, returned), returned_units(returned)))
    refund_ids = frozenset(refund.id for refund in order.refunds)
    updated_at = order.updated_at.replace(microsecond=0)
    return Order(order.id, order.name[:MAX_NAME_CHARACTERS], order.created_at, updated_at, lines, refund_ids)
