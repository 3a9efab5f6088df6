"""Things as the Admin API shows them: by the names of its fields, some of which are asked for with arguments."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from holdfast.inventory.shopify.double import metafields, shops
from holdfast.inventory.shopify.double.connections import Info, Key, Paging, Slice, Source, View, field, lazy, of, terms
from holdfast.inventory.shopify.double.errors import failed
from holdfast.inventory.shopify.double.levels import Level
from holdfast.inventory.shopify.double.model import (
    Location,
    Product,
    Shop,
    Thing,
    Variant,
    gid,
    moment,
    number,
)
from holdfast.inventory.shopify.double.store import Wanted
from holdfast.inventory.shopify.double.world import World

T = TypeVar("T", bound=Thing)

QUANTITIES = ("available", "committed", "on_hand", "reserved", "incoming", "damaged", "quality_control", "safety_stock")

_SORTED: dict[str, str] = {"ID": "id", "UPDATED_AT": "updated", "POSITION": "id", "PROCESSED_AT": "id"} | dict.fromkeys(
    ("CREATED_AT", "ORDER_NUMBER"), "id"
)
_LEVEL = re.compile(r"gid://shopify/InventoryLevel/(\d{1,18})\?inventory_item_id=\d{1,18}")


class Views:
    """What one request sees of a shop.

    stale   whether levels are shown as they were before their last change
    """

    def __init__(self, world: World, shop: Shop, paging: Paging, *, stale: bool = False) -> None:
        self.world = world
        self.owner = shop
        self.domain = shop.domain
        self.paging = paging
        self.stale = stale
        self.scopes = {*shop.scopes, *(each.replace("write_", "read_") for each in shop.scopes)}

    def require(self, info: Info | None, *scopes: str) -> None:
        """Raises `GraphQLError` if the app has none of these scopes."""
        if not self.scopes.intersection(scopes):
            named = " or ".join(f"`{each}`" for each in scopes)
            message = (
                f"Access denied for {info.field_name if info else 'this'} field. Required access: {named} access scope."
            )
            documentation = "https://shopify.dev/api/usage/access-scopes"
            raise failed(message, "ACCESS_DENIED", documentation=documentation, requiredAccess=f"{named} access scope.")

    # Lists

    def things(self, type: type[T], given: View, *where: tuple[str, Any]) -> Source:
        """Things of a kind that a field's arguments ask for."""
        by = _SORTED.get(given.get("sortKey") or "ID")
        if by is None:
            raise failed(f"The double does not sort by {given['sortKey']}.", "BAD_REQUEST")
        conditions = [*where, *_conditions(given.get("query"))]

        def source(part: Slice) -> Sequence[tuple[Key, Any]]:
            wanted = Wanted(conditions, by, part.reverse, part.after, part.most)
            found = self.world.store.some(type, self.domain, wanted)
            return [((each.updated if by == "updated" else each.id, each.id), each) for each in found]

        return source

    def listed(self, type: type[T], view: Callable[[Any], View], *where: tuple[str, Any]) -> Callable[..., View]:
        """A field that is a list of things."""

        def resolve(info: Info, **given: Any) -> View:
            return self.paging.connection(self.things(type, given, *where), view)(info, **given)

        return resolve

    # Products

    def product(self, product: Product) -> View:
        variants = ("parent = ?", product.id)
        return {
            **stamped(product),
            "title": product.title,
            "handle": product.handle,
            "status": product.status,
            "productType": "",
            "vendor": self.owner.name,
            "tracksInventory": True,
            "hasOnlyDefaultVariant": False,
            "totalInventory": lazy(lambda: self._stock(shops.variants_of(self.world, self.domain, product.id))),
            "variantsCount": lazy(
                lambda: {"count": self.world.store.count(Variant, self.domain, [variants]), "precision": "EXACT"}
            ),
            "variants": self.listed(Variant, self.variant, variants),
        }

    def variant(self, variant: Variant) -> View:
        return {
            **stamped(variant),
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

    def product_with(self, id: int | None) -> View | None:
        found = self.world.store.find(Product, self.domain, id)
        return found and self.product(found)

    def variant_with(self, id: int | None) -> View | None:
        found = self.world.store.find(Variant, self.domain, id)
        return found and self.variant(found)

    def _stock(self, variants: Sequence[Variant]) -> int:
        items = [each.item for each in variants]
        return sum(self.world.levels.of_items(self.domain, items).values()) if items else 0

    # Stock

    def item(self, variant: Variant, info: Info | None = None) -> View:
        self.require(info, "read_inventory", "read_products")
        return {
            **stamped(variant, "InventoryItem", variant.item),
            "sku": variant.sku or None,
            "tracked": variant.tracked,
            "requiresShipping": True,
            "variant": lazy(lambda: self.variant(variant)),
            "variants": self.paging.connection(of([variant], lambda each: (each.id, each.id)), self.variant),
            "inventoryLevel": field(lambda info, given: self._level_at(info, variant.item, given["locationId"])),
            "inventoryLevels": self._levels(lambda: self.world.levels.of_item(self.domain, variant.item)),
        }

    def item_with(self, id: int | None) -> View | None:
        found = shops.find_item(self.world, self.domain, id)
        return found and self.item(found)

    def level(self, level: Level) -> View:
        return {
            "__typename": "InventoryLevel",
            "id": level.gid,
            "isActive": True,
            "canDeactivate": level.committed == 0,
            "createdAt": moment(level.created),
            "updatedAt": moment(level.updated),
            "item": lazy(lambda: self.item_with(level.item)),
            "location": field(lambda info, _: self.location_with(info, level.location)),
            "quantities": field(lambda _, given: [self._quantity(level, each) for each in given["names"]]),
        }

    def _quantity(self, level: Level, name: str) -> View:
        if name not in QUANTITIES:
            raise failed(f"The quantity name {name} is not valid.", "BAD_REQUEST")
        available = level.before if self.stale else level.available
        known = {"available": available, "committed": level.committed, "on_hand": available + level.committed}
        return {
            "id": f"gid://shopify/InventoryQuantity/{level.id}?name={name}",
            "name": name,
            "quantity": known.get(name, 0),
            "updatedAt": moment(level.updated) if name == "available" else None,
        }

    def _level_at(self, info: Info, item: int, location: str) -> View | None:
        self.require(info, "read_inventory")
        found = self.world.levels.find(self.domain, item, number(location, "Location") or 0)
        return found and self.level(found)

    def _levels(self, found: Callable[[], list[Level]]) -> Callable[..., View]:
        def resolve(info: Info, **given: Any) -> View:
            self.require(info, "read_inventory")
            if given.get("query"):
                raise failed("The double does not search levels.", "BAD_REQUEST")
            return self.paging.connection(of(found(), lambda each: (each.id, each.id)), self.level)(info, **given)

        return resolve

    def level_with(self, id: str) -> View | None:
        matched = _LEVEL.fullmatch(id)
        found = self.world.levels.with_id(self.domain, int(matched[1])) if matched else None
        return found and self.level(found)

    def location(self, location: Location) -> View:
        return {
            **stamped(location),
            "name": location.name,
            "isActive": location.active,
            "fulfillsOnlineOrders": location.online,
            "shipsInventory": location.online,
            "hasActiveInventory": lazy(lambda: bool(self.world.levels.of_location(self.domain, location.id))),
            "isFulfillmentService": False,
            "inventoryLevel": field(lambda info, given: self._level_of(info, location.id, given["inventoryItemId"])),
            "inventoryLevels": self._levels(lambda: self.world.levels.of_location(self.domain, location.id)),
        }

    def location_with(self, info: Info | None, id: int | None) -> View | None:
        self.require(info, "read_locations", "read_inventory")
        found = self.world.store.find(Location, self.domain, id)
        return found and self.location(found)

    def _level_of(self, info: Info, location: int, item: str) -> View | None:
        self.require(info, "read_inventory")
        found = self.world.levels.find(self.domain, number(item, "InventoryItem") or 0, location)
        return found and self.level(found)

    # What everything has

    def metafield(self, owner: str) -> Callable[..., View | None]:
        """The field that finds a metafield of an owner."""

        def resolve(_: Info, key: str, namespace: str | None = None) -> View | None:
            found = metafields.find(self.world, self.domain, owner, namespace, key)
            return found and {**stamped(found), **metafields.shown(found)}

        return resolve


def stamped(thing: Thing, kind: str = "", id: int = 0) -> View:
    return {
        "__typename": kind or thing.kind,
        "id": gid(kind or thing.kind, id or thing.id),
        "legacyResourceId": str(id or thing.id),
        "createdAt": moment(thing.created),
        "updatedAt": moment(thing.updated),
    }


def _conditions(query: str | None) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for term in terms(query):
        _, sign, value = term
        match term.field:
            case "updated_at" | "created_at":
                try:
                    at = datetime.fromisoformat(value)
                except ValueError as error:
                    raise failed(f"{value} is no moment.", "BAD_REQUEST") from error
                column = term.field.removesuffix("_at")
                seconds = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
                found.append((f"{column if sign == '>=' else f'cast({column} as integer)'} {sign} ?", seconds))
            case "id" if value.isdigit():
                found.append((f"id {sign} ?", int(value)))
            case "inventory_item_id" if value.isdigit():
                found.append((f"json_extract(body, '$.item') {sign} ?", int(value)))
            case "product_id" if value.isdigit():
                found.append((f"parent {sign} ?", int(value)))
            case "sku" if sign == "=":
                found.append(("json_extract(body, '$.sku') = ?", value))
            case "status" if sign == "=" and value != "any":
                found.append(("lower(json_extract(body, '$.status')) = ?", value.lower()))
            case "status" if sign == "=":
                pass
            case "" | "title" | "name":
                found.append(("words like ? escape '\\'", f"%{_plain(value)}%"))
            case _:
                raise failed(f"The double does not search by {term.field}.", "BAD_REQUEST")
    return found


def _plain(value: str) -> str:
    text = value.strip("*").lower()
    return re.sub(r"([\\%_])", r"\\\1", text)
