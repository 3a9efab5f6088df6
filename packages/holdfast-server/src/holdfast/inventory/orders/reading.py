"""Reads orders from the platform: one whose webhook does not say how it is now, and past orders, page by page."""

import datetime as dt
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, Struct

from holdfast.inventory.installs.access import call_admin_api
from holdfast.inventory.orders import sql
from holdfast.inventory.orders.model import MAX_NAME_CHARACTERS, Order, OrderedLine, ordered_units, returned_units
from holdfast.inventory.partner_webhooks.payloads import (
    Count,
    Moment,
    RefundedLine,
)
from holdfast.inventory.resources import Steps
from holdfast.inventory.shopify.admin import Query
from holdfast.inventory.shopify.platform_client import PlatformUnreachable, display_text

PAGE_SIZES, MANY_REFUNDS_PAGE_SIZES = {"refunds": 20, "of": 10}, {"refunds": 150, "of": 1}
"""How many refunds of an order, and lines of each, one call reads: usually, and for an order with more refunds."""

MAX_READS = 3
"""How often an order is read at most while it changes."""

Gid = Annotated[str, Meta(pattern=r"^gid://[A-Za-z0-9_-]+/[A-Za-z]+/[1-9][0-9]{0,18}$(?!\n)")]

MAX_REFUNDS = 2
"""The refunds of an order from which on it may have more than a page shows, and is read alone."""


class NodeId(Struct):
    """The global id of an object at the platform."""

    id: Gid


class PageInfo(Struct, rename="camel"):
    """The end of a page of a list."""

    has_next_page: bool
    end_cursor: str | None


class OrderLineNode(Struct, rename="camel"):
    """A line of an order, with how many units it has now. `variant`: None if it was deleted."""

    id: Gid
    current_quantity: Count
    variant: NodeId | None


class OrderLinesPage(Struct, rename="camel"):
    """A page of the lines of an order."""

    nodes: list[OrderLineNode]
    page_info: PageInfo


class _RefundLineNode(Struct, rename="camel"):
    quantity: Count
    restock_type: str
    line_item: NodeId


class _RefundLinesPage(Struct, rename="camel"):
    nodes: list[_RefundLineNode]
    page_info: PageInfo


class _RefundNode(Struct, rename="camel"):
    id: Gid
    refund_line_items: _RefundLinesPage


class OrderNode(Struct, rename="camel"):
    """An order as the platform shows it."""

    created_at: Moment
    updated_at: Moment
    line_items: OrderLinesPage
    refunds: list[_RefundNode]
    name: Any = None


class _OrderAnswer(Struct):
    order: OrderNode | None


class _RefundAnswer(Struct):
    node: _RefundNode | None


