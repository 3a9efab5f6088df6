"""Handles partner webhooks about products, items, levels and locations. A late one changes nothing newer."""

import datetime as dt
from collections.abc import Sequence
from functools import partial

from holdfast.inventory.catalog import sql
from holdfast.inventory.catalog.model import CatalogVariant, Location
from holdfast.inventory.partner_webhooks.model import Delivery
from holdfast.inventory.partner_webhooks.payloads import (
    DeletedPayload,
    ItemPayload,
    LevelPayload,
    LocationPayload,
    ProductPayload,
    read_payload,
)
from holdfast.inventory.resources import Steps, Tx
from holdfast.inventory.sync import levels
from holdfast.inventory.sync.model import ObservedLevel


async def store_levels(steps: Steps, deliveries: Sequence[Delivery]) -> None:
    """Store new and changed levels of one shop. They are only compared: orders alone sell."""
    shop_id = deliveries[0].shop_id
    newest: dict[tuple[str, str], ObservedLevel] = {}
    for delivery in deliveries:
        level = read_payload(delivery, LevelPayload)
        if level.available is None or level.admin_graphql_api_id is None:
            continue  # the item is not counted
        pair = _gid("InventoryItem", level.inventory_item_id), _gid("Location", level.location_id)
        other = newest.get(pair)
        if other is None or _seconds(level.updated_at) >= _seconds(other.seen_at):
            newest[pair] = ObservedLevel(*pair, level.admin_graphql_api_id, level.available, level.updated_at)

    async def work(tx: Tx) -> None:
        await levels.observe(tx, shop_id, [*newest.values()])
        await levels.request_sync_if_needed(tx, shop_id, {item for item, _ in newest})

    if newest:
        await steps.transact(work)


def _seconds(moment: dt.datetime | None) -> float:
    return moment.timestamp() if moment else float("inf")


async def forget_level(steps: Steps, delivery: Delivery) -> None:
    """Delete a level: its item is no longer stocked at the location."""
    level = read_payload(delivery, LevelPayload)
    pair = _gid("InventoryItem", level.inventory_item_id), _gid("Location", level.location_id)
    await steps.transact(lambda tx: levels.forget(tx, delivery.shop_id, [pair]))


async def store_product(steps: Steps, delivery: Delivery) -> None:
    """Store the variants of a new or changed product."""
    product = read_payload(delivery, ProductPayload)
    variants = [
        CatalogVariant(
            _gid("ProductVariant", variant.id),
            _gid("Product", product.id),
            product.title,
            variant.title,
            variant.sku or None,
            _gid("InventoryItem", variant.inventory_item_id),
            None,
            product.updated_at,
        )
        for variant in product.variants
    ]

    async def work(tx: Tx) -> None:
        await sql.store_variants(tx, delivery.shop_id, variants)
        await levels.request_sync_if_needed(tx, delivery.shop_id, [variant.item_gid for variant in variants])

    await steps.transact(work)


async def forget_product(steps: Steps, delivery: Delivery) -> None:
    """Delete the variants of a deleted product."""
    gid = _gid("Product", read_payload(delivery, DeletedPayload).id)
    await steps.transact(partial(sql.forget_variants, shop_id=delivery.shop_id, product_gid=gid))


async def store_item(steps: Steps, delivery: Delivery) -> None:
    """Store that the platform counts an item from now on, or no longer."""
    item = read_payload(delivery, ItemPayload)

    async def work(tx: Tx) -> None:
        await sql.store_tracking(tx, delivery.shop_id, _gid("InventoryItem", item.id), tracked=item.tracked)
        await levels.request_sync(tx, delivery.shop_id)

    await steps.transact(work)


async def forget_item(steps: Steps, delivery: Delivery) -> None:
    """Delete the variants of an item that was deleted."""
    gid = _gid("InventoryItem", read_payload(delivery, DeletedPayload).id)
    await steps.transact(partial(sql.forget_variants, shop_id=delivery.shop_id, item_gid=gid))


async def store_location(steps: Steps, delivery: Delivery) -> None:
    """Store a location that is new, changed, opened or closed."""
    payload = read_payload(delivery, LocationPayload)
    location = Location(_gid("Location", payload.id), payload.name, payload.active, payload.legacy, payload.updated_at)

    async def work(tx: Tx) -> None:
        await sql.store_locations(tx, delivery.shop_id, [location])
        await sql.choose_location(tx, delivery.shop_id)
        await levels.request_sync(tx, delivery.shop_id)

    await steps.transact(work)


async def forget_location(steps: Steps, delivery: Delivery) -> None:
    """Delete a location that was deleted."""
    gid = _gid("Location", read_payload(delivery, DeletedPayload).id)

    async def work(tx: Tx) -> None:
        await sql.forget_location(tx, delivery.shop_id, gid)
        await sql.choose_location(tx, delivery.shop_id)
        await levels.request_sync(tx, delivery.shop_id)

    await steps.transact(work)


def _gid(kind: str, number: int) -> str:
    return f"gid://shopify/{kind}/{number}"
