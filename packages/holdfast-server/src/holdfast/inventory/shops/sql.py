"""Statements on shops and their keys."""

from collections.abc import Sequence

from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.shops.model import Shop, ShopKey


async def insert_shop(tx: Tx, domain: str) -> Shop | None:
    """Insert a shop with its shared inventory. None if the domain is taken."""
    return await tx.row(
        Shop,
        """
        with shop as (insert into shops (domain) values (%(domain)s) on conflict do nothing returning id, domain),
             shared as (insert into shared_inventories (shop_id) select id from shop returning id)
        select shop.id, shop.domain, shared.id as shared_inventory_id from shop, shared
        """,
        {"domain": domain},
    )


async def find_shop(reader: Reader, domain: str) -> Shop | None:
    return await reader.row(
        Shop,
        """
        select shops.id, shops.domain, shared_inventories.id as shared_inventory_id
          from shops join shared_inventories on shared_inventories.shop_id = shops.id
         where shops.domain = %(domain)s
        """,
        {"domain": domain},
    )


async def list_shops(reader: Reader) -> list[Shop]:
    return await reader.rows(
        Shop,
        """
        select shops.id, shops.domain, shared_inventories.id as shared_inventory_id
          from shops join shared_inventories on shared_inventories.shop_id = shops.id
         order by shops.id
        """,
    )


async def lock_shop(tx: Tx, shop_id: int) -> None:
    """Make other transactions that change the shop's key wait."""
    await tx.run("select from shops where id = %(shop_id)s for no key update", {"shop_id": shop_id})


async def lock_key(tx: Tx, shop_id: int) -> ShopKey | None:
    """Lock the active key of a shop."""
    return await tx.row(
        ShopKey,
        """
        select id, hash, sealed, scopes, inserted_at from api_keys
         where shop_id = %(shop_id)s and active for update
        """,
        {"shop_id": shop_id},
    )


async def deactivate_key(tx: Tx, id: int) -> list[bytes]:
    """End a key and the registration derived from it. Returns their hashes, which key rings may have cached."""
    rows = await tx.tuples(
        """
        with ended as (update api_keys set active = false where id = %(id)s returning hash)
        select hash from ended
        union all
        select hash from agent_registrations where api_key_id = %(id)s
        """,
        {"id": id},
    )
    return [hash for (hash,) in rows]


async def insert_key(tx: Tx, shop_id: int, hash: bytes, sealed: bytes, scopes: Sequence[str]) -> int:
    """Store a key. Returns its id."""
    return await tx.value(
        """
        insert into api_keys (shop_id, hash, sealed, scopes)
        values (%(shop_id)s, %(hash)s, %(sealed)s, %(scopes)s) returning id
        """,
        {"shop_id": shop_id, "hash": hash, "sealed": sealed, "scopes": list(scopes)},
    )
