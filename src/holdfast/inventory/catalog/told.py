"""What the platform tells of products, items, levels and locations. Whatever comes late changes nothing newer."""

import datetime as dt
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from holdfast.inventory.catalog import sql
from holdfast.inventory.catalog.model import Location, Variant
from holdfast.inventory.resources import Steps, Tx
from holdfast.inventory.sync import levels
from holdfast.inventory.sync.model import Observed
from holdfast.inventory.webhooks.model import Delivery

Number = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Moment = Annotated[dt.datetime, Meta(tz=True)]


class _Identified(Struct):
    id: Number


class _Level(Struct):
    inventory_item_id: Number
    location_id: Number
    available: int | None = None
    updated_at: Moment | None = None
    admin_graphql_api_id: str | None = None


class _Variant(Struct):
    id: Number
    inventory_item_id: Number
    title: str | None = None
    sku: str | None = None
    updated_at: Moment | None = None


class _Product(Struct):
    id: Number
    title: str = ""
    updated_at: Moment | None = None
    variants: list[_Variant] = []


class _Item(Struct):
    id: Number
    tracked: bool = True


class _Location(Struct):
    id: Number
    name: str = ""
    active: bool = True
    updated_at: Moment | None = None


async def changed_levels(steps: Steps, deliveries: Sequence[Delivery]) -> None:
    """Levels of one shop that changed, or are new. They are only compared: orders alone sell."""
    shop_id = deliveries[0].shop_id
    newest: dict[tuple[str, str], Observed] = {}
    for delivery in deliveries:
        told = msgspec.json.decode(delivery.payload, type=_Level, strict=False)
        if told.available is None or told.admin_graphql_api_id is None:
            continue  # the item is not counted
        pair = _gid("InventoryItem", told.inventory_item_id), _gid("Location", told.location_id)
        other = newest.get(pair)
        if other is None or _seconds(told.updated_at) >= _seconds(other.seen_at):
            newest[pair] = Observed(*pair, told.admin_graphql_api_id, told.available, told.updated_at)

    async def work(tx: Tx) -> None:
        await levels.observe(tx, shop_id, [*newest.values()])
        await levels.call_if_needed(tx, shop_id, {item for item, _ in newest})

    if newest:
        await steps.transact(work)


def _seconds(moment: dt.datetime | None) -> float:
    return moment.timestamp() if moment else float("inf")


async def level_gone(steps: Steps, delivery: Delivery) -> None:
    """An item that is not stocked at a location any more."""
    told = msgspec.json.decode(delivery.payload, type=_Level, strict=False)
    pair = _gid("InventoryItem", told.inventory_item_id), _gid("Location", told.location_id)
    await steps.transact(lambda tx: levels.forget(tx, delivery.shop_id, [pair]))


async def product(steps: Steps, delivery: Delivery) -> None:
    """A product that is new or different."""
    told = msgspec.json.decode(delivery.payload, type=_Product, strict=False)
    variants = [
        Variant(
            _gid("ProductVariant", each.id),
            _gid("Product", told.id),
            told.title,
            each.title or "",
            each.sku,
            _gid("InventoryItem", each.inventory_item_id),
            None,
            told.updated_at,
        )
        for each in told.variants
    ]

    async def work(tx: Tx) -> None:
        await sql.store_variants(tx, delivery.shop_id, variants)
        await levels.call_if_needed(tx, delivery.shop_id, [each.item_gid for each in variants])

    await steps.transact(work)


async def product_gone(steps: Steps, delivery: Delivery) -> None:
    """A product that was deleted."""
    gid = _gid("Product", msgspec.json.decode(delivery.payload, type=_Identified, strict=False).id)
    await steps.transact(partial(sql.forget_variants, shop_id=delivery.shop_id, product_gid=gid))


async def item(steps: Steps, delivery: Delivery) -> None:
    """An item that the platform counts from now on, or no longer."""
    told = msgspec.json.decode(delivery.payload, type=_Item, strict=False)

    async def work(tx: Tx) -> None:
        await sql.track(tx, delivery.shop_id, _gid("InventoryItem", told.id), tracked=told.tracked)
        await levels.call(tx, delivery.shop_id)

    await steps.transact(work)


async def item_gone(steps: Steps, delivery: Delivery) -> None:
    """An item that was deleted with its variant."""
    gid = _gid("InventoryItem", msgspec.json.decode(delivery.payload, type=_Identified, strict=False).id)
    await steps.transact(partial(sql.forget_variants, shop_id=delivery.shop_id, item_gid=gid))


async def location(steps: Steps, delivery: Delivery) -> None:
    """A location that is new, or different, or was opened or closed."""
    told = msgspec.json.decode(delivery.payload, type=_Location, strict=False)
    stored = Location(_gid("Location", told.id), told.name, told.active, told.updated_at)

    async def work(tx: Tx) -> None:
        await sql.store_locations(tx, delivery.shop_id, [stored])
        await levels.call(tx, delivery.shop_id)

    await steps.transact(work)


async def location_gone(steps: Steps, delivery: Delivery) -> None:
    """A location that was deleted."""
    gid = _gid("Location", msgspec.json.decode(delivery.payload, type=_Identified, strict=False).id)

    async def work(tx: Tx) -> None:
        await sql.forget_location(tx, delivery.shop_id, gid)
        await levels.call(tx, delivery.shop_id)

    await steps.transact(work)


def _gid(kind: str, number: int) -> str:
    return f"gid://shopify/{kind}/{number}"
