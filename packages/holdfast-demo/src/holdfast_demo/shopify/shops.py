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


def open_shop(platform: PlatformState, domain: str, *, points: float = 100) -> Shop:
    """A new shop with one location. Raises `ShopifyRefusal`.

    points    the points that the app gets per second
    """
    if not DOMAIN.fullmatch(domain):
        raise ShopifyRefusal(f"This is not a domain of a shop. {DOMAIN_RULE}")
    with platform.happening():
        if platform.find_shop(domain):
            raise ShopifyRefusal(f"The shop {domain} is there already.")
        if len(platform.shops()) >= MAX_SHOPS:
            raise ShopifyRefusal(f"There are {MAX_SHOPS} shops already.")
        now = platform.now()
        name = domain.partition(".")[0].replace("-", " ").capitalize()
        shop = Shop(domain=domain, name=name, points=points, created=now, updated=now)
        platform.store.put(domain, shop)
        add_location(platform, domain, "Warehouse")
        return shop


def add_location(
    platform: PlatformState, shop: str, name: str, *, online: bool = True, service: bool = False
) -> Location:
    """A new location.

    online    whether online sales can be sent from there
    service   whether it belongs to a fulfillment service
    """
    now = platform.now()
    with platform.happening():
        location = Location(name=name, online=online, service=service, created=now, updated=now)
        platform.store.put(shop, location)
        platform.send_message(shop, "locations/create", payloads.location(location))
        return location


def set_location(
    platform: PlatformState, shop: str, id: int, *, active: bool | None = None, online: bool | None = None
) -> None:
    """Open or close a location, for everything or for online sales."""
    with platform.happening():
        location = find_location(platform, shop, id)
        was = location.active
        location.active = was if active is None else active
        location.online = location.online if online is None else online
        location.updated = platform.now()
        platform.store.put(shop, location)
        platform.send_message(shop, "locations/update", payloads.location(location))
        if location.active != was:
            topic = "locations/activate" if location.active else "locations/deactivate"
            platform.send_message(shop, topic, payloads.location(location))


def find_location(platform: PlatformState, shop: str, id: int) -> Location:
    """A location of a shop. Raises `ShopifyRefusal`."""
    location = platform.store.find(Location, shop, id)
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
    platform: PlatformState, shop: str, title: str, variants: Sequence[NewVariant], *, status: str = "ACTIVE"
) -> list[Variant]:
    """Store a new product with its variants. Returns the variants."""
    now = platform.now()
    with platform.happening():
        product = platform.store.put(shop, Product(title=title, status=status, created=now, updated=now))
        new_variants = [
            _new_variant(platform, shop, product, variant, number) for number, variant in enumerate(variants, 1)
        ]
        platform.send_message(shop, "products/create", payloads.product(product, new_variants))
        return new_variants


def add_variant(platform: PlatformState, shop: str, product: int, variant: NewVariant) -> Variant:
    """A further variant of a product. Raises `ShopifyRefusal`."""
    with platform.happening():
        new_variant = _new_variant(
            platform,
            shop,
            _find_product(platform, shop, product),
            variant,
            len(variants_of(platform, shop, product)) + 1,
        )
        _product_changed(platform, shop, product)
        return new_variant


