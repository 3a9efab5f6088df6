"""Things as the Admin API shows them: by the names of its fields, some of which take arguments."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from holdfast_demo.shopify import pictures, shops
from holdfast_demo.shopify.admin_api import metafields
from holdfast_demo.shopify.admin_api.connections import (
    Fields,
    Info,
    Key,
    Paging,
    Slice,
    Source,
    field,
    lazy,
    list_source,
    terms,
)
from holdfast_demo.shopify.errors import graphql_error
from holdfast_demo.shopify.levels import Level
from holdfast_demo.shopify.model import Location, Product, Shop, StoredRecord, Variant, format_time, gid, parse_gid
from holdfast_demo.shopify.platform_state import PlatformState
from holdfast_demo.shopify.store import RecordQuery

T = TypeVar("T", bound=StoredRecord)

QUANTITIES = ("available", "committed", "on_hand", "reserved", "incoming", "damaged", "quality_control", "safety_stock")

_SORT_COLUMNS: dict[str, str] = {
    "ID": "id",
    "UPDATED_AT": "updated",
    "CREATED_AT": "created",
    "POSITION": "id",
    "PROCESSED_AT": "id",
} | dict.fromkeys(("ORDER_NUMBER",), "id")
_LEVEL = re.compile(r"gid://shopify/InventoryLevel/(\d{1,18})\?inventory_item_id=\d{1,18}")


class Views:
    """The objects of a shop in one request.

    stale   whether levels are shown as they were before their last change
    """

    def __init__(self, platform: PlatformState, shop: Shop, paging: Paging, *, stale: bool = False) -> None:
        self.platform = platform
        self.shop = shop
        self.domain = shop.domain
        self.paging = paging
        self.stale = stale
        self.scopes = {*shop.scopes, *(scope.replace("write_", "read_") for scope in shop.scopes)}

    def require(self, info: Info | None, *scopes: str) -> None:
        """Raises `GraphQLError` if the app has none of these scopes."""
        if not self.scopes.intersection(scopes):
            access = f"{' or '.join(f'`{scope}`' for scope in scopes)} access scope."
            field = info.field_name if info else "this"
            message = f"Access denied for {field} field. Required access: {access}"
            documentation = "https://shopify.dev/api/usage/access-scopes"
            raise graphql_error(message, "ACCESS_DENIED", documentation=documentation, requiredAccess=access)

    # Lists

    def things(self, type: type[T], arguments: Fields, *where: tuple[str, Any]) -> Source:
        """The source of things of a kind that match the arguments of a field."""
        by = _SORT_COLUMNS.get(arguments.get("sortKey") or "ID")
        if by is None:
            raise graphql_error(f"The double does not sort by {arguments['sortKey']}.", "BAD_REQUEST")
        conditions = [*where, *_conditions(arguments.get("query"))]

        def source(part: Slice) -> Sequence[tuple[Key, Any]]:
            query = RecordQuery(conditions, by, part.reverse, part.after, part.max_count)
            things = self.platform.store.select(type, self.domain, query)
            return [((thing.id if by == "id" else getattr(thing, by), thing.id), thing) for thing in things]

        return source

    def list_field(
        self, type: type[T], view: Callable[[Any], Fields], *where: tuple[str, Any]
    ) -> Callable[..., Fields]:
        """A field that is a list of things."""

        def resolve(info: Info, **arguments: Any) -> Fields:
            return self.paging.connection(self.things(type, arguments, *where), view)(info, **arguments)

        return resolve

    # Products

    def product(self, product: Product) -> Fields:
        variants = ("parent = ?", product.id)
        return {
            **identity_view(product),
            "title": product.title,
            "handle": product.handle,
            "status": product.status,
            "productType": "",
            "vendor": self.shop.name,
            "tracksInventory": True,
            "hasOnlyDefaultVariant": False,
            "featuredMedia": {
                "__typename": "MediaImage",
                "id": gid("MediaImage", product.id),
                "alt": product.title,
                "preview": {
                    "image": {
                        "id": gid("ImageSource", product.id),
                        "altText": product.title,
                        "url": lazy(lambda: pictures.address(self.platform, self.domain, product)),
                    }
                },
            },
            "totalInventory": lazy(lambda: self._stock(shops.variants_of(self.platform, self.domain, product.id))),
            "variantsCount": lazy(
                lambda: {"count": self.platform.store.count(Variant, self.domain, [variants]), "precision": "EXACT"}
            ),
            "variants": self.list_field(Variant, self.variant, variants),
        }

    def variant(self, variant: Variant) -> Fields:
        return {
            **identity_view(variant),
            "title": variant.title,
            "displayName": f"{variant.product_title} - {variant.title}",
            "sku": variant.sku or None,
            "position": variant.position,
            "price": variant.price,
            "inventoryPolicy": variant.policy,
            "inventoryQuantity": lazy(lambda: self._stock([variant])),
            "inventoryItem": field(lambda info, _: self.item(variant, info)),
            "product": lazy(lambda: self.product_with(variant.product)),
            "selectedOptions": [{"name": "Size", "value": variant.title}],
            "requiresComponents": variant.bundle,
            "metafield": self.metafield(variant.gid),
        }

    def product_with(self, id: int | None) -> Fields | None:
        product = self.platform.store.find(Product, self.domain, id)
        return product and self.product(product)

    def variant_with(self, id: int | None) -> Fields | None:
        variant = self.platform.store.find(Variant, self.domain, id)
        return variant and self.variant(variant)

    def _stock(self, variants: Sequence[Variant]) -> int:
        items = [variant.item for variant in variants]
        return sum(self.platform.levels.of_items(self.domain, items).values()) if items else 0

    # Stock

    def item(self, variant: Variant, info: Info | None = None) -> Fields:
        self.require(info, "read_inventory", "read_products")
        return {
            **identity_view(variant, "InventoryItem", variant.item),
            "sku": variant.sku or None,
            "tracked": variant.tracked,
            "requiresShipping": True,
            "variant": lazy(lambda: self.variant(variant)),
            "variants": self.paging.connection(list_source([variant], lambda item: (item.id, item.id)), self.variant),
            "inventoryLevel": field(
                lambda info, arguments: self._level_at(info, variant.item, arguments["locationId"])
            ),
            "inventoryLevels": self._levels(lambda: self.platform.levels.of_item(self.domain, variant.item)),
        }

    def item_with(self, id: int | None) -> Fields | None:
        variant = shops.find_item(self.platform, self.domain, id)
        return variant and self.item(variant)

    def level(self, level: Level) -> Fields:
        return {
            "__typename": "InventoryLevel",
            "id": level.gid,
            "isActive": True,
            "canDeactivate": level.committed == 0,
            "createdAt": format_time(level.created),
            "updatedAt": format_time(level.updated),
            "item": lazy(lambda: self.item_with(level.item)),
            "location": field(lambda info, _: self.location_with(info, level.location)),
            "quantities": field(lambda _, arguments: [self._quantity(level, name) for name in arguments["names"]]),
        }

    def _quantity(self, level: Level, name: str) -> Fields:
        if name not in QUANTITIES:
            raise graphql_error(f"The quantity name {name} is not valid.", "BAD_REQUEST")
        available = level.before if self.stale else level.available
        quantities = {"available": available, "committed": level.committed, "on_hand": available + level.committed}
        return {
            "id": f"gid://shopify/InventoryQuantity/{level.id}?name={name}",
            "name": name,
            "quantity": quantities.get(name, 0),
            "updatedAt": format_time(level.updated) if name == "available" else None,
        }

    def _level_at(self, info: Info, item: int, location: str) -> Fields | None:
        self.require(info, "read_inventory")
        level = self.platform.levels.find(self.domain, item, parse_gid(location, "Location") or 0)
        return level and self.level(level)

    def _levels(self, find_levels: Callable[[], list[Level]]) -> Callable[..., Fields]:
        def resolve(info: Info, **arguments: Any) -> Fields:
            self.require(info, "read_inventory")
            if arguments.get("query"):
                raise graphql_error("The double does not search levels.", "BAD_REQUEST")
            return self.paging.connection(list_source(find_levels(), lambda level: (level.id, level.id)), self.level)(
                info, **arguments
            )

        return resolve

    def level_with(self, id: str) -> Fields | None:
        matched = _LEVEL.fullmatch(id)
        level = self.platform.levels.with_id(self.domain, int(matched[1])) if matched else None
        return level and self.level(level)

    def location(self, location: Location) -> Fields:
        return {
            **identity_view(location),
            "name": location.name,
            "isActive": location.active,
            "fulfillsOnlineOrders": location.online,
            "shipsInventory": location.online,
            "hasActiveInventory": lazy(lambda: bool(self.platform.levels.of_location(self.domain, location.id))),
            "isFulfillmentService": location.service,
            "inventoryLevel": field(
                lambda info, arguments: self._level_of(info, location.id, arguments["inventoryItemId"])
            ),
            "inventoryLevels": self._levels(lambda: self.platform.levels.of_location(self.domain, location.id)),
        }

    def location_with(self, info: Info | None, id: int | None) -> Fields | None:
        self.require(info, "read_locations", "read_inventory")
        location = self.platform.store.find(Location, self.domain, id)
        return location and self.location(location)

    def _level_of(self, info: Info, location: int, item: str) -> Fields | None:
        self.require(info, "read_inventory")
        level = self.platform.levels.find(self.domain, parse_gid(item, "InventoryItem") or 0, location)
        return level and self.level(level)

    # Fields of all things

    def metafield(self, owner: str) -> Callable[..., Fields | None]:
        """The field that finds a metafield of an owner."""

        def resolve(_: Info, key: str, namespace: str | None = None) -> Fields | None:
            metafield = metafields.find(self.platform, self.domain, owner, namespace, key)
            return metafield and {**identity_view(metafield), **metafields.metafield_view(metafield)}

        return resolve


def identity_view(thing: StoredRecord, kind: str = "", id: int = 0) -> Fields:
    return {
        "__typename": kind or thing.kind,
        "id": gid(kind or thing.kind, id or thing.id),
        "legacyResourceId": str(id or thing.id),
        "createdAt": format_time(thing.created),
        "updatedAt": format_time(thing.updated),
    }


def _conditions(query: str | None) -> list[tuple[str, Any]]:
    conditions: list[tuple[str, Any]] = []
    for term in terms(query):
        _, sign, value = term
        match term.field:
            case "updated_at" | "created_at":
                try:
                    at = datetime.fromisoformat(value)
                except ValueError as error:
                    raise graphql_error(f"{value} is no moment.", "BAD_REQUEST") from error
                column = term.field.removesuffix("_at")
                seconds = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
                conditions.append((f"{column if sign == '>=' else f'cast({column} as integer)'} {sign} ?", seconds))
            case "id" if value.isdigit():
                conditions.append((f"id {sign} ?", int(value)))
            case "inventory_item_id" if value.isdigit():
                conditions.append((f"json_extract(body, '$.item') {sign} ?", int(value)))
            case "product_id" if value.isdigit():
                conditions.append((f"parent {sign} ?", int(value)))
            case "sku" if sign == "=":
                conditions.append(("json_extract(body, '$.sku') = ?", value))
            case "status" if sign == "=" and value != "any":
                conditions.append(("lower(json_extract(body, '$.status')) = ?", value.lower()))
            case "status" if sign == "=":
                pass
            case "" | "title" | "name":
                conditions.append(("words like ? escape '\\'", f"%{_like_pattern(value)}%"))
            case _:
                raise graphql_error(f"The double does not search by {term.field}.", "BAD_REQUEST")
    return conditions


def _like_pattern(value: str) -> str:
    text = value.strip("*").lower()
    return re.sub(r"([\\%_])", r"\\\1", text)
