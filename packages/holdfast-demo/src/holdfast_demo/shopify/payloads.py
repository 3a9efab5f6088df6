"""The bodies of webhooks: objects as the older API of the platform shows them, with people and addresses."""

from collections.abc import Sequence
from typing import Any

from holdfast_demo.shopify.levels import Level
from holdfast_demo.shopify.model import Bulk, Location, Order, Product, Refund, Shop, Variant, gid, shop_time

Payload = dict[str, Any]

SAMPLE_CUSTOMER: Payload = {
    "id": 7001,
    "email": "ada@example.com",
    "first_name": "Ada",
    "last_name": "Lovelace",
    "phone": "+491701234567",
    "default_address": {"address1": "12 St James's Square", "city": "London", "country": "United Kingdom"},
}
"""The customer of every order. Tests search for this data where none may be stored."""


def level(level: Level) -> Payload:
    return {
        "inventory_item_id": level.item,
        "location_id": level.location,
        "available": level.available,
        "updated_at": shop_time(level.updated),
        "admin_graphql_api_id": level.gid,
    }


def level_gone(level: Level) -> Payload:
    return {"inventory_item_id": level.item, "location_id": level.location}


def item(variant: Variant) -> Payload:
    return {
        "id": variant.item,
        "sku": variant.sku,
        "created_at": shop_time(variant.created),
        "updated_at": shop_time(variant.updated),
        "requires_shipping": True,
        "tracked": variant.tracked,
        "admin_graphql_api_id": gid("InventoryItem", variant.item),
    }


def location(location: Location) -> Payload:
    return {
        "id": location.id,
        "name": location.name,
        "active": location.active,
        "legacy": location.service,
        "created_at": shop_time(location.created),
        "updated_at": shop_time(location.updated),
        "admin_graphql_api_id": location.gid,
    }


def product(product: Product, variants: Sequence[Variant]) -> Payload:
    return {
        "id": product.id,
        "title": product.title,
        "handle": product.handle,
        "status": product.status.lower(),
        "created_at": shop_time(product.created),
        "updated_at": shop_time(product.updated),
        "admin_graphql_api_id": product.gid,
        "variants": [
            {
                "id": variant.id,
                "product_id": variant.product,
                "title": variant.title,
                "sku": variant.sku,
                "price": variant.price,
                "position": variant.position,
                "inventory_policy": variant.policy.lower(),
                "inventory_item_id": variant.item,
                "inventory_management": "shopify" if variant.tracked else None,
                "created_at": shop_time(variant.created),
                "updated_at": shop_time(variant.updated),
                "admin_graphql_api_id": variant.gid,
            }
            for variant in variants
        ],
    }


def order(order: Order) -> Payload:
    lines = [
        {
            "id": line.id,
            "admin_graphql_api_id": gid("LineItem", line.id),
            "variant_id": line.variant,
            "title": line.title,
            "variant_title": line.variant_title,
            "name": f"{line.title} - {line.variant_title}",
            "sku": line.sku,
            "price": line.price,
            "quantity": line.quantity,
            "current_quantity": line.current,
            "fulfillable_quantity": line.current - line.fulfilled,
            "variant_inventory_management": "shopify",
            "properties": [{"name": "Engraving", "value": f"For {SAMPLE_CUSTOMER['first_name']}"}],
        }
        for line in order.lines
    ]
    return {
        "id": order.id,
        "admin_graphql_api_id": order.gid,
        "name": order.name,
        "order_number": order.number,
        "created_at": shop_time(order.created),
        "updated_at": shop_time(order.updated),
        "cancelled_at": None if order.cancelled is None else shop_time(order.cancelled),
        "cancel_reason": order.cancel_reason and order.cancel_reason.lower(),
        "closed_at": None,
        "location_id": order.retail,
        "source_name": "pos" if order.retail else "web",
        "test": False,
        "email": SAMPLE_CUSTOMER["email"],
        "phone": SAMPLE_CUSTOMER["phone"],
        "customer": SAMPLE_CUSTOMER,
        "billing_address": {**SAMPLE_CUSTOMER["default_address"], "name": "Ada Lovelace"},
        "shipping_address": {**SAMPLE_CUSTOMER["default_address"], "name": "Ada Lovelace"},
        "note": "Please ring twice.",
        "line_items": lines,
        "refunds": [refund(order, item) for item in order.refunds],
    }


def refund(order: Order, refund: Refund) -> Payload:
    return {
        "id": refund.id,
        "order_id": order.id,
        "created_at": shop_time(refund.created),
        "processed_at": shop_time(refund.created),
        "note": refund.note,
        "admin_graphql_api_id": gid("Refund", refund.id),
        "refund_line_items": [
            {
                "id": line.id,
                "line_item_id": line.line,
                "quantity": line.quantity,
                "restock_type": line.restock.lower(),
                "location_id": line.location,
            }
            for line in refund.lines
        ],
    }


def order_edit(order: Order, id: int, at: float, additions: dict[int, int], removals: dict[int, int]) -> Payload:
    """The body of `orders/edited`: by line, how many units were added and removed."""
    return {
        "order_edit": {
            "id": id,
            "order_id": order.id,
            "created_at": shop_time(at),
            "committed_at": shop_time(at),
            "line_items": {
                "additions": [{"id": line, "delta": delta} for line, delta in additions.items()],
                "removals": [{"id": line, "delta": delta} for line, delta in removals.items()],
            },
            "notify_customer": False,
            "staff_note": "",
        }
    }


def shop(shop: Shop) -> Payload:
    return {
        "id": shop.id,
        "name": shop.name,
        "domain": shop.domain,
        "myshopify_domain": shop.domain,
        "email": "owner@example.com",
        "created_at": shop_time(shop.created),
        "updated_at": shop_time(shop.updated),
    }


def bulk(bulk: Bulk) -> Payload:
    return {
        "admin_graphql_api_id": bulk.gid,
        "completed_at": bulk.completed and shop_time(bulk.completed),
        "created_at": shop_time(bulk.created),
        "error_code": bulk.error and bulk.error.lower(),
        "status": bulk.status.lower(),
        "type": "query",
    }
