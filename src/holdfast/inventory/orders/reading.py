"""Reads orders from the platform, where what came does not say all of what they are like now."""

from functools import partial
from typing import Annotated

from msgspec import Meta, Struct

from holdfast.inventory.installs.access import ask
from holdfast.inventory.orders import sql
from holdfast.inventory.orders.model import Back, Count, Line, Moment, Order, taken
from holdfast.inventory.resources import Steps
from holdfast.inventory.shopify.admin import Query
from holdfast.inventory.shopify.platform import Unreachable

USUAL, MOST = {"refunds": 20, "of": 10}, {"refunds": 150, "of": 1}
"""How many refunds of an order, and lines of each, are asked for at once: usually, and where there are more refunds."""

TIMES = 3
"""How often an order is read that changes while it is read."""

Gid = Annotated[str, Meta(pattern=r"^gid://[A-Za-z0-9_-]+/[A-Za-z]+/[1-9][0-9]{0,18}$(?!\n)")]


class Named(Struct):
    """A thing by its global id."""

    id: Gid


class PageInfo(Struct, rename="camel"):
    """Where a page of a list ends."""

    has_next_page: bool
    end_cursor: str | None


class OrderLine(Struct, rename="camel"):
    """A line of an order, with how many units it has now. `variant`: None if it was deleted."""

    id: Gid
    current_quantity: Count
    variant: Named | None


class OrderLines(Struct, rename="camel"):
    """A page of the lines of an order."""

    nodes: list[OrderLine]
    page_info: PageInfo


class _RefundLine(Struct, rename="camel"):
    quantity: Count
    restock_type: str
    line_item: Named


class _RefundLines(Struct, rename="camel"):
    nodes: list[_RefundLine]
    page_info: PageInfo


class _Refund(Struct, rename="camel"):
    id: Gid
    refund_line_items: _RefundLines


class _Order(Struct, rename="camel"):
    name: str
    created_at: Moment
    updated_at: Moment
    line_items: OrderLines
    refunds: list[_Refund]


class _OrderAnswer(Struct):
    order: _Order | None


class _RefundAnswer(Struct):
    node: _Refund | None


ORDER = Query(
    "read_order",
    """
    query Order($id: ID!, $after: String, $refunds: Int!, $of: Int!) {
      order(id: $id) {
        name createdAt updatedAt
        lineItems(first: 50, after: $after) {
          nodes { id currentQuantity variant { id } }
          pageInfo { hasNextPage endCursor }
        }
        refunds(first: $refunds) {
          id
          refundLineItems(first: $of) {
            nodes { quantity restockType lineItem { id } }
            pageInfo { hasNextPage endCursor }
          }
        }
      }
    }
    """,
    _OrderAnswer,
    cost=130,
)
REFUND = Query(
    "read_refund",
    """
    query Refund($id: ID!, $after: String) {
      node(id: $id) {
        ... on Refund {
          id
          refundLineItems(first: 50, after: $after) {
            nodes { quantity restockType lineItem { id } }
            pageInfo { hasNextPage endCursor }
          }
        }
      }
    }
    """,
    _RefundAnswer,
    cost=104,
)


async def read(steps: Steps, shop_id: int, id: int) -> Order | None:
    """An order as it is now; None if the platform does not show it: it was deleted, or is older than 60 days.

    Raises `shop_not_connected`, `Unreachable` and `Refused`.
    """
    for _ in range(TIMES):
        revision = await steps.read(partial(sql.revision, shop_id=shop_id, id=id))
        pages = await _pages(steps, shop_id, f"gid://shopify/Order/{id}")
        if not pages:
            return None
        first = pages[0]
        if any(page.updated_at != first.updated_at for page in pages):
            continue
        back: dict[int, list[Back]] = {}
        for refund in first.refunds:
            for line in await _refunded(steps, shop_id, refund):
                back.setdefault(line.line_item_id, []).append(line)
        lines: list[Line] = []
        for line in (line for page in pages for line in page.line_items.nodes):
            line_id = number(line.id)
            gid = line.variant and line.variant.id
            lines.append(Line(line_id, gid, taken(line.current_quantity, back.get(line_id, ()))))
        refund_ids = frozenset(number(refund.id) for refund in first.refunds)
        return Order(id, first.name[:100], first.created_at, first.updated_at, lines, refund_ids, revision)
    raise Unreachable(f"Order {id} changes while it is read.")


async def _pages(steps: Steps, shop_id: int, gid: str) -> list[_Order]:
    """All pages of an order; none if it is not shown."""
    pages: list[_Order] = []
    after, asked = None, USUAL
    while True:
        order = (await ask(steps, shop_id, ORDER, {"id": gid, "after": after, **asked})).order
        if order is None:
            return []
        if len(order.refunds) == asked["refunds"]:
            if asked is MOST:
                raise RuntimeError(f"{gid} has more refunds than can be read.")
            asked = MOST
            continue
        pages.append(order)
        if not order.line_items.page_info.has_next_page:
            return pages
        after = order.line_items.page_info.end_cursor


async def _refunded(steps: Steps, shop_id: int, refund: _Refund) -> list[Back]:
    """All lines of a refund."""
    lines: list[Back] = []
    while True:
        page = refund.refund_line_items
        lines += [Back(number(each.line_item.id), each.quantity, each.restock_type) for each in page.nodes]
        if not page.page_info.has_next_page:
            return lines
        more = (await ask(steps, shop_id, REFUND, {"id": refund.id, "after": page.page_info.end_cursor})).node
        if more is None:
            raise Unreachable(f"{refund.id} is not shown any more.")
        refund = more


def number(gid: str) -> int:
    """The number in a global id."""
    return int(gid.rpartition("/")[2])