READ_ORDER = Query(
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

READ_REFUND = Query(
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


async def read_order(steps: Steps, shop_id: int, id: int) -> Order | None:
    """An order as it is now; None if the platform does not show it: it was deleted, or is older than 60 days.

    Raises `shop_not_connected`, `PlatformUnreachable` and `PlatformRefusal`.
    """
    for _ in range(MAX_READS):
        revision = await steps.read(partial(sql.stored_revision, shop_id=shop_id, id=id))
        pages = await _pages(steps, shop_id, f"gid://shopify/Order/{id}")
        if not pages:
            return None
        first = pages[0]
        if any(page.updated_at != first.updated_at for page in pages):
            continue
        refunded: dict[int, list[RefundedLine]] = {}
        for refund in sorted(first.refunds, key=lambda refund: gid_number(refund.id)):
            for line in await _refund_lines(steps, shop_id, refund):
                refunded.setdefault(line.line_item_id, []).append(line)
        lines = [line for page in pages for line in page.line_items.nodes]
        return order_of(id, first, lines, refunded, revision)
    raise PlatformUnreachable(f"Order {id} changes while it is read.")


def order_of(
    id: int,
    node: OrderNode,
    lines: Sequence[OrderLineNode],
    refunded: Mapping[int, Sequence[RefundedLine]],
    revision: int | None = None,
) -> Order:
    """The order of a node.

    lines       all of its lines
    refunded    by line, what was refunded of it
    revision    of the stored order before it was read
    """
    ordered_lines: list[OrderedLine] = []
    for line in lines:
        line_id = gid_number(line.id)
        gid = line.variant and line.variant.id
        back = refunded.get(line_id, ())
        ordered_lines.append(
            OrderedLine(line_id, gid, ordered_units(line.current_quantity, back), returned_units(back))
        )
    return Order(
        id,
        display_text(node.name)[:MAX_NAME_CHARACTERS],
        node.created_at,
        node.updated_at,
        ordered_lines,
        frozenset(gid_number(refund.id) for refund in node.refunds),
        revision,
    )


def refunded_lines(node: OrderNode) -> dict[int, list[RefundedLine]]:
    """The refunds of each line, by its id, as far as the node shows them."""
    refunded: dict[int, list[RefundedLine]] = {}
    for refund in sorted(node.refunds, key=lambda refund: gid_number(refund.id)):
        for line in _refunded(refund.refund_line_items):
            refunded.setdefault(line.line_item_id, []).append(line)
    return refunded


def _refunded(page: _RefundLinesPage) -> list[RefundedLine]:
    return [RefundedLine(gid_number(line.line_item.id), line.quantity, line.restock_type) for line in page.nodes]


async def _pages(steps: Steps, shop_id: int, gid: str) -> list[OrderNode]:
    """All pages of an order; none if the platform does not show it."""
    pages: list[OrderNode] = []
    after, page_sizes = None, PAGE_SIZES
    while True:
        order = (await call_admin_api(steps, shop_id, READ_ORDER, {"id": gid, "after": after, **page_sizes})).order
        if order is None:
            return []
        if len(order.refunds) == page_sizes["refunds"]:
            if page_sizes is MANY_REFUNDS_PAGE_SIZES:
                raise RuntimeError(f"{gid} has more refunds than can be read.")
            page_sizes = MANY_REFUNDS_PAGE_SIZES
            continue
        pages.append(order)
        if not order.line_items.page_info.has_next_page:
            return pages
        after = order.line_items.page_info.end_cursor


async def _refund_lines(steps: Steps, shop_id: int, refund: _RefundNode) -> list[RefundedLine]:
    """All lines of a refund."""
    lines: list[RefundedLine] = []
    while True:
        page = refund.refund_line_items
        lines += _refunded(page)
        if not page.page_info.has_next_page:
            return lines
        variables = {"id": refund.id, "after": page.page_info.end_cursor}
        more = (await call_admin_api(steps, shop_id, READ_REFUND, variables)).node
        if more is None:
            raise PlatformUnreachable(f"{refund.id} is not shown any more.")
        refund = more


def gid_number(gid: str) -> int:
    """The number in a global id."""
    return int(gid.rpartition("/")[2])


class PastOrders(NamedTuple):
    """A page of orders. `cursor`: of the next page; empty: this is the last one."""

    orders: Sequence[Order]
    cursor: str


class _PastOrderNode(OrderNode, kw_only=True):
    id: Gid


class _PastOrdersPage(Struct, rename="camel"):
    nodes: list[_PastOrderNode]
    page_info: PageInfo


class _PastOrdersAnswer(Struct):
    orders: _PastOrdersPage


READ_PAST_ORDERS = Query(
    "read_past_orders",
    """
    query PastOrders($placed: String!, $after: String) {
      orders(first: 20, sortKey: CREATED_AT, reverse: true, query: $placed, after: $after) {
        nodes {
          id name createdAt updatedAt
          lineItems(first: 10) {
            nodes { id currentQuantity variant { id } }
            pageInfo { hasNextPage endCursor }
          }
          refunds(first: 2) {
            id
            refundLineItems(first: 5) {
              nodes { quantity restockType lineItem { id } }
              pageInfo { hasNextPage endCursor }
            }
          }
        }
        pageInfo { hasNextPage endCursor }
      }
    }
    """,
    _PastOrdersAnswer,
    cost=722,
    is_background=True,
)


async def read_past_orders(
    steps: Steps, shop_id: int, since: dt.datetime, until: dt.datetime, cursor: str = ""
) -> PastOrders:
    """A page of the orders that were placed between two moments. Raises as `read_order` does."""
    search_query = f"created_at:>='{_query_time(since)}' AND created_at:<='{_query_time(until)}'"
    answer = await call_admin_api(steps, shop_id, READ_PAST_ORDERS, {"placed": search_query, "after": cursor or None})
    orders = [order for node in answer.orders.nodes if (order := await _order(steps, shop_id, node))]
    info = answer.orders.page_info
    return PastOrders(orders, (info.end_cursor or "") if info.has_next_page else "")


def _query_time(moment: dt.datetime) -> str:
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def _order(steps: Steps, shop_id: int, node: _PastOrderNode) -> Order | None:
    """The order of a node. If the page has not all of it, it is read alone; None if it was deleted meanwhile."""
    id = gid_number(node.id)
    is_whole = (
        len(node.refunds) < MAX_REFUNDS
        and not node.line_items.page_info.has_next_page
        and not any(refund.refund_line_items.page_info.has_next_page for refund in node.refunds)
    )
    if not is_whole:
        return await read_order(steps, shop_id, id)
    return order_of(id, node, node.line_items.nodes, refunded_lines(node))
