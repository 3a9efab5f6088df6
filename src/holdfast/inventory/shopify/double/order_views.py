"""Orders as the Admin API shows them."""

from typing import Any

from holdfast.inventory.shopify.double.connections import Info, View, field, lazy, of
from holdfast.inventory.shopify.double.errors import failed
from holdfast.inventory.shopify.double.model import Line, Order, Refund, RefundLine, gid, moment
from holdfast.inventory.shopify.double.store import Wanted
from holdfast.inventory.shopify.double.views import Views, stamped

REACH = 60 * 86_400
"""Seconds after which an order is out of reach for apps that may not read all of them."""


class OrderViews:
    """What one request sees of the orders of a shop."""

    def __init__(self, views: Views) -> None:
        self._views = views

    @property
    def reach(self) -> list[tuple[str, Any]]:
        """Which orders the app may read."""
        if "read_all_orders" in self._views.scopes:
            return []
        return [("created > ?", self._views.world.now() - REACH)]

    def with_id(self, id: int | None) -> View | None:
        """An order that the app may read."""
        found = self._views.world.store.find(Order, self._views.domain, id)
        in_reach = found and (
            "read_all_orders" in self._views.scopes or found.created > self._views.world.now() - REACH
        )
        return self.order(found) if found and in_reach else None

    def refund_with_id(self, id: int | None) -> View | None:
        """A refund of an order that the app may read."""
        having = ("exists (select 1 from json_each(body, '$.refunds') where value ->> 'id' = ?)", id)
        for order in self._views.world.store.some(Order, self._views.domain, Wanted([*self.reach, having])):
            for refund in order.refunds:
                if refund.id == id:
                    return self._refund(order, refund)
        return None

    def order(self, order: Order) -> View:
        paging = self._views.paging
        current = sum(each.current for each in order.lines)
        sent = sum(each.fulfilled for each in order.lines)
        status = "UNFULFILLED" if not sent else "FULFILLED" if sent == current else "PARTIALLY_FULFILLED"
        return {
            **stamped(order),
            "name": order.name,
            "number": order.number,
            "confirmed": True,
            "closed": False,
            "closedAt": None,
            "cancelledAt": None if order.cancelled is None else moment(order.cancelled),
            "cancelReason": order.cancel_reason,
            "processedAt": moment(order.created),
            "edited": order.edited,
            "test": False,
            "sourceName": "pos" if order.retail else "web",
            "retailLocation": field(lambda info, _: order.retail and self._views.location_with(info, order.retail)),
            "displayFinancialStatus": "REFUNDED" if not current else "PARTIALLY_REFUNDED" if order.refunds else "PAID",
            "displayFulfillmentStatus": status,
            "currentSubtotalLineItemsQuantity": current,
            "subtotalLineItemsQuantity": sum(each.quantity for each in order.lines),
            "lineItems": paging.connection(of(order.lines, lambda each: (each.id, each.id)), self._line),
            "refunds": field(
                lambda _, given: [self._refund(order, each) for each in order.refunds[: given.get("first")]]
            ),
        }

    def _line(self, line: Line) -> View:
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

    def _variant(self, info: Info, line: Line) -> View | None:
        self._views.require(info, "read_products")
        return self._views.variant_with(line.variant)

    def _product(self, info: Info, line: Line) -> View | None:
        variant = self._variant(info, line)
        return variant and variant["product"](info)

    def _refund(self, order: Order, refund: Refund) -> View:
        lines = of(refund.lines, lambda each: (each.id, each.id))
        return {
            "__typename": "Refund",
            "id": gid("Refund", refund.id),
            "legacyResourceId": str(refund.id),
            "note": refund.note or None,
            "createdAt": moment(refund.created),
            "updatedAt": moment(refund.created),
            "processedAt": moment(refund.created),
            "order": lazy(lambda: self.order(order)),
            "refundLineItems": self._views.paging.connection(lines, lambda each: self._refund_line(order, each)),
        }

    def _refund_line(self, order: Order, taken: RefundLine) -> View:
        lines = [each for each in order.lines if each.id == taken.line]
        if not lines:
            raise failed("The line of a refund is gone.", "INTERNAL_SERVER_ERROR")
        return {
            "id": gid("RefundLineItem", taken.id),
            "lineItem": self._line(lines[0]),
            "location": field(lambda info, _: taken.location and self._views.location_with(info, taken.location)),
            "quantity": taken.quantity,
            "restockType": taken.restock,
            "restocked": taken.location is not None,
        }
