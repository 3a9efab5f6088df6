"""Statements on the catalogs of shops."""

from collections.abc import Sequence

import msgspec

from holdfast.inventory.catalog.model import CatalogVariant, Location
from holdfast.inventory.resources import Tx
from holdfast.inventory.sync import levels


async def store_variants(
    tx: Tx, shop_id: int, variants: Sequence[CatalogVariant], *, import_id: int | None = None
) -> None:
    """Store variants, unless newer versions of them are stored.

    import_id    the import that has found them; None: not an import
    """
    await tx.run(
        """
        insert into catalog_variants (shop_id, gid, product_gid, product_title, title, sku, item_gid, tracked,
                                      updated_at, picture, import_id)
        select %(shop_id)s, gid, product_gid, left(product_title, 300), left(title, 300), left(sku, 300), item_gid,
               coalesce(tracked, true), updated_at, picture,
               coalesce(%(import_id)s::bigint, (select import_id from catalogs where shop_id = %(shop_id)s), 0)
          from json_to_recordset(%(variants)s) as variant (
               gid text, product_gid text, product_title text, title text, sku text, item_gid text, tracked boolean,
               updated_at timestamptz, picture text)
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
               -- Only imports read pictures.
               picture = case when %(import_id)s::bigint is null then catalog_variants.picture
                              else excluded.picture end,
               import_id = greatest(catalog_variants.import_id, excluded.import_id)
        """,
        {
            "shop_id": shop_id,
            "variants": msgspec.json.encode(variants).decode(),
            "says_tracked": all(variant.tracked is not None for variant in variants),
            "import_id": import_id,
        },
    )


async def store_tracking(tx: Tx, shop_id: int, item_gid: str, *, tracked: bool) -> None:
    """Store whether the platform counts an item."""
    await tx.run(
        """
        with changed_variant as (
            update catalog_variants set tracked = %(tracked)s
             where shop_id = %(shop_id)s and item_gid = %(item)s and tracked <> %(tracked)s returning 1)
        update catalogs set changes = changes + 1 where shop_id = %(shop_id)s and exists (select from changed_variant)
        """,
        {"shop_id": shop_id, "item": item_gid, "tracked": tracked},
    )


async def forget_variants(tx: Tx, shop_id: int, *, product_gid: str = "", item_gid: str = "") -> None:
    """Delete variants with their levels: those of a product, or of an item."""
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
        with deleted_variant as (
            delete from catalog_variants
             where shop_id = %(shop_id)s and (product_gid = %(product)s or item_gid = %(item)s) returning item_gid)
        delete from levels
         where shop_id = %(shop_id)s and (item_gid in (select item_gid from deleted_variant) or item_gid = %(item)s)
        """,
        {"shop_id": shop_id, "product": product_gid, "item": item_gid},
    )


async def forget_location(tx: Tx, shop_id: int, gid: str) -> None:
    """Delete a location with its levels."""
    rows = await tx.tuples(
        """
        select item_gid, location_gid from levels where shop_id = %(shop_id)s and location_gid = %(gid)s
         order by item_gid
        """,
        {"shop_id": shop_id, "gid": gid},
    )
    await levels.forget(tx, shop_id, [(item, location) for item, location in rows])
    await tx.run(
        """
        with deleted_location as (delete from locations where shop_id = %(shop_id)s and gid = %(gid)s)
        update catalogs set changes = changes + 1 where shop_id = %(shop_id)s
        """,
        {"shop_id": shop_id, "gid": gid},
    )


async def store_locations(tx: Tx, shop_id: int, locations: Sequence[Location], *, import_id: int | None = None) -> None:
    """Store locations. Targets are computed again if one is new, opened, closed, or becomes a fulfillment service's."""
    await tx.run(
        """
        with new_location as (
            select * from json_to_recordset(%(locations)s) as new_location (
                gid text, name text, active boolean, fulfillment_service boolean, updated_at timestamptz)),
        changed_location as (
            select from new_location
              left join lateral (
                select * from locations
                 where shop_id = %(shop_id)s and gid = new_location.gid limit 1) as locations on true
             where (locations.active is distinct from new_location.active
                    or new_location.fulfillment_service is distinct from locations.fulfillment_service
                       and new_location.fulfillment_service is not null)
               and (locations.updated_at is null or new_location.updated_at is null
                    or new_location.updated_at >= locations.updated_at)),
        stored_location as (
            insert into locations (shop_id, gid, name, active, fulfillment_service, updated_at, import_id)
            select %(shop_id)s, gid, left(name, 300), active, fulfillment_service, updated_at,
                   coalesce(%(import_id)s::bigint, (select import_id from catalogs where shop_id = %(shop_id)s), 0)
              from new_location order by gid
                on conflict (shop_id, gid) do update
               set name = excluded.name, active = excluded.active,
                   updated_at = coalesce(excluded.updated_at, locations.updated_at),
                   fulfillment_service = coalesce(excluded.fulfillment_service, locations.fulfillment_service),
                   import_id = greatest(locations.import_id, excluded.import_id)
             where locations.updated_at is null or excluded.updated_at is null
                or excluded.updated_at >= locations.updated_at)
        insert into catalogs (shop_id, changes) select %(shop_id)s, 1 where exists (select from changed_location)
            on conflict (shop_id) do update set changes = catalogs.changes + 1
        """,
        {"shop_id": shop_id, "locations": msgspec.json.encode(locations).decode(), "import_id": import_id},
    )


async def choose_location(tx: Tx, shop_id: int) -> None:
    """Choose the location that stocks most variants, if a shop keeps its stock at one location and has named none.

    Nothing is chosen before the first import is done.
    """
    needed = await tx.value(
        """
        select exists (select from catalogs where shop_id = %(shop_id)s and rule = 'one' and finished_at is not null)
               and not exists (select from locations where shop_id = %(shop_id)s and share_from < share_to)
        """,
        {"shop_id": shop_id},
    )
    if needed:
        await tx.run(
            """
            with stocked as (
                select location_gid as gid, count(*) as items from levels where shop_id = %(shop_id)s group by 1),
            chosen as (
                select gid from locations left join stocked using (gid)
                 where shop_id = %(shop_id)s and active and fulfillment_service = false
                 order by coalesce(items, 0) desc, length(gid), gid limit 1),
            shared as (
                update locations set share_from = 0, share_to = 100 from chosen
                 where locations.shop_id = %(shop_id)s and locations.gid = chosen.gid returning 1)
            update catalogs set changes = changes + 1 where shop_id = %(shop_id)s and exists (select from shared)
            """,
            {"shop_id": shop_id},
        )
