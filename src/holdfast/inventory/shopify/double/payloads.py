"""What webhooks carry: objects as the older API of the platform shows them, people and addresses among them."""

from collections.abc import Sequence
from typing import Any

from holdfast.inventory.shopify.double.levels import Level
from holdfast.inventory.shopify.double.model import Bulk, Location, Order, Product, Refund, Shop, Variant, gid, local

Payload = dict[str, Any]

SOMEBODY: Payload = {
    "id": 7001,
    "email": "ada@example.com",
    "first_name": "Ada",
    "last_name": "Lovelace",
    "phone": "+491701234567",
    "default_address": {"address1": "12 St James's Square", "city": "London", "country": "United Kingdom"},
}
"""Who has bought everything, so that one can look for traces of them where none may be."""


def level(level: Level) -> Payload:
    return {
        "inventory_item_id": level.item,
        "location_id": level.location,
        "available": level.available,
        "updated_at": local(level.updated),
        "admin_graphql_api_id": level.gid,
    }


def level_gone(level: Level) -> Payload:
    return {"inventory_item_id": level.item, "location_id": level.location}


def item(variant: Variant) -> Payload:
    return {
        "id": variant.item,
        "sku": variant.sku,
        "created_at": local(variant.created),
        "updated_at": local(variant.updated),
        "requires_shipping": True,
        "tracked": variant.tracked,
        "admin_graphql_api_id": gid("InventoryItem", variant.item),
    }


def location(location: Location) -> Payload:
    return {
        "id": location.id,
        "name": location.name,
        "active": location.active,
        "created_at": local(location.created),
        "updated_at": local(location.updated),
        "admin_graphql_api_id": location.gid,
    }


def product(product: Product, variants: Sequence[Variant]) -> Payload:
    return {
        "id": product.id,
        "title": product.title,
        "handle": product.handle,
        "status": product.status.lower(),
        "created_at": local(product.created),
        "updated_at": local(product.updated),
        "admin_graphql_api_id": product.gid,
        "variants": [
            {
                "id": each.id,
                "product_id": each.product,
                "title": each.title,
                "sku": each.sku,
                "price": each.price,
                "position": each.position,
                "inventory_policy": each.policy.lower(),
                "inventory_item_id": each.item,
                "inventory_management": "shopify" if each.tracked else None,
                "created_at": local(each.created),
                "updated_at": local(each.updated),
                "admin_graphql_api_id": each.gid,
            }
            for each in variants
        ],
    }


def order(order: Order) -> Payload:
    lines = [
        {
            "id": each.id,
            "admin_graphql_api_id": gid("LineItem", each.id),
            "variant_id": each.variant,
            "title": each.title,
            "variant_title": each.variant_title,
            "name": f"{each.title} - {each.variant_title}",
            "sku": each.sku,
            "price": each.price,
            "quantity": each.quantity,
            "current_quantity": each.current,
            "fulfillable_quantity": each.current - each.fulfilled,
            "variant_inventory_management": "shopify",
            "properties": [{"name": "Engraving", "value": f"For {SOMEBODY['first_name']}"}],
        }
        for each in order.lines
    ]
    return {
        "id": order.id,
        "admin_graphql_api_id": order.gid,
        "name": order.name,
        "order_number": order.number,
        "created_at": local(order.created),
        "updated_at": local(order.updated),
        "cancelled_at": None if order.cancelled is None else local(order.cancelled),
        "cancel_reason": order.cancel_reason and order.cancel_reason.lower(),
        "closed_at": None,
        "location_id": order.retail,
        "source_name": "pos" if order.retail else "web",
        "test": False,
        "email": SOMEBODY["email"],
        "phone": SOMEBODY["phone"],
        "customer": SOMEBODY,
        "billing_address": {**SOMEBODY["default_address"], "name": "Ada Lovelace"},
        "shipping_address": {**SOMEBODY["default_address"], "name": "Ada Lovelace"},
        "note": "Please ring twice.",
        "line_items": lines,
        "refunds": [refund(order, each) for each in order.refunds],
    }


def refund(order: Order, refund: Refund) -> Payload:
    return {
        "id": refund.id,
        "order_id": order.id,
        "created_at": local(refund.created),
        "processed_at": local(refund.created),
        "note": refund.note,
        "admin_graphql_api_id": gid("Refund", refund.id),
        "refund_line_items": [
            {
                "id": each.id,
                "line_item_id": each.line,
                "quantity": each.quantity,
                "restock_type": each.restock.lower(),
                "location_id": each.location,
            }
            for each in refund.lines
        ],
    }


def order_edit(order: Order, id: int, at: float, additions: dict[int, int], removals: dict[int, int]) -> Payload:
    """What `orders/edited` tells: by line, how many units came and went."""
    return {
        "order_edit": {
            "id": id,
            "order_id": order.id,
            "created_at": local(at),
            "committed_at": local(at),
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
        "created_at": local(shop.created),
        "updated_at": local(shop.updated),
    }


def bulk(bulk: Bulk) -> Payload:
    return {
        "admin_graphql_api_id": bulk.gid,
        "completed_at": bulk.completed and local(bulk.completed),
        "created_at": local(bulk.created),
        "error_code": bulk.error and bulk.error.lower(),
        "status": bulk.status.lower(),
        "type": "query",
    }
