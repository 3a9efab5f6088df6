"""The import of a shop's variants, locations and levels, by an operation of the platform that reads them all.

Tasks do it, each one step: start the operation, poll whether it has completed, store the lines of its result. The
number of stored lines is stored with them, so a task after a kill continues behind them. Rows that the platform no
longer has are deleted only after all lines are stored.
"""

from collections.abc import Sequence
from functools import partial

from holdfast.inventory.catalog import import_sql
from holdfast.inventory.catalog.import_lines import BULK_QUERY, READ_IMPORT, READ_LOCATIONS, RUN_IMPORT, ImportLines
from holdfast.inventory.catalog.model import IMPORT, Import, ImportTask
from holdfast.inventory.catalog.sql import choose_location, store_locations, store_variants
from holdfast.inventory.installs.access import call_admin_api
from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.resources import Steps, Tx
from holdfast.inventory.shopify.platform_client import PlatformRefusal, PlatformUnreachable
from holdfast.inventory.sync import levels
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import Problem, refuses

POLL_SECONDS = 2.0
"""Seconds from one poll of an operation to the next."""

BATCH_LINES = 1_000
"""The most lines that one transaction stores."""

START_BATCH_SIZE = 100
"""How many imports one transaction starts."""


class ImportFailed(Exception):
    """The platform did not complete the operation. The task is retried with a new one."""


async def begin(tx: Tx, shop_id: int) -> None:
    """Start to import a shop, soon after this transaction. An import that is under way is abandoned."""
    import_id = await import_sql.store_import(tx, shop_id)
    await tx.enqueue(IMPORT, ImportTask(shop_id, import_id), tenant=shop_id)


class ImportProducts(Command):
    """Import the products of the shop now."""


@refuses(SHOP_NOT_CONNECTED)
async def import_products(tx: Tx, caller: Caller, command: ImportProducts) -> None:
    """Start to import the shop's products from the platform. An import that is under way goes on instead."""
    obstacle = await import_sql.find_obstacle(tx, caller.tenant)
    if obstacle == "not_connected":
        raise SHOP_NOT_CONNECTED()
    if obstacle != "running":
        await begin(tx, caller.tenant)


async def import_all(steps: Steps) -> int:
    """Import every shop that has the app again, to find changes whose webhooks did not come. Returns how many."""
    total, after = 0, 0
    while ids := await steps.transact(partial(_begin_batch, after=after)):
        total, after = total + len(ids), ids[-1]
    return total


async def _begin_batch(tx: Tx, *, after: int) -> Sequence[int]:
    ids = await import_sql.list_connected(tx, after, START_BATCH_SIZE)
    for shop_id in ids:
        await begin(tx, shop_id)
    return ids


async def advance_import(steps: Steps, task: ImportTask) -> None:
    """Do the next step of an import. May be called at any time, and twice."""
    running_import = await steps.read(partial(import_sql.find, shop_id=task.shop_id))
    if running_import is None or running_import.id != task.import_id:
        return
    try:
        await _advance(steps, task, running_import)
    except Problem as problem:
        await _store_error(steps, task, problem.message)
        if problem.type is not SHOP_NOT_CONNECTED:
            raise
    except (PlatformUnreachable, PlatformRefusal, ImportFailed) as error:
        await _store_error(steps, task, str(error))
        raise


async def _advance(steps: Steps, task: ImportTask, running_import: Import) -> None:
    if running_import.bulk_gid is None:
        await _store_locations(steps, task)
        answer = await call_admin_api(steps, task.shop_id, RUN_IMPORT, {"query": BULK_QUERY})
        payload = answer.bulk_operation_run_query
        if payload.bulk_operation is None:
            raise ImportFailed("; ".join(error.message for error in payload.user_errors))
        gid = payload.bulk_operation.id
        await steps.transact(
            partial(import_sql.store_operation, shop_id=task.shop_id, import_id=task.import_id, bulk_gid=gid)
        )
        await steps.transact(partial(_poll_later, task=task))
        return
    bulk = (await call_admin_api(steps, task.shop_id, READ_IMPORT, {"id": running_import.bulk_gid})).bulk_operation
    if bulk and bulk.status in {"CREATED", "RUNNING", "CANCELING"}:
        await steps.transact(partial(_poll_later, task=task, objects=int(bulk.object_count)))
    elif bulk and bulk.status == "COMPLETED":
        await _store_result(steps, task, running_import, bulk.url)
        await steps.transact(partial(_finish_and_request_sync, task=task))
    else:
        await steps.transact(partial(import_sql.drop_operation, shop_id=task.shop_id, import_id=task.import_id))
        raise ImportFailed(
            f"The platform's operation ended as {bulk.status if bulk else 'unknown'}: "
            f"{bulk.error_code if bulk else 'it is gone'}."
        )


async def _poll_later(tx: Tx, *, task: ImportTask, objects: int = 0) -> None:
    await import_sql.store_progress(tx, task.shop_id, task.import_id, objects=objects)
    await tx.enqueue(IMPORT, task, delay=POLL_SECONDS)


async def _store_locations(steps: Steps, task: ImportTask) -> None:
    after: str | None = None
    while True:
        page = (await call_admin_api(steps, task.shop_id, READ_LOCATIONS, {"after": after})).locations
        locations = [location_node.location for location_node in page.nodes]
        await steps.transact(
            partial(store_locations, shop_id=task.shop_id, locations=locations, import_id=task.import_id)
        )
        if not page.page_info.has_next_page:
            return
        after = page.page_info.end_cursor


async def _store_result(steps: Steps, task: ImportTask, running_import: Import, url: str | None) -> None:
    """Store the lines of a result that are not stored yet. Without an address there are none."""
    if url is None:
        return
    lines: list[bytes] = []
    number = 0
    async for line in steps.resources.platform.lines(url):
        number += 1
        if number > running_import.stored_lines:
            lines.append(line)
        if len(lines) >= BATCH_LINES:
            await steps.transact(partial(_store_lines, task=task, lines=lines, stored_lines=number))
            lines = []
    if lines:
        await steps.transact(partial(_store_lines, task=task, lines=lines, stored_lines=number))


async def _store_lines(tx: Tx, *, task: ImportTask, lines: Sequence[bytes], stored_lines: int) -> None:
    result = ImportLines.of(lines)
    if result.variants:
        await store_variants(tx, task.shop_id, result.variants, import_id=task.import_id)
    await levels.observe(tx, task.shop_id, result.levels, import_id=task.import_id)
    await import_sql.store_progress(tx, task.shop_id, task.import_id, stored_lines=stored_lines)


async def _finish_and_request_sync(tx: Tx, *, task: ImportTask) -> None:
    if await import_sql.finish(tx, task.shop_id, task.import_id):
        await choose_location(tx, task.shop_id)
        await levels.request_sync(tx, task.shop_id)


async def _store_error(steps: Steps, task: ImportTask, error: str) -> None:
    await steps.transact(
        partial(import_sql.store_progress, shop_id=task.shop_id, import_id=task.import_id, error=error)
    )
