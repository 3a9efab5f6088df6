"""The import of a shop's variants, locations and levels, by an operation of the platform that reads them all.

It is done by tasks, each of which brings it forward: ask for the operation, look whether it has completed, store its
result. How many lines are stored is stored with them, so that whoever goes on after a kill begins behind them. Nothing
is forgotten until all of it is stored; then what the platform does not have any more is.
"""

from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from holdfast.inventory.catalog import imports
from holdfast.inventory.catalog.lines import LOCATIONS, QUERY, Lines, LocationNode
from holdfast.inventory.catalog.model import IMPORT, Import, OfImport
from holdfast.inventory.catalog.sql import store_locations, store_variants
from holdfast.inventory.installs.access import ask
from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.resources import Steps, Tx
from holdfast.inventory.shopify.admin import Query
from holdfast.inventory.shopify.platform import Refused, Unreachable
from holdfast.inventory.sync import levels
from holdfast.kit.problems import Problem

LOOK_SECONDS = 2.0
"""Seconds after which to look again whether an operation has completed."""

LINES_AT_ONCE = 1_000
"""Lines that are stored by one transaction."""


class _Bulk(Struct, rename="camel"):
    id: str
    status: str
    error_code: str | None = None
    url: str | None = None
    object_count: str = "0"


class _UserError(Struct):
    message: str


class _Begun(Struct, rename="camel"):
    bulk_operation: _Bulk | None
    user_errors: list[_UserError]


class _Run(Struct, rename="camel"):
    bulk_operation_run_query: _Begun


class _Looked(Struct, rename="camel"):
    bulk_operation: _Bulk | None


class _Page(Struct, rename="camel"):
    has_next_page: bool
    end_cursor: str | None


class _Locations(Struct, rename="camel"):
    nodes: list[LocationNode]
    page_info: _Page


class _Located(Struct):
    locations: _Locations


RUN = Query(
    "run_import",
    """
    mutation RunImport($query: String!) {
      bulkOperationRunQuery(query: $query) { bulkOperation { id status } userErrors { message } }
    }
    """,
    _Run,
)
LOOK = Query(
    "look_at_import",
    "query LookAtImport($id: ID!) { bulkOperation(id: $id) { id status errorCode url objectCount } }",
    _Looked,
    cost=1,
)
PLACES = Query("read_locations", LOCATIONS, _Located, cost=110)


class ImportFailed(Exception):
    """The platform did not complete the operation. The task is tried again, with a new one."""


async def begin(tx: Tx, shop_id: int) -> None:
    """Begin to import a shop, soon after this transaction. An import that is under way is given up."""
    import_id = await imports.begin(tx, shop_id)
    await tx.enqueue(IMPORT, OfImport(shop_id, import_id), tenant=shop_id)


async def import_all(steps: Steps) -> int:
    """Import every shop that has the app anew, to find what was never told. Returns how many."""
    total, after = 0, 0
    while ids := await steps.transact(partial(_begin_some, after=after)):
        total, after = total + len(ids), ids[-1]
    return total


async def _begin_some(tx: Tx, *, after: int) -> Sequence[int]:
    ids = await imports.connected(tx, after, 100)
    for shop_id in ids:
        await begin(tx, shop_id)
    return ids


async def bring_forward(steps: Steps, of: OfImport) -> None:
    """Do what is next of an import. May be called at any time, and twice."""
    under_way = await steps.read(partial(imports.find, shop_id=of.shop_id))
    if under_way is None or under_way.id != of.import_id:
        return
    try:
        await _forward(steps, of, under_way)
    except Problem as problem:
        await _note(steps, of, problem.message)
        if problem.type is not SHOP_NOT_CONNECTED:
            raise
    except (Unreachable, Refused, ImportFailed) as error:
        await _note(steps, of, str(error))
        raise


async def _forward(steps: Steps, of: OfImport, under_way: Import) -> None:
    if under_way.bulk_gid is None:
        await _store_locations(steps, of)
        begun = (await ask(steps, of.shop_id, RUN, {"query": QUERY})).bulk_operation_run_query
        if begun.bulk_operation is None:
            raise ImportFailed("; ".join(error.message for error in begun.user_errors))
        gid = begun.bulk_operation.id
        await steps.transact(partial(imports.begun, shop_id=of.shop_id, import_id=of.import_id, bulk_gid=gid))
        await steps.transact(partial(_look_again, of=of))
        return
    bulk = (await ask(steps, of.shop_id, LOOK, {"id": under_way.bulk_gid})).bulk_operation
    if bulk and bulk.status in {"CREATED", "RUNNING", "CANCELING"}:
        await steps.transact(partial(_look_again, of=of, objects=int(bulk.object_count)))
    elif bulk and bulk.status == "COMPLETED":
        await _store(steps, of, under_way, bulk.url)
        await steps.transact(partial(_finish, of=of))
    else:
        await steps.transact(partial(imports.again, shop_id=of.shop_id, import_id=of.import_id))
        raise ImportFailed(
            f"The platform's operation ended as {bulk.status if bulk else 'unknown'}: "
            f"{bulk.error_code if bulk else 'it is gone'}."
        )


async def _look_again(tx: Tx, *, of: OfImport, objects: int = 0) -> None:
    await imports.note(tx, of.shop_id, of.import_id, objects=objects)
    await tx.enqueue(IMPORT, of, delay=LOOK_SECONDS)


async def _store_locations(steps: Steps, of: OfImport) -> None:
    after: str | None = None
    while True:
        page = (await ask(steps, of.shop_id, PLACES, {"after": after})).locations
        found = [each.location for each in page.nodes]
        await steps.transact(partial(store_locations, shop_id=of.shop_id, locations=found, import_id=of.import_id))
        if not page.page_info.has_next_page:
            return
        after = page.page_info.end_cursor


async def _store(steps: Steps, of: OfImport, under_way: Import, url: str | None) -> None:
    """Store the lines of a result that are not stored yet. Without an address, there are none."""
    if url is None:
        return
    lines: list[bytes] = []
    number = 0
    async for line in steps.resources.platform.lines(url):
        number += 1
        if number > under_way.stored_lines:
            lines.append(line)
        if len(lines) >= LINES_AT_ONCE:
            await steps.transact(partial(_store_lines, of=of, lines=lines, upto=number))
            lines = []
    if lines:
        await steps.transact(partial(_store_lines, of=of, lines=lines, upto=number))


async def _store_lines(tx: Tx, *, of: OfImport, lines: Sequence[bytes], upto: int) -> None:
    read = Lines.of(lines)
    if read.variants:
        await store_variants(tx, of.shop_id, read.variants, import_id=of.import_id)
    await levels.observe(tx, of.shop_id, read.levels, import_id=of.import_id)
    await imports.note(tx, of.shop_id, of.import_id, stored_lines=upto)


async def _finish(tx: Tx, *, of: OfImport) -> None:
    if await imports.finish(tx, of.shop_id, of.import_id):
        await levels.call(tx, of.shop_id)


async def _note(steps: Steps, of: OfImport, error: str) -> None:
    await steps.transact(partial(imports.note, shop_id=of.shop_id, import_id=of.import_id, error=error))
