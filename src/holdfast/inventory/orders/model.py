"""Orders of the storefront platform, as far as stock depends on them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

MOST = 10**9
"""The most units of a line. What is above is no order, and would count beyond what a pool can lack."""

Number = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Count = Annotated[int, Meta(ge=0, le=MOST)]
Moment = Annotated[datetime, Meta(tz=True)]


class Line(Struct, frozen=True):
    """A line of an order.

    variant_gid    None: it is not a variant of the shop, or no longer
    taken          how many of it are taken: what was ordered, and did not come back into stock
    """

    id: int
    variant_gid: str | None
    taken: int


class Order(Struct, frozen=True):
    """An order as it was at one moment.

    name         what the merchant calls it, such as `#1001`
    placed_at    when it was made, by the platform's clock
    updated_at   when it became so, by the platform's clock and in whole seconds
    refund_ids   the refunds that it has
    revision     of what was stored of it before it was read from the platform; None: it came in a webhook
    """

    id: int
    name: str | None
    placed_at: datetime
    updated_at: datetime
    lines: Sequence[Line]
    refund_ids: frozenset[int] = frozenset()
    revision: int | None = None

    @property
    def gid(self) -> str:
        return f"gid://shopify/Order/{self.id}"


class StoredLine(Struct):
    """A line as it is stored. `draws`: how much one takes of each pool."""

    variant_gid: str
    taken: int
    draws: Mapping[int, int]


class StoredOrder(Struct):
    """An order as it is stored, with those of its lines that draw on pools."""

    updated_at: datetime
    revision: int
    lines: dict[int, StoredLine]


class Back(Struct):
    """A line of a refund: units that are not paid for any more, and maybe came back into stock."""

    line_item_id: Number
    quantity: Count
    restock_type: str | None = None

    @property
    def is_lost(self) -> bool:
        """Whether they did not come back into stock."""
        return (self.restock_type or "").lower() == "no_restock"


def taken(current: int, refunded: Sequence[Back]) -> int:
    """How many of a line are taken: those that the order still has, and those that left it and did not come back."""
    return current + sum(back.quantity for back in refunded if back.is_lost)


class _Line(Struct):
    id: Number
    quantity: Count
    current_quantity: Count | None = None
    variant_id: Number | None = None


class _Refund(Struct):
    id: Number
    refund_line_items: list[Back] = []


class _Order(Struct):
    id: Number
    created_at: Moment
    updated_at: Moment
    name: Annotated[str, Meta(max_length=100)] | None = None
    line_items: list[_Line] = []
    refunds: list[_Refund] = []


def from_webhook(payload: bytes) -> Order:
    """The order in the body of a webhook. Raises `msgspec.ValidationError`."""
    order = msgspec.json.decode(payload, type=_Order, strict=False)
    lines: list[Line] = []
    for line in order.line_items:
        back = [each for refund in order.refunds for each in refund.refund_line_items if each.line_item_id == line.id]
        current = line.current_quantity
        if current is None:
            current = max(0, line.quantity - sum(each.quantity for each in back))
        gid = None if line.variant_id is None else f"gid://shopify/ProductVariant/{line.variant_id}"
        lines.append(Line(line.id, gid, taken(current, back)))
    refund_ids = frozenset(refund.id for refund in order.refunds)
    updated_at = order.updated_at.replace(microsecond=0)
    return Order(order.id, order.name, order.created_at, updated_at, lines, refund_ids)
