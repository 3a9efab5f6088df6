"""Actions of merchants on their shops: open one, put products into it, count and move stock by hand."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast_demo.shopify import payloads
from holdfast_demo.shopify.errors import ShopifyRefusal
from holdfast_demo.shopify.levels import Level
from holdfast_demo.shopify.model import Location, Product, Shop, Variant
from holdfast_demo.shopify.platform_state import PlatformState, matching

DOMAIN = re.compile(r"[a-z0-9][a-z0-9-]{0,59}\.myshopify\.com")
DOMAIN_RULE = (
    "A name and .myshopify.com, such as my-shop.myshopify.com. The name has 1 to 60 letters from a to z, digits and "
    "hyphens, and does not begin with a hyphen."
)
"""What a domain must be, for people."""

MAX_SHOPS = 100
MAX_QUANTITY = 1_000_000_000


def open_shop(world: PlatformState, domain: str, *, points: float = 100) -> Shop:
    """A new shop with one location. Raises `ShopifyRefusal`.

    points    the points that the app gets per second
    """
    if not DOMAIN.fullmatch(domain):
        raise ShopifyRefusal(f"This is not a domain of a shop. {DOMAIN_RULE}")
    with world.happening():
        if world.find_shop(domain):
            raise ShopifyRefusal(f"The shop {domain} is there already.")
        if len(world.shops()) >= MAX_SHOPS:
            raise ShopifyRefusal(f"There are {MAX_SHOPS} shops already.")
        now = world.now()
        name = domain.partition(".")[0].replace("-", " ").capitalize()
        shop = Shop(domain=domain, name=name, points=points, created=now, updated=now)
        world.store.put(domain, shop)
        add_location(world, domain, "Warehouse")
        return shop


def add_location(world: PlatformState, shop: str, name: str, *, online: bool = True, service: bool = False) -> Location:
    """A new location.

    online    whether online sales can be sent from there
    service   whether it belongs to a fulfillment service
    """
    now = world.now()
    with world.happening():
        location = Location(name=name, online=online, service=service, created=now, updated=now)
        world.store.put(shop, location)
        world.tell(shop, "locations/create", payloads.location(location))
        return location


def set_location(
    world: PlatformState, shop: str, id: int, *, active: bool | None = None, online: bool | None = None
) -> None:
    """Open or close a location, for everything or for online sales."""
    with world.happening():
        location = find_location(world, shop, id)
        was = location.active
        location.active = was if active is None else active
        location.online = location.online if online is None else online
        location.updated = world.now()
        world.store.put(shop, location)
        world.tell(shop, "locations/update", payloads.location(location))
        if location.active != was:
            topic = "locations/activate" if location.active else "locations/deactivate"
            world.tell(shop, topic, payloads.location(location))


def find_location(world: PlatformState, shop: str, id: int) -> Location:
    """A location of a shop. Raises `ShopifyRefusal`."""
    location = world.store.find(Location, shop, id)
    if location is None:
        raise ShopifyRefusal(f"There is no location {id}.")
    return location


class NewVariant(NamedTuple):
    """A variant to be created. `stock` is how many units are available: at the first location, or by location.

    id    its number; 0: a new one
    """

    title: str
    sku: str = ""
    price: str = "10.00"
    policy: str = "DENY"
    tracked: bool = True
    bundle: bool = False
    stock: int | Mapping[int, int] = 0
    id: int = 0


def add_product(
    world: PlatformState, shop: str, title: str, variants: Sequence[NewVariant], *, status: str = "ACTIVE"
) -> list[Variant]:
    """Store a new product with its variants. Returns the variants."""
    now = world.now()
    with world.happening():
        product = world.store.put(shop, Product(title=title, status=status, created=now, updated=now))
        new_variants = [
            _new_variant(world, shop, product, variant, number) for number, variant in enumerate(variants, 1)
        ]
        world.tell(shop, "products/create", payloads.product(product, new_variants))
        return new_variants


def add_variant(world: PlatformState, shop: str, product: int, variant: NewVariant) -> Variant:
    """A further variant of a product. Raises `ShopifyRefusal`."""
    with world.happening():
        added = _new_variant(
            world, shop, _find_product(world, shop, product), variant, len(variants_of(world, shop, product)) + 1
        )
        _product_changed(world, shop, product)
        return added


def _new_variant(world: PlatformState, shop: str, product: Product, new: NewVariant, position: int) -> Variant:
    now = world.now()
    variant = Variant(
        id=new.id,
        product=product.id,
        product_title=product.title,
        item=world.store.new_id(),
        position=position,
        title=new.title,
        sku=new.sku,
        price=new.price,
        policy=new.policy,
        tracked=new.tracked,
        bundle=new.bundle,
        created=now,
        updated=now,
    )
    world.store.put(shop, variant)
    stock = new.stock if isinstance(new.stock, Mapping) else {world.store.select(Location, shop)[0].id: new.stock}
    for location, available in stock.items():
        level = world.levels.add(shop, variant.item, location, available, now)
        world.tell(shop, "inventory_levels/connect", payloads.level(level))
    return variant


def change_variant(
    world: PlatformState,
    shop: str,
    id: int,
    *,
    title: str | None = None,
    sku: str | None = None,
    tracked: bool | None = None,
) -> Variant:
    """Change a variant. Raises `ShopifyRefusal`."""
    with world.happening():
        variant = find_variant(world, shop, id)
        variant.title = variant.title if title is None else title
        variant.sku = variant.sku if sku is None else sku
        variant.tracked = variant.tracked if tracked is None else tracked
        variant.updated = world.now()
        world.store.put(shop, variant)
        _product_changed(world, shop, variant.product)
        world.tell(shop, "inventory_items/update", payloads.item(variant))
        return variant


def remove_variant(world: PlatformState, shop: str, id: int) -> None:
    """Delete a variant with its item and levels. Raises `ShopifyRefusal`."""
    with world.happening():
        variant = find_variant(world, shop, id)
        for level in world.levels.of_item(shop, variant.item):
            world.levels.remove(shop, variant.item, level.location)
            world.tell(shop, "inventory_levels/disconnect", payloads.level_gone(level))
        world.store.remove(shop, variant)
        world.tell(shop, "inventory_items/delete", {"id": variant.item})
        _product_changed(world, shop, variant.product)


def remove_product(world: PlatformState, shop: str, id: int) -> None:
    """Delete a product with its variants. Raises `ShopifyRefusal`."""
    with world.happening():
        for variant in variants_of(world, shop, id):
            remove_variant(world, shop, variant.id)
        world.store.remove(shop, _find_product(world, shop, id))
        world.tell(shop, "products/delete", {"id": id})


def find_variant(world: PlatformState, shop: str, id: int) -> Variant:
    """A variant of a shop. Raises `ShopifyRefusal`."""
    variant = world.store.find(Variant, shop, id)
    if variant is None:
        raise ShopifyRefusal(f"There is no variant {id}.")
    return variant


def find_item(world: PlatformState, shop: str, item: int | None) -> Variant | None:
    """The variant that an inventory item belongs to."""
    variants = world.store.select(Variant, shop, matching(("json_extract(body, '$.item') = ?", item)))
    return variants[0] if variants else None


def variants_of(world: PlatformState, shop: str, product: int) -> list[Variant]:
    """The variants of a product."""
    return world.store.select(Variant, shop, matching(("parent = ?", product)))


def available(world: PlatformState, shop: str, variant: Variant) -> int:
    """How many units of a variant are available, all locations together."""
    return sum(level.available for level in world.levels.of_item(shop, variant.item))


def _find_product(world: PlatformState, shop: str, id: int) -> Product:
    product = world.store.find(Product, shop, id)
    if product is None:
        raise ShopifyRefusal(f"There is no product {id}.")
    return product


def _product_changed(world: PlatformState, shop: str, id: int) -> None:
    product = _find_product(world, shop, id)
    product.updated = world.now()
    world.store.put(shop, product)
    world.tell(shop, "products/update", payloads.product(product, variants_of(world, shop, id)))


def move(
    world: PlatformState,
    shop: str,
    item: int,
    location: int,
    *,
    available: int = 0,
    committed: int = 0,
    quietly: bool = False,
) -> Level:
    """Change a level by differences, and send a message. Raises `ShopifyRefusal`.

    quietly    send no message
    """
    with world.happening():
        level = world.levels.change(shop, item, location, world.now(), available=available, committed=committed)
        if available and not quietly:
            world.tell(shop, "inventory_levels/update", payloads.level(level))
        return level


def count(world: PlatformState, shop: str, item: int, location: int, available: int) -> Level:
    """Set the available quantity, as merchants do by hand. Raises `ShopifyRefusal`."""
    if abs(available) > MAX_QUANTITY:
        raise ShopifyRefusal(f"A level is between -{MAX_QUANTITY} and {MAX_QUANTITY}.")
    with world.happening():
        level = world.levels.find(shop, item, location)
        if level is None:
            raise ShopifyRefusal(f"The item {item} is not stocked at the location {location}.")
        return move(world, shop, item, location, available=available - level.available)


def stock(world: PlatformState, shop: str, item: int, location: int, available: int = 0) -> Level:
    """Stock an item at a further location. Raises `ShopifyRefusal`."""
    with world.happening():
        find_location(world, shop, location)
        if world.levels.find(shop, item, location):
            raise ShopifyRefusal(f"The item {item} is stocked at the location {location} already.")
        level = world.levels.add(shop, item, location, available, world.now())
        world.tell(shop, "inventory_levels/connect", payloads.level(level))
        return level


def stop_stocking(world: PlatformState, shop: str, item: int, location: int) -> None:
    """Stop stocking an item at a location. Raises `ShopifyRefusal`."""
    with world.happening():
        level = world.levels.find(shop, item, location)
        if level is None:
            raise ShopifyRefusal(f"The item {item} is not stocked at the location {location}.")
        world.levels.remove(shop, item, location)
        world.tell(shop, "inventory_levels/disconnect", payloads.level_gone(level))
