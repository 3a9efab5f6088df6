"""Reads past orders from the platform, page by page, the newest first. Each is as the ledger would count it now."""

import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from holdfast.inventory.installs.access import ask
from holdfast.inventory.orders.model import Order
from holdfast.inventory.orders.reading import (
    Gid,
    OrderNode,
    PageInfo,
    gid_number,
    order_of,
    read_order,
    refunded_lines,
)
from holdfast.inventory.resources import Steps
from holdfast.inventory.shopify.admin import Query

MAX_REFUNDS = 2
"""An order with so many refunds may have more: it is read alone."""


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
    placed = f"created_at:>='{_query_time(since)}' AND created_at:<='{_query_time(until)}'"
    answer = await ask(steps, shop_id, READ_PAST_ORDERS, {"placed": placed, "after": cursor or None})
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
