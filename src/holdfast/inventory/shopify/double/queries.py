"""What can be asked of a shop."""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from holdfast.inventory.shopify.double.connections import Info, Paging, View, field, lazy, of
from holdfast.inventory.shopify.double.errors import failed
from holdfast.inventory.shopify.double.model import (
    Bulk,
    Location,
    Order,
    Product,
    Shop,
    Subscription,
    Thing,
    Variant,
    gid,
    moment,
    number,
)
from holdfast.inventory.shopify.double.order_views import OrderViews
from holdfast.inventory.shopify.double.schema import VERSION
from holdfast.inventory.shopify.double.store import Wanted
from holdfast.inventory.shopify.double.views import Views
from holdfast.inventory.shopify.double.world import World

T = TypeVar("T", bound=Thing)

MOST_IDS = 250


def root(world: World, shop: Shop, paging: Paging, *, stale: bool = False) -> View:
    """The fields of a query, each as a function of its arguments."""
    return _Root(world, shop, paging, stale=stale).fields()


class _Root:
    def __init__(self, world: World, shop: Shop, paging: Paging, *, stale: bool) -> None:
        self._world = world
        self._shop = shop
        self._paging = paging
        self._views = Views(world, shop, paging, stale=stale)
        self._orders = OrderViews(self._views)

    def fields(self) -> View:
        views, found = self._views, self._found
        products, inventory, orders = ("read_products",), ("read_inventory", "read_products"), ("read_orders",)
        return {
            "shop": lazy(self._owner),
            "product": found("Product", products, views.product_with),
            "products": self._list(Product, products, views.product),
            "productVariant": found("ProductVariant", products, views.variant_with),
            "productVariants": self._list(Variant, products, views.variant),
            "inventoryItem": found("InventoryItem", inventory, views.item_with),
            "inventoryItems": self._items,
            "inventoryLevel": self._level,
            "location": self._location,
            "locations": self._locations,
            "order": found("Order", orders, self._orders.with_id),
            "orders": self._list(Order, orders, self._orders.order, lambda: self._orders.reach),
            "node": field(lambda info, given: self._node(info, given["id"])),
            "nodes": self._nodes,
            "bulkOperation": field(lambda _, given: self._bulk(number(given["id"], "BulkOperation"))),
            "bulkOperations": views.listed(Bulk, shown_bulk),
            "currentBulkOperation": self._current_bulk,
            "webhookSubscription": field(lambda _, given: self._subscription(given["id"])),
            "webhookSubscriptions": self._subscriptions,
            "currentAppInstallation": lazy(self._installation),
        }  # fmt: skip

    def _found(self, kind: str, scopes: Sequence[str], find: Callable[[int | None], View | None]) -> Callable[..., Any]:
        def resolve(info: Info, id: str) -> View | None:
            self._views.require(info, *scopes)
            wanted = number(id, kind)
            if wanted is None:
                raise failed(f"Invalid global id '{id}'", "argumentLiteralsIncompatible")
            return find(wanted)

        return resolve

    def _list(
        self,
        type: type[T],
        scopes: Sequence[str],
        view: Callable[[Any], View],
        where: Callable[[], Sequence[tuple[str, Any]]] = tuple,
    ) -> Callable[..., View]:
        def resolve(info: Info, **given: Any) -> View:
            self._views.require(info, *scopes)
            return self._views.listed(type, view, *where())(info, **given)

        return resolve

    def _items(self, info: Info, **given: Any) -> View:
        """Items, which are kept with their variants: what is asked of their ids is asked of the items of variants."""
        query = re.sub(r"(?<!\w)id:", "inventory_item_id:", given.get("query") or "")
        listed = self._list(Variant, ("read_inventory", "read_products"), self._views.item)
        return listed(info, **given | {"query": query})

    def _owner(self) -> View:
        shop = self._shop
        return {
            "__typename": "Shop",
            "id": shop.gid,
            "name": shop.name,
            "myshopifyDomain": shop.domain,
            "ianaTimezone": "America/New_York",
            "url": f"https://{shop.domain}",
            "createdAt": moment(shop.created),
            "updatedAt": moment(shop.updated),
            "primaryDomain": {"id": gid("Domain", shop.id), "host": shop.domain, "url": f"https://{shop.domain}"},
            "metafield": self._views.metafield(shop.gid),
        }

    def _level(self, info: Info, id: str) -> View | None:
        self._views.require(info, "read_inventory")
        return self._views.level_with(id)

    def _location(self, info: Info, id: str | None = None) -> View | None:
        first = self._world.store.some(Location, self._shop.domain)[0].id
        return self._views.location_with(info, first if id is None else number(id, "Location"))

    def _locations(self, info: Info, **given: Any) -> View:
        self._views.require(info, "read_locations", "read_inventory")
        wanted = [("1 = ?", 1)] if given.get("includeInactive") else [("json_extract(body, '$.active') = ?", True)]
        if given.get("query"):
            raise failed("The double does not search locations.", "BAD_REQUEST")
        found = self._world.store.some(Location, self._shop.domain, Wanted(wanted))
        by_name = given.get("sortKey") == "NAME"
        source = of(found, lambda each: (each.name if by_name else each.id, each.id))
        return self._paging.connection(source, self._views.location)(info, **given)

    def _node(self, info: Info, id: str) -> View | None:
        kind = id.removeprefix("gid://shopify/").partition("/")[0]
        match kind:
            case "InventoryLevel":
                return self._level(info, id)
            case "Location":
                return self._location(info, id)
            case "Shop":
                return self._owner() if id == self._shop.gid else None
            case "Product" | "ProductVariant" | "InventoryItem" | "Order":
                return self.fields()[kind[0].lower() + kind[1:]](info, id=id)
            case "Refund":
                self._views.require(info, "read_orders")
                return self._orders.refund_with_id(number(id, kind))
            case "BulkOperation":
                return self._bulk(number(id, kind))
            case "WebhookSubscription":
                return self._subscription(id)
            case _:
                raise failed(f"Invalid global id '{id}'", "argumentLiteralsIncompatible")

    def _nodes(self, info: Info, ids: list[str]) -> list[View | None]:
        bounded(info, "ids", ids)
        return [self._node(info, each) for each in ids]

    def _bulk(self, id: int | None) -> View | None:
        found = self._world.store.find(Bulk, self._shop.domain, id)
        return found and shown_bulk(found)

    def _current_bulk(self, _: Info, type: str = "QUERY") -> View | None:
        found = self._world.store.some(Bulk, self._shop.domain, Wanted(reverse=True, most=1))
        return shown_bulk(found[0]) if found and type == "QUERY" else None

    def _subscription(self, id: str) -> View | None:
        found = self._world.store.find(Subscription, self._shop.domain, number(id, "WebhookSubscription"))
        return found and shown_subscription(found)

    def _subscriptions(self, info: Info, **given: Any) -> View:
        found = [
            each
            for each in self._world.store.some(Subscription, self._shop.domain)
            if each.topic in (given.get("topics") or [each.topic])
            and each.uri in (given.get("uri") or given.get("callbackUrl") or each.uri, "")
        ]
        return self._paging.connection(of(found, lambda each: (each.id, each.id)), shown_subscription)(info, **given)

    def _installation(self) -> View:
        app = self._world.app
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
            "accessScopes": [{"handle": each, "description": each} for each in sorted(self._views.scopes)],
            "launchUrl": app.url,
            "metafield": self._views.metafield(gid("AppInstallation", self._shop.id)),
        }


def bounded(info: Info, name: str, given: Sequence[Any]) -> None:
    """Raises `GraphQLError` for a list that is too long."""
    if len(given) > MOST_IDS:
        message = f"The input array size of {len(given)} is greater than the maximum allowed of {MOST_IDS}."
        raise failed(message, "MAX_INPUT_SIZE_EXCEEDED", path=[info.field_name, name])


def shown_subscription(subscription: Subscription) -> View:
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
        "createdAt": moment(subscription.created),
        "updatedAt": moment(subscription.updated),
    }


def shown_bulk(bulk: Bulk) -> View:
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
        "createdAt": moment(bulk.created),
        "completedAt": None if bulk.completed is None else moment(bulk.completed),
    }
