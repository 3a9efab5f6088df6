"""What merchants do with their shops: open one, put products into it, count and move stock by hand."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast.inventory.shopify.double import payloads
from holdfast.inventory.shopify.double.errors import Refused
from holdfast.inventory.shopify.double.levels import Level
from holdfast.inventory.shopify.double.model import Location, Product, Shop, Variant
from holdfast.inventory.shopify.double.world import World, matching

DOMAIN = re.compile(r"[a-z0-9][a-z0-9-]{0,59}\.myshopify\.com")
MOST_SHOPS = 100
HIGHEST = 1_000_000_000


def open_shop(world: World, domain: str, *, points: float = 100) -> Shop:
    """A new shop with one location. Raises `Refused`.

    points    what the app may spend a second
    """
    if not DOMAIN.fullmatch(domain):
        raise Refused("The domain of a shop is such as my-shop.myshopify.com.")
    with world.happening():
        if world.find_shop(domain):
            raise Refused(f"The shop {domain} is there already.")
        if len(world.shops()) >= MOST_SHOPS:
            raise Refused(f"There are {MOST_SHOPS} shops already.")
        now = world.now()
        name = domain.partition(".")[0].replace("-", " ").capitalize()
        shop = Shop(domain=domain, name=name, points=points, created=now, updated=now)
        world.store.put(domain, shop)
        add_location(world, domain, "Warehouse")
        return shop


def add_location(world: World, shop: str, name: str, *, online: bool = True) -> Location:
    """A new location.

    online    whether what is sold in the web can be sent from there
    """
    now = world.now()
    with world.happening():
        location = Location(name=name, online=online, created=now, updated=now)
        world.store.put(shop, location)
        world.tell(shop, "locations/create", payloads.location(location))
        return location


def set_location(world: World, shop: str, id: int, *, active: bool | None = None, online: bool | None = None) -> None:
    """Open or close a location, for everything or for what is sold in the web."""
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


def find_location(world: World, shop: str, id: int) -> Location:
    """A location of a shop. Raises `Refused`."""
    found = world.store.find(Location, shop, id)
    if found is None:
        raise Refused(f"There is no location {id}.")
    return found


class NewVariant(NamedTuple):
    """A variant to be. `stock` is how many units are available: at the first location, or by location.

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
    world: World, shop: str, title: str, variants: Sequence[NewVariant], *, status: str = "ACTIVE"
) -> list[Variant]:
    """A new product with its variants, which are returned."""
    now = world.now()
    with world.happening():
        product = world.store.put(shop, Product(title=title, status=status, created=now, updated=now))
        made = [_made(world, shop, product, each, place) for place, each in enumerate(variants, 1)]
        world.tell(shop, "products/create", payloads.product(product, made))
        return made


def add_variant(world: World, shop: str, product: int, variant: NewVariant) -> Variant:
    """A further variant of a product. Raises `Refused`."""
    with world.happening():
        made = _made(
            world, shop, _find_product(world, shop, product), variant, len(variants_of(world, shop, product)) + 1
        )
        _product_changed(world, shop, product)
        return made


def _made(world: World, shop: str, product: Product, new: NewVariant, position: int) -> Variant:
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
    stock = new.stock if isinstance(new.stock, Mapping) else {world.store.some(Location, shop)[0].id: new.stock}
    for location, available in stock.items():
        level = world.levels.add(shop, variant.item, location, available, now)
        world.tell(shop, "inventory_levels/connect", payloads.level(level))
    return variant


def change_variant(
    world: World, shop: str, id: int, *, title: str | None = None, sku: str | None = None, tracked: bool | None = None
) -> Variant:
    """Change a variant. Raises `Refused`."""
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


def remove_variant(world: World, shop: str, id: int) -> None:
    """Delete a variant with its item and levels. Raises `Refused`."""
    with world.happening():
        variant = find_variant(world, shop, id)
        for level in world.levels.of_item(shop, variant.item):
            world.levels.remove(shop, variant.item, level.location)
            world.tell(shop, "inventory_levels/disconnect", payloads.level_gone(level))
        world.store.remove(shop, variant)
        world.tell(shop, "inventory_items/delete", {"id": variant.item})
        _product_changed(world, shop, variant.product)


def remove_product(world: World, shop: str, id: int) -> None:
    """Delete a product with its variants. Raises `Refused`."""
    with world.happening():
        for each in variants_of(world, shop, id):
            remove_variant(world, shop, each.id)
        world.store.remove(shop, _find_product(world, shop, id))
        world.tell(shop, "products/delete", {"id": id})


def find_variant(world: World, shop: str, id: int) -> Variant:
    """A variant of a shop. Raises `Refused`."""
    found = world.store.find(Variant, shop, id)
    if found is None:
        raise Refused(f"There is no variant {id}.")
    return found


def find_item(world: World, shop: str, item: int | None) -> Variant | None:
    """The variant that an inventory item belongs to."""
    found = world.store.some(Variant, shop, matching(("json_extract(body, '$.item') = ?", item)))
    return found[0] if found else None


def variants_of(world: World, shop: str, product: int) -> list[Variant]:
    """The variants of a product."""
    return world.store.some(Variant, shop, matching(("parent = ?", product)))


def _find_product(world: World, shop: str, id: int) -> Product:
    found = world.store.find(Product, shop, id)
    if found is None:
        raise Refused(f"There is no product {id}.")
    return found


def _product_changed(world: World, shop: str, id: int) -> None:
    product = _find_product(world, shop, id)
    product.updated = world.now()
    world.store.put(shop, product)
    world.tell(shop, "products/update", payloads.product(product, variants_of(world, shop, id)))


def move(
    world: World, shop: str, item: int, location: int, *, available: int = 0, committed: int = 0, quietly: bool = False
) -> Level:
    """Change a level by differences, and tell of it. Raises `Refused`.

    quietly    tell nobody
    """
    with world.happening():
        level = world.levels.change(shop, item, location, world.now(), available=available, committed=committed)
        if available and not quietly:
            world.tell(shop, "inventory_levels/update", payloads.level(level))
        return level


def count(world: World, shop: str, item: int, location: int, available: int) -> Level:
    """Set what is available, as merchants do by hand. Raises `Refused`."""
    if abs(available) > HIGHEST:
        raise Refused(f"A level is between -{HIGHEST} and {HIGHEST}.")
    with world.happening():
        level = world.levels.find(shop, item, location)
        if level is None:
            raise Refused(f"The item {item} is not stocked at the location {location}.")
        return move(world, shop, item, location, available=available - level.available)


def stock(world: World, shop: str, item: int, location: int, available: int = 0) -> Level:
    """Stock an item at a further location. Raises `Refused`."""
    with world.happening():
        find_location(world, shop, location)
        if world.levels.find(shop, item, location):
            raise Refused(f"The item {item} is stocked at the location {location} already.")
        level = world.levels.add(shop, item, location, available, world.now())
        world.tell(shop, "inventory_levels/connect", payloads.level(level))
        return level


def stop_stocking(world: World, shop: str, item: int, location: int) -> None:
    """Stock an item at a location no longer. Raises `Refused`."""
    with world.happening():
        level = world.levels.find(shop, item, location)
        if level is None:
            raise Refused(f"The item {item} is not stocked at the location {location}.")
        world.levels.remove(shop, item, location)
        world.tell(shop, "inventory_levels/disconnect", payloads.level_gone(level))
