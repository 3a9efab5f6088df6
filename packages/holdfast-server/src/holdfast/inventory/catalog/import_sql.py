"""Statements on the import of a shop."""

from typing import Literal

from holdfast.inventory.catalog.model import Import
from holdfast.inventory.resources import Reader, Tx
from holdfast.inventory.shops.operations import announce_sync_status
from holdfast.inventory.sync import levels


async def store_import(tx: Tx, shop_id: int) -> int:
    """Start a new import instead of any other of the shop. Returns its id."""
    await announce_sync_status(tx, shop_id)
    return await tx.value(
        """
        insert into catalogs (shop_id, import_id, requested_at) values (%(shop_id)s, 1, clock_timestamp())
            on conflict (shop_id) do update
           set import_id = catalogs.import_id + 1, bulk_gid = null, stored_lines = 0, objects = 0,
               requested_at = clock_timestamp(), finished_at = null, error = null
        returning import_id
        """,
        {"shop_id": shop_id},
    )


async def find_obstacle(tx: Tx, shop_id: int) -> Literal["not_connected", "running"] | None:
    """The reason why no new import can start; None: one can, also after one that has failed."""
    return await tx.value(
        """
        select case when not exists (select from installs
                                      where shop_id = %(shop_id)s and uninstalled_at is null and broken is null)
                    then 'not_connected'
                    when exists (select from catalogs
                                  where shop_id = %(shop_id)s and requested_at is not null and finished_at is null
                                    and error is null)
                    then 'running' end
        """,
        {"shop_id": shop_id},
    )


async def find(reader: Reader, shop_id: int) -> Import | None:
    """The import of a shop that is under way."""
    return await reader.row(
        Import,
        """
        select import_id as id, bulk_gid, stored_lines from catalogs
         where shop_id = %(shop_id)s and requested_at is not null and finished_at is null
        """,
        {"shop_id": shop_id},
    )


async def store_operation(tx: Tx, shop_id: int, import_id: int, bulk_gid: str) -> None:
    """Store the id of the platform's operation."""
    await tx.run(
        """
        update catalogs set bulk_gid = %(bulk_gid)s, stored_lines = 0, error = null
         where shop_id = %(shop_id)s and import_id = %(import_id)s
        """,
        {"shop_id": shop_id, "import_id": import_id, "bulk_gid": bulk_gid},
    )


async def drop_operation(tx: Tx, shop_id: int, import_id: int) -> None:
    """Delete the id of an operation that has failed: the next attempt starts a new one."""
    await tx.run(
        """
        update catalogs set bulk_gid = null, stored_lines = 0
         where shop_id = %(shop_id)s and import_id = %(import_id)s
        """,
        {"shop_id": shop_id, "import_id": import_id},
    )


async def store_progress(
    tx: Tx, shop_id: int, import_id: int, *, objects: int = 0, stored_lines: int = 0, error: str | None = None
) -> None:
    """Store the progress of an import, or its error."""
    await announce_sync_status(tx, shop_id)
    await tx.run(
        """
        update catalogs
           set objects = greatest(objects, %(objects)s), stored_lines = greatest(stored_lines, %(stored_lines)s),
               error = left(%(error)s, 1000)
         where shop_id = %(shop_id)s and import_id = %(import_id)s
        """,
        {
            "shop_id": shop_id,
            "import_id": import_id,
            "objects": objects,
            "stored_lines": stored_lines,
            "error": error,
        },
    )


async def finish(tx: Tx, shop_id: int, import_id: int) -> bool:
    """End an import, and delete rows that neither it nor a webhook since its start named.

    Returns false if it had ended before.
    """
    await announce_sync_status(tx, shop_id)
    is_finished_now = await tx.value(
        """
        with finished as (
            update catalogs
               set finished_at = clock_timestamp(), bulk_gid = null, error = null, changes = changes + 1,
                   objects = greatest(objects, stored_lines)
             where shop_id = %(shop_id)s and import_id = %(import_id)s and finished_at is null returning shop_id),
        deleted_variant as (
            delete from catalog_variants using finished
             where catalog_variants.shop_id = finished.shop_id and import_id < %(import_id)s),
        deleted_location as (
            delete from locations using finished
             where locations.shop_id = finished.shop_id and import_id < %(import_id)s)
        select true from finished
        """,
        {"shop_id": shop_id, "import_id": import_id},
    )
    if not is_finished_now:
        return False
    rows = await tx.tuples(
        """
        select item_gid, location_gid from levels where shop_id = %(shop_id)s and import_id < %(import_id)s
         order by item_gid, location_gid
        """,
        {"shop_id": shop_id, "import_id": import_id},
    )
    await levels.forget(tx, shop_id, [(item, location) for item, location in rows])
    return True


async def list_connected(tx: Tx, after: int, limit: int) -> list[int]:
    """The ids of shops that have the app."""
    rows = await tx.tuples(
        """
        select shop_id from installs
         where shop_id > %(after)s and uninstalled_at is null and broken is null order by shop_id limit %(limit)s
        """,
        {"after": after, "limit": limit},
    )
    return [shop_id for (shop_id,) in rows]