def _new_variant(platform: PlatformState, shop: str, product: Product, new: NewVariant, position: int) -> Variant:
    now = platform.now()
    variant = Variant(
        id=new.id,
        product=product.id,
        product_title=product.title,
        item=platform.store.new_id(),
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
    platform.store.put(shop, variant)
    stock = new.stock if isinstance(new.stock, Mapping) else {platform.store.select(Location, shop)[0].id: new.stock}
    for location, available in stock.items():
        level = platform.levels.add(shop, variant.item, location, available, now)
        platform.send_message(shop, "inventory_levels/connect", payloads.level(level))
    return variant


def change_variant(
    platform: PlatformState,
    shop: str,
    id: int,
    *,
    title: str | None = None,
    sku: str | None = None,
    tracked: bool | None = None,
) -> Variant:
    """Change a variant. Raises `ShopifyRefusal`."""
    with platform.happening():
        variant = find_variant(platform, shop, id)
        variant.title = variant.title if title is None else title
        variant.sku = variant.sku if sku is None else sku
        variant.tracked = variant.tracked if tracked is None else tracked
        variant.updated = platform.now()
        platform.store.put(shop, variant)
        _product_changed(platform, shop, variant.product)
        platform.send_message(shop, "inventory_items/update", payloads.item(variant))
        return variant


def remove_variant(platform: PlatformState, shop: str, id: int) -> None:
    """Delete a variant with its item and levels. Raises `ShopifyRefusal`."""
    with platform.happening():
        variant = find_variant(platform, shop, id)
        for level in platform.levels.of_item(shop, variant.item):
            platform.levels.remove(shop, variant.item, level.location)
            platform.send_message(shop, "inventory_levels/disconnect", payloads.level_gone(level))
        platform.store.remove(shop, variant)
        platform.send_message(shop, "inventory_items/delete", {"id": variant.item})
        _product_changed(platform, shop, variant.product)


def remove_product(platform: PlatformState, shop: str, id: int) -> None:
    """Delete a product with its variants. Raises `ShopifyRefusal`."""
    with platform.happening():
        for variant in variants_of(platform, shop, id):
            remove_variant(platform, shop, variant.id)
        platform.store.remove(shop, _find_product(platform, shop, id))
        platform.send_message(shop, "products/delete", {"id": id})


def find_variant(platform: PlatformState, shop: str, id: int) -> Variant:
    """A variant of a shop. Raises `ShopifyRefusal`."""
    variant = platform.store.find(Variant, shop, id)
    if variant is None:
        raise ShopifyRefusal(f"There is no variant {id}.")
    return variant


def find_item(platform: PlatformState, shop: str, item: int | None) -> Variant | None:
    """The variant that an inventory item belongs to."""
    variants = platform.store.select(Variant, shop, matching(("json_extract(body, '$.item') = ?", item)))
    return variants[0] if variants else None


def variants_of(platform: PlatformState, shop: str, product: int) -> list[Variant]:
    """The variants of a product."""
    return platform.store.select(Variant, shop, matching(("parent = ?", product)))


def available(platform: PlatformState, shop: str, variant: Variant) -> int:
    """How many units of a variant are available, all locations together."""
    return sum(level.available for level in platform.levels.of_item(shop, variant.item))


def _find_product(platform: PlatformState, shop: str, id: int) -> Product:
    product = platform.store.find(Product, shop, id)
    if product is None:
        raise ShopifyRefusal(f"There is no product {id}.")
    return product


def _product_changed(platform: PlatformState, shop: str, id: int) -> None:
    product = _find_product(platform, shop, id)
    product.updated = platform.now()
    platform.store.put(shop, product)
    platform.send_message(shop, "products/update", payloads.product(product, variants_of(platform, shop, id)))


def move(
    platform: PlatformState,
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
    with platform.happening():
        level = platform.levels.change(shop, item, location, platform.now(), available=available, committed=committed)
        if available and not quietly:
            platform.send_message(shop, "inventory_levels/update", payloads.level(level))
        return level


def count(platform: PlatformState, shop: str, item: int, location: int, available: int) -> Level:
    """Set the available quantity, as merchants do by hand. Raises `ShopifyRefusal`."""
    if abs(available) > MAX_QUANTITY:
        raise ShopifyRefusal(f"A level is between -{MAX_QUANTITY} and {MAX_QUANTITY}.")
    with platform.happening():
        level = platform.levels.find(shop, item, location)
        if level is None:
            raise ShopifyRefusal(f"The item {item} is not stocked at the location {location}.")
        return move(platform, shop, item, location, available=available - level.available)


def stock(platform: PlatformState, shop: str, item: int, location: int, available: int = 0) -> Level:
    """Stock an item at a further location. Raises `ShopifyRefusal`."""
    with platform.happening():
        find_location(platform, shop, location)
        if platform.levels.find(shop, item, location):
            raise ShopifyRefusal(f"The item {item} is stocked at the location {location} already.")
        level = platform.levels.add(shop, item, location, available, platform.now())
        platform.send_message(shop, "inventory_levels/connect", payloads.level(level))
        return level


def stop_stocking(platform: PlatformState, shop: str, item: int, location: int) -> None:
    """Stop stocking an item at a location. Raises `ShopifyRefusal`."""
    with platform.happening():
        level = platform.levels.find(shop, item, location)
        if level is None:
            raise ShopifyRefusal(f"The item {item} is not stocked at the location {location}.")
        platform.levels.remove(shop, item, location)
        platform.send_message(shop, "inventory_levels/disconnect", payloads.level_gone(level))
