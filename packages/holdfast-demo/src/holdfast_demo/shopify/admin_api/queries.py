"""The queries of the Admin API. The fields of objects are in `views.py`."""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from holdfast_demo.shopify.admin_api.connections import Fields, Info, Paging, field, lazy, list_source
from holdfast_demo.shopify.admin_api.cost import VERSION
from holdfast_demo.shopify.admin_api.order_views import OrderViews
from holdfast_demo.shopify.admin_api.views import Views
from holdfast_demo.shopify.errors import graphql_error
from holdfast_demo.shopify.model import (
    Bulk,
    Location,
    Order,
    Product,
    Shop,
    StoredRecord,
    Subscription,
    Variant,
    format_time,
    gid,
    parse_gid,
)
from holdfast_demo.shopify.platform_state import PlatformState
from holdfast_demo.shopify.store import RecordQuery

T = TypeVar("T", bound=StoredRecord)

MAX_IDS = 250


def root(platform: PlatformState, shop: Shop, paging: Paging, *, stale: bool = False) -> Fields:
    """The fields of a query, each as a function of its arguments."""
    return _Root(platform, shop, paging, stale=stale).fields()


class _Root:
    def __init__(self, platform: PlatformState, shop: Shop, paging: Paging, *, stale: bool) -> None:
        self._platform = platform
        self._shop = shop
        self._paging = paging
        self._views = Views(platform, shop, paging, stale=stale)
        self._orders = OrderViews(self._views)

    def fields(self) -> Fields:
        views, by_id = self._views, self._by_id
        products, inventory, orders = ("read_products",), ("read_inventory", "read_products"), ("read_orders",)
        return {
            "shop": lazy(self._shop_fields),
            "product": by_id("Product", products, views.product_with),
            "products": self._list(Product, products, views.product),
            "productVariant": by_id("ProductVariant", products, views.variant_with),
            "productVariants": self._list(Variant, products, views.variant),
            "inventoryItem": by_id("InventoryItem", inventory, views.item_with),
            "inventoryItems": self._items,
            "inventoryLevel": self._level,
            "location": self._location,
            "locations": self._locations,
            "order": by_id("Order", orders, self._orders.with_id),
            "orders": self._list(Order, orders, self._orders.order, lambda: self._orders.reach),
            "node": field(lambda info, arguments: self._node(info, arguments["id"])),
            "nodes": self._nodes,
            "bulkOperation": field(lambda _, arguments: self._bulk(parse_gid(arguments["id"], "BulkOperation"))),
            "bulkOperations": views.list_field(Bulk, bulk_view),
            "currentBulkOperation": self._current_bulk,
            "webhookSubscription": field(lambda _, arguments: self._subscription(arguments["id"])),
            "webhookSubscriptions": self._subscriptions,
            "currentAppInstallation": lazy(self._installation),
        }  # fmt: skip

    def _by_id(
        self, kind: str, scopes: Sequence[str], find: Callable[[int | None], Fields | None]
    ) -> Callable[..., Any]:
        def resolve(info: Info, id: str) -> Fields | None:
            self._views.require(info, *scopes)
            key = parse_gid(id, kind)
            if key is None:
                raise graphql_error(f"Invalid global id '{id}'", "argumentLiteralsIncompatible")
            return find(key)

        return resolve

    def _list(
        self,
        type: type[T],
        scopes: Sequence[str],
        view: Callable[[Any], Fields],
        where: Callable[[], Sequence[tuple[str, Any]]] = tuple,
    ) -> Callable[..., Fields]:
        def resolve(info: Info, **arguments: Any) -> Fields:
            self._views.require(info, *scopes)
            return self._views.list_field(type, view, *where())(info, **arguments)

        return resolve

    def _items(self, info: Info, **arguments: Any) -> Fields:
        """List items, which are stored with their variants: a search by id becomes one by the item of a variant."""
        query = re.sub(r"(?<!\w)id:", "inventory_item_id:", arguments.get("query") or "")
        list_items = self._list(Variant, ("read_inventory", "read_products"), self._views.item)
        return list_items(info, **arguments | {"query": query})

    def _shop_fields(self) -> Fields:
        shop = self._shop
        return {
            "__typename": "Shop",
            "id": shop.gid,
            "name": shop.name,
            "myshopifyDomain": shop.domain,
            "ianaTimezone": "America/New_York",
            "url": f"https://{shop.domain}",
            "createdAt": format_time(shop.created),
            "updatedAt": format_time(shop.updated),
            "primaryDomain": {"id": gid("Domain", shop.id), "host": shop.domain, "url": f"https://{shop.domain}"},
            "metafield": self._views.metafield(shop.gid),
        }

    def _level(self, info: Info, id: str) -> Fields | None:
        self._views.require(info, "read_inventory")
        return self._views.level_with(id)

    def _location(self, info: Info, id: str | None = None) -> Fields | None:
        first = self._platform.store.select(Location, self._shop.domain)[0].id
        return self._views.location_with(info, first if id is None else parse_gid(id, "Location"))

    def _locations(self, info: Info, **arguments: Any) -> Fields:
        self._views.require(info, "read_locations", "read_inventory")
        conditions = [
            (f"coalesce(json_extract(body, '$.{name}'), 0) = ?", value)
            for argument, name, value in (("includeInactive", "active", True), ("includeLegacy", "service", False))
            if not arguments.get(argument)
        ]
        if arguments.get("query"):
            raise graphql_error("The double does not search locations.", "BAD_REQUEST")
        locations = self._platform.store.select(Location, self._shop.domain, RecordQuery(conditions))
        by_name = arguments.get("sortKey") == "NAME"
        source = list_source(locations, lambda location: (location.name if by_name else location.id, location.id))
        return self._paging.connection(source, self._views.location)(info, **arguments)

    def _node(self, info: Info, id: str) -> Fields | None:
        kind = id.removeprefix("gid://shopify/").partition("/")[0]
        match kind:
            case "InventoryLevel":
                return self._level(info, id)
            case "Location":
                return self._location(info, id)
            case "Shop":
                return self._shop_fields() if id == self._shop.gid else None
            case "Product" | "ProductVariant" | "InventoryItem" | "Order":
                return self.fields()[kind[0].lower() + kind[1:]](info, id=id)
            case "Refund":
                self._views.require(info, "read_orders")
                return self._orders.refund_with_id(parse_gid(id, kind))
            case "BulkOperation":
                return self._bulk(parse_gid(id, kind))
            case "WebhookSubscription":
                return self._subscription(id)
            case _:
                raise graphql_error(f"Invalid global id '{id}'", "argumentLiteralsIncompatible")

    def _nodes(self, info: Info, ids: list[str]) -> list[Fields | None]:
        require_bounded(info, "ids", ids)
        return [self._node(info, id) for id in ids]

    def _bulk(self, id: int | None) -> Fields | None:
        bulk = self._platform.store.find(Bulk, self._shop.domain, id)
        return bulk and bulk_view(bulk)

    def _current_bulk(self, _: Info, type: str = "QUERY") -> Fields | None:
        bulks = self._platform.store.select(Bulk, self._shop.domain, RecordQuery(reverse=True, max_count=1))
        return bulk_view(bulks[0]) if bulks and type == "QUERY" else None

    def _subscription(self, id: str) -> Fields | None:
        subscription = self._platform.store.find(Subscription, self._shop.domain, parse_gid(id, "WebhookSubscription"))
        return subscription and subscription_view(subscription)

    def _subscriptions(self, info: Info, **arguments: Any) -> Fields:
        subscriptions = [
            subscription
            for subscription in self._platform.store.select(Subscription, self._shop.domain)
            if subscription.topic in (arguments.get("topics") or [subscription.topic])
            and subscription.uri in (arguments.get("uri") or arguments.get("callbackUrl") or subscription.uri, "")
        ]
        return self._paging.connection(
            list_source(subscriptions, lambda subscription: (subscription.id, subscription.id)), subscription_view
        )(info, **arguments)

    def _installation(self) -> Fields:
        app = self._platform.app
        return {
            "__typename": "AppInstallation",
            "id": gid("AppInstallation", self._shop.id),
            "app": {
                "__typename": "App",
                "id": app.gid,
                "title": app.title,
                "handle": app.handle,
                "apiKey": app.client_id,
            },
            "accessScopes": [{"handle": scope, "description": scope} for scope in sorted(self._views.scopes)],
            "launchUrl": app.url,
            "metafield": self._views.metafield(gid("AppInstallation", self._shop.id)),
        }


