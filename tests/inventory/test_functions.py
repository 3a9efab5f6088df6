"""Functions of the database that have the rights of their owner."""

from tests.helpers.inventory_service import Inventory


async def test_a_function_with_its_owners_rights_looks_for_nothing_in_a_temporary_schema(inventory: Inventory) -> None:
    """Its caller could have put tables and functions there. Before, `enqueue_task` had the path of the user who
    migrated.
    """
    rows = await inventory.sql(
        """
        select proname, proconfig from pg_proc
         where prosecdef and pronamespace = 'public'::regnamespace
           and not coalesce(proconfig && array['search_path=pg_catalog, public, pg_temp'], false)
        """
    )

    assert rows == []
