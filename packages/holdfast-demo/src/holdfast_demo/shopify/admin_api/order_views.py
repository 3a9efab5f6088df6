"""Orders as the Admin API shows them."""

from typing import Any

from holdfast_demo.shopify.admin_api.connections import Fields, Info, field, lazy, list_source
from holdfast_demo.shopify.admin_api.views import Views, identity_view
from holdfast_demo.shopify.errors import graphql_error
from holdfast_demo.shopify.model import LineItem, Order, Refund, RefundLineItem, format_time, gid
from holdfast_demo.shopify.store import RecordQuery

REACH_SECONDS = 60 * 86_400
"""Seconds after which an app without the scope for all orders cannot read an order."""


class OrderViews:
    """The orders of a shop in one request."""

    def __init__(self, views: Views) -> None:
        self._views = views

    @property
    def reach(self) -> list[tuple[str, Any]]:
        """The condition on orders that the app may read."""
        if "read_all_orders" in self._views.scopes:
            return []
        return [("created > ?", self._views.platform.now() - REACH_SECONDS)]

    def with_id(self, id: int | None) -> Fields | None:
        """An order that the app may read."""
        order = self._views.platform.store.find(Order, self._views.domain, id)
        in_reach = order and (
            "read_all_orders" in self._views.scopes or order.created > self._views.platform.now() - REACH_SECONDS
        )
        return self.order(order) if order and in_reach else None

    def refund_with_id(self, id: int | None) -> Fields | None:
        """A refund of an order that the app may read."""
        having = ("exists (select 1 from json_each(body, '$.refunds') where value ->> 'id' = ?)", id)
        for order in self._views.platform.store.select(Order, self._views.domain, RecordQuery([*self.reach, having])):
            for refund in order.refunds:
                if refund.id == id:
                    return self._refund(order, refund)
        return None

    def order(self, order: Order) -> Fields:
        paging = self._views.paging
        current = sum(line.current for line in order.lines)
        fulfilled_count = sum(line.fulfilled for line in order.lines)
        status = (
            "UNFULFILLED"
            if not fulfilled_count
            else "FULFILLED"
            if fulfilled_count == current
            else "PARTIALLY_FULFILLED"
        )
        return {
            **identity_view(order),
            "name": order.name,
            "number": order.number,
            "confirmed": True,
            "closed": False,
            "closedAt": None,
            "cancelledAt": None if order.cancelled is None else format_time(order.cancelled),
            "cancelReason": order.cancel_reason,
            "processedAt": format_time(order.created),
            "edited": order.edited,
            "test": False,
            "sourceName": "pos" if order.retail else "web",
            "retailLocation": field(lambda info, _: order.retail and self._views.location_with(info, order.retail)),
            "displayFinancialStatus": "REFUNDED" if not current else "PARTIALLY_REFUNDED" if order.refunds else "PAID",
            "displayFulfillmentStatus": status,
            "currentSubtotalLineItemsQuantity": current,
            "subtotalLineItemsQuantity": sum(line.quantity for line in order.lines),
            "lineItems": paging.connection(list_source(order.lines, lambda line: (line.id, line.id)), self._line),
            "refunds": field(
                lambda _, arguments: [self._refund(order, refund) for refund in order.refunds[: arguments.get("first")]]
            ),
        }

    def _line(self, line: LineItem) -> Fields:
        return {
            "__typename": "LineItem",
            "id": gid("LineItem", line.id),
            "name": f"{line.title} - {line.variant_title}",
            "title": line.title,
            "variantTitle": line.variant_title,
            "sku": line.sku or None,
            "quantity": line.quantity,
            "currentQuantity": line.current,
            "unfulfilledQuantity": line.current - line.fulfilled,
            "refundableQuantity": line.current,
            "nonFulfillableQuantity": 0,
            "requiresShipping": True,
            "restockable": True,
            "variant": field(lambda info, _: self._variant(info, line)),
            "product": field(lambda info, _: self._product(info, line)),
        }

    def _variant(self, info: Info, line: LineItem) -> Fields | None:
        self._views.require(info, "read_products")
        return self._views.variant_with(line.variant)

    def _product(self, info: Info, line: LineItem) -> Fields | None:
        variant = self._variant(info, line)
        return variant and variant["product"](info)

    def _refund(self, order: Order, refund: Refund) -> Fields:
        lines = list_source(refund.lines, lambda line: (line.id, line.id))
        return {
            "__typename": "Refund",
            "id": gid("Refund", refund.id),
            "legacyResourceId": str(refund.id),
            "note": refund.note or None,
            "createdAt": format_time(refund.created),
            "updatedAt": format_time(refund.created),
            "processedAt": format_time(refund.created),
            "order": lazy(lambda: self.order(order)),
            "refundLineItems": self._views.paging.connection(lines, lambda line: self._refund_line(order, line)),
        }

    def _refund_line(self, order: Order, refund_line: RefundLineItem) -> Fields:
        lines = [line for line in order.lines if line.id == refund_line.line]
        if not lines:
            raise graphql_error("The line of a refund is gone.", "INTERNAL_SERVER_ERROR")
        return {
            "id": gid("RefundLineItem", refund_line.id),
            "lineItem": self._line(lines[0]),
            "location": field(
                lambda info, _: refund_line.location and self._views.location_with(info, refund_line.location)
            ),
            "quantity": refund_line.quantity,
            "restockType": refund_line.restock,
            "restocked": refund_line.location is not None,
        }