def require_bounded(info: Info, name: str, values: Sequence[Any]) -> None:
    """Raises `GraphQLError` for a list that is too long."""
    if len(values) > MAX_IDS:
        message = f"The input array size of {len(values)} is greater than the maximum allowed of {MAX_IDS}."
        raise graphql_error(message, "MAX_INPUT_SIZE_EXCEEDED", path=[info.field_name, name])


def subscription_view(subscription: Subscription) -> Fields:
    return {
        "__typename": "WebhookSubscription",
        "id": subscription.gid,
        "legacyResourceId": str(subscription.id),
        "topic": subscription.topic,
        "uri": subscription.uri,
        "format": "JSON",
        "filter": subscription.filter,
        "includeFields": subscription.include_fields,
        "metafieldNamespaces": [],
        "name": subscription.name,
        "apiVersion": {"displayName": VERSION, "handle": VERSION, "supported": True},
        "createdAt": format_time(subscription.created),
        "updatedAt": format_time(subscription.updated),
    }


def bulk_view(bulk: Bulk) -> Fields:
    return {
        "__typename": "BulkOperation",
        "id": bulk.gid,
        "type": "QUERY",
        "status": bulk.status,
        "errorCode": bulk.error,
        "query": bulk.query,
        "url": bulk.file if bulk.status == "COMPLETED" and bulk.objects else None,
        "partialDataUrl": bulk.file if bulk.status == "FAILED" and bulk.objects else None,
        "fileSize": None if bulk.size is None else str(bulk.size),
        "objectCount": str(bulk.objects),
        "rootObjectCount": str(bulk.roots),
        "createdAt": format_time(bulk.created),
        "completedAt": None if bulk.completed is None else format_time(bulk.completed),
    }
