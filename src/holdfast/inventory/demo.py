"""A shop to look at, planted on the first start of `holdfast up`: one stock, sold one by one, by six and by twelve."""

from typing import NamedTuple

from holdfast.inventory.merchants import operations as merchants
from holdfast.inventory.pools import operations as pools
from holdfast.inventory.pools.model import CreatePool, MemberFields
from holdfast.inventory.resources import Tx
from holdfast.inventory.shops import operations as shops
from holdfast.kit.caller import system

DOMAIN = "demo.myshopify.com"
OWNER = "merchant@example.com"
"""Whom a link of the operator signs in to its console."""


class Planted(NamedTuple):
    domain: str
    key: str
    pool_id: int


async def plant(tx: Tx) -> Planted | None:
    """A shop with its key and a pool of 50; None when there are shops already."""
    if await tx.value("select exists (select from shops)"):
        return None
    shop, key = await shops.add(tx, DOMAIN)
    await merchants.add_owner(tx, shop.id, OWNER)
    packs = (("Single", 1), ("6-pack", 6), ("12-pack", 12))
    change = await pools.create(
        tx,
        system(shop.id),
        CreatePool(
            name="Honey jars",
            quantity=50,
            low_stock_at=12,
            members=[
                MemberFields(f"gid://shopify/ProductVariant/{1000 + units}", units, f"HONEY-{units}", title)
                for title, units in packs
            ],
        ),
    )
    return Planted(shop.domain, key, change.pool.id)
