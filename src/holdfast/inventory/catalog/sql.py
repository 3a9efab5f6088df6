"""Statements on the catalogs of shops."""

from collections.abc import Sequence

import msgspec

from holdfast.inventory.catalog.model import Location, Variant
from holdfast.inventory.resources import Tx


async def store_variants(tx: Tx, shop_id: int, variants: Sequence[Variant], *, import_id: int | None = None) -> None:
    """Store variants, unless something newer is known of them.

    import_id    the import that has found them; None: not an import
    """
    await tx.run(
        """
        insert into catalog_variants (shop_id, gid, product_gid, product_title, title, sku, item_gid, tracked,
                                      updated_at, import_id)
        select %(shop_id)s, gid, product_gid, left(product_title, 300), left(title, 300), left(sku, 300), item_gid,
               coalesce(tracked, true), updated_at,
               coalesce(%(import_id)s::bigint, (select import_id from catalogs where shop_id = %(shop_id)s), 0)
          from json_to_recordset(%(variants)s) as given (
               gid text, product_gid text, product_title text, title text, sku text, item_gid text, tracked boolean,
               updated_at timestamptz)
         order by gid
            on conflict (shop_id, gid) do update
           set (product_gid, product_title, title, sku, item_gid, tracked, updated_at) = (
                   select excluded.product_gid, excluded.product_title, excluded.title, excluded.sku,
                          excluded.item_gid, case when %(says_tracked)s then excluded.tracked
                                                  else catalog_variants.tracked end, excluded.updated_at
                    where catalog_variants.updated_at is null or excluded.updated_at is null
                       or excluded.updated_at >= catalog_variants.updated_at
                    union all
                   select catalog_variants.product_gid, catalog_variants.product_title, catalog_variants.title,
                          catalog_variants.sku, catalog_variants.item_gid, catalog_variants.tracked,
                          catalog_variants.updated_at
                    where excluded.updated_at < catalog_variants.updated_at),
               import_id = greatest(catalog_variants.import_id, excluded.import_id)
        """,
        {
            "shop_id": shop_id,
            "variants": msgspec.json.encode(variants).decode(),
            "says_tracked": all(each.tracked is not None for each in variants),
            "import_id": import_id,
        },
    )


async def track(tx: Tx, shop_id: int, item_gid: str, *, tracked: bool) -> None:
    """Store whether the platform counts an item."""
    await tx.run(
        """
        with changed as (
            update catalog_variants set tracked = %(tracked)s
             where shop_id = %(shop_id)s and item_gid = %(item)s and tracked <> %(tracked)s returning 1)
        update catalogs set changes = changes + 1 where shop_id = %(shop_id)s and exists (select from changed)
        """,
        {"shop_id": shop_id, "item": item_gid, "tracked": tracked},
    )


async def forget_variants(tx: Tx, shop_id: int, *, product_gid: str = "", item_gid: str = "") -> None:
    """Forget variants with their levels: those of a product, or of an item."""
    await tx.run(
        """
        select from levels
         where shop_id = %(shop_id)s
           and (item_gid = %(item)s
                or item_gid in (select item_gid from catalog_variants
                                 where shop_id = %(shop_id)s and product_gid = %(product)s))
         order by item_gid, location_gid for no key update
        """,
        {"shop_id": shop_id, "product": product_gid, "item": item_gid},
    )
    await tx.run(
        """
        with gone as (
            delete from catalog_variants
             where shop_id = %(shop_id)s and (product_gid = %(product)s or item_gid = %(item)s) returning item_gid)
        delete from levels
         where shop_id = %(shop_id)s and (item_gid in (select item_gid from gone) or item_gid = %(item)s)
        """,
        {"shop_id": shop_id, "product": product_gid, "item": item_gid},
    )


async def forget_location(tx: Tx, shop_id: int, gid: str) -> None:
    """Forget a location with its levels."""
    await tx.run(
        """
        select from levels where shop_id = %(shop_id)s and location_gid = %(gid)s
         order by item_gid, location_gid for no key update
        """,
        {"shop_id": shop_id, "gid": gid},
    )
    await tx.run(
        """
        with gone as (delete from locations where shop_id = %(shop_id)s and gid = %(gid)s),
             counted as (update catalogs set changes = changes + 1 where shop_id = %(shop_id)s)
        delete from levels where shop_id = %(shop_id)s and location_gid = %(gid)s
        """,
        {"shop_id": shop_id, "gid": gid},
    )


async def store_locations(tx: Tx, shop_id: int, locations: Sequence[Location], *, import_id: int | None = None) -> None:
    """Store locations. Targets are reckoned anew if one was opened or closed, or is new."""
    await tx.run(
        """
        with given as (
            select * from json_to_recordset(%(locations)s) as given (
                gid text, name text, active boolean, updated_at timestamptz)),
        changing as (
            select from given left join locations on locations.shop_id = %(shop_id)s and locations.gid = given.gid
             where locations.active is distinct from given.active
               and (locations.updated_at is null or given.updated_at is null
                    or given.updated_at >= locations.updated_at)),
        stored as (
            insert into locations (shop_id, gid, name, active, updated_at, import_id)
            select %(shop_id)s, gid, left(name, 300), active, updated_at,
                   coalesce(%(import_id)s::bigint, (select import_id from catalogs where shop_id = %(shop_id)s), 0)
              from given order by gid
                on conflict (shop_id, gid) do update
               set name = excluded.name, active = excluded.active, updated_at = excluded.updated_at,
                   import_id = greatest(locations.import_id, excluded.import_id)
             where locations.updated_at is null or excluded.updated_at is null
                or excluded.updated_at >= locations.updated_at)
        insert into catalogs (shop_id, changes) select %(shop_id)s, 1 where exists (select from changing)
            on conflict (shop_id) do update set changes = catalogs.changes + 1
        """,
        {"shop_id": shop_id, "locations": msgspec.json.encode(locations).decode(), "import_id": import_id},
    )
