"""A demo shop, added on the first start of `holdfast up`: one stock, sold one by one, by six and by twelve."""

from typing import NamedTuple

from holdfast.accounts.signin import links
from holdfast.inventory.merchants import operations as merchants
from holdfast.inventory.pools import operations as pools
from holdfast.inventory.pools.model import CreatePool, MemberFields
from holdfast.inventory.resources import Tx
from holdfast.inventory.shops import operations as shops
from holdfast.kit.contract.caller import system

DOMAIN = "demo.myshopify.com"
OWNER = "merchant@example.com"
"""The owner whom a link of the operator signs in to the console."""


class OwnerLink(NamedTuple):
    """The address of an owner, and the path of a link that signs the owner in, once, within 15 minutes."""

    email: str
    path: str


async def begin(tx: Tx) -> tuple[str | None, OwnerLink | None]:
    """Add the shop if there is none yet. Returns its key then, and a link that signs its owner in."""
    return await create_demo_shop(tx), await owner_link(tx)


async def create_demo_shop(tx: Tx) -> str | None:
    """Create a shop with a pool of 50. Returns its key; None if there are shops already."""
    if await tx.value("select exists (select from shops)"):
        return None
    shop, key = await shops.add(tx, DOMAIN)
    await merchants.add_owner(tx, shop.id, OWNER)
    packs = (("Single", 1), ("6-pack", 6), ("12-pack", 12))
    await pools.create(
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
    return key


async def owner_link(tx: Tx) -> OwnerLink | None:
    """A link that signs the first owner of the shop in; None without the shop or an owner."""
    owners = await tx.tuples(
        """
        select shop_id, email from merchants join shops on shops.id = shop_id
         where domain = %(domain)s and email is not null order by merchants.id limit 1
        """,
        {"domain": DOMAIN},
    )
    if not owners:
        return None
    [(shop_id, email)] = owners
    return OwnerLink(email, links.link_url(tx.resources.secret, "", await merchants.console_link(tx, shop_id)))
