"""Finds orders whose last webhook did not come: the platform is asked every hour for changed orders."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from functools import partial

import structlog
from msgspec import Struct

from holdfast.inventory.installs.access import call_admin_api
from holdfast.inventory.installs.model import ShopTask
from holdfast.inventory.orders import sql
from holdfast.inventory.orders.handling import read_and_apply_order
from holdfast.inventory.orders.reading import Gid, NodeId, OrderLineNode, OrderLinesPage, PageInfo, gid_number
from holdfast.inventory.partner_webhooks.payloads import Moment
from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.resources import Reader, Steps
from holdfast.inventory.shopify.admin import Query
from holdfast.kit.contract.problems import Problem

OVERLAP = timedelta(minutes=2)
"""How far before the last known change to search again: the platform's lists may lag behind."""

log = structlog.get_logger()


class _ListedOrder(Struct, rename="camel"):
    id: Gid
    updated_at: Moment
    line_items: OrderLinesPage
    refunds: list[NodeId]


class _OrdersPage(Struct, rename="camel"):
    nodes: list[_ListedOrder]
    page_info: PageInfo


class _OrdersAnswer(Struct):
    orders: _OrdersPage


LIST_ORDERS = Query(
    "list_orders",
    """
    query Orders($changed: String!, $after: String) {
      orders(first: 50, sortKey: UPDATED_AT, query: $changed, after: $after) {
        nodes {
          id updatedAt
          lineItems(first: 5) { nodes { id currentQuantity variant { id } } pageInfo { hasNextPage endCursor } }
          refunds(first: 1) { id }
        }
        pageInfo { hasNextPage endCursor }
      }
    }
    """,
    _OrdersAnswer,
    cost=702,
)


async def catch_up(steps: Steps, task: ShopTask) -> int:
    """Apply what changed at the platform since the last time. Returns how many orders were not known."""
    try:
        return await _apply_changed_orders(steps, task.shop_id)
    except Problem as problem:
        if problem.type is not SHOP_NOT_CONNECTED:
            raise
        log.warning("a shop cannot catch up with its orders", shop=task.shop_id, why=problem.message)
        return 0


async def _apply_changed_orders(steps: Steps, shop_id: int) -> int:
    since = await steps.read(partial(sql.caught_up_until, shop_id=shop_id))
    total, after = 0, None
    while since:
        search_query = f"updated_at:>='{(since - OVERLAP).strftime('%Y-%m-%dT%H:%M:%SZ')}'"
        page = (await call_admin_api(steps, shop_id, LIST_ORDERS, {"changed": search_query, "after": after})).orders
        for order_id in await steps.read(partial(_find_missed, shop_id=shop_id, orders=page.nodes)):
            total += await _apply_order(steps, shop_id, order_id)
        if page.nodes:
            until = page.nodes[-1].updated_at
            await steps.transact(partial(sql.store_caught_up, shop_id=shop_id, until=until))
        if not page.page_info.has_next_page:
            break
        after = page.page_info.end_cursor
    if total:
        log.warning("orders were counted of which no webhook came", shop=shop_id, orders=total)
    return total


async def _apply_order(steps: Steps, shop_id: int, id: int) -> bool:
    """Apply an order as it is at the platform now. Returns whether that has changed what is stored of it."""
    revision = partial(sql.stored_revision, shop_id=shop_id, id=id)
    before = await steps.read(revision)
    await read_and_apply_order(steps, shop_id, id)
    return await steps.read(revision) != before


async def _find_missed(reader: Reader, *, shop_id: int, orders: Sequence[_ListedOrder]) -> list[int]:
    """The ids of the orders of a list that must be read.

    These are orders whose stored form is older, and orders that are not stored although one of their variants was
    linked once. An order of the same second is read too if the list does not show that it is equal: an order can
    change twice in a second.
    """
    stored_orders = await sql.find_orders(reader, shop_id, {gid_number(order.id) for order in orders})
    gids = {line.variant.id for order in orders for line in order.line_items.nodes if line.variant}
    linked = await sql.find_ever_linked(reader, shop_id, gids)

    def is_missed(order: _ListedOrder) -> bool:
        stored_order = stored_orders.get(gid_number(order.id))
        lines, has_more = order.line_items.nodes, order.line_items.page_info.has_next_page
        if stored_order is None:
            return has_more or any(_is_linked(line, linked) for line in lines)
        if stored_order.updated_at != order.updated_at:
            return stored_order.updated_at < order.updated_at
        if has_more or order.refunds:
            return True  # What was refunded may be taken nevertheless, and the list does not say that.
        present_units = {gid_number(line.id): line.current_quantity for line in lines if _is_linked(line, linked)}
        return present_units != {id: line.taken for id, line in stored_order.lines.items()}

    return [gid_number(order.id) for order in orders if is_missed(order)]


def _is_linked(line: OrderLineNode, linked: Collection[str]) -> bool:
    return line.variant is not None and line.variant.id in linked
