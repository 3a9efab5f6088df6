"""The import of a shop's variants, locations and levels, by an operation of the platform that reads them all.

Tasks do it, each one step: start the operation, poll whether it has completed, store the lines of its result. The
number of stored lines is stored with them, so a task after a kill continues behind them. Rows that the platform no
longer has are deleted only after all lines are stored.
"""

import datetime as dt
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from holdfast.inventory.catalog.model import IMPORT, CatalogVariant, Import, ImportTask, Location
from holdfast.inventory.catalog.sql import choose_location, store_locations, store_variants
from holdfast.inventory.installs.access import ask
from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.resources import Reader, Steps, Tx
from holdfast.inventory.shopify.admin import Query
from holdfast.inventory.shopify.platform_client import PlatformRefusal, PlatformUnreachable, display_text, storable_json
from holdfast.inventory.shops.operations import announce_sync_status
from holdfast.inventory.sync import levels
from holdfast.inventory.sync.model import ObservedLevel
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import Problem, refuses

QUERY = """
query {
  productVariants {
    edges { node {
      __typename id title sku
      product {
        id title updatedAt
        featuredMedia { preview { image { url(transform: { maxWidth: 240, maxHeight: 240 }) } } }
      }
      inventoryItem {
        id tracked
        inventoryLevels {
          edges { node {
            __typename id updatedAt
            item { id }
            location { id }
            quantities(names: ["available"]) { quantity }
          } }
        }
      }
    } }
  }
}
"""
LOCATIONS = """
query ReadLocations($after: String) {
  locations(first: 50, after: $after, includeInactive: true, includeLegacy: true) {
    nodes { id name isActive isFulfillmentService }
    pageInfo { hasNextPage endCursor }
  }
}
"""


MAX_ADDRESS_CHARACTERS = 2_000
"""The most characters in the address of a picture."""


class _NodeReference(Struct):
    id: str


class _Image(Struct):
    url: str


class _Preview(Struct):
    image: _Image | None = None


class _Media(Struct):
    preview: _Preview | None = None


class _ProductNode(Struct, rename="camel"):
    id: str
    updated_at: dt.datetime
    title: Any = None
    featured_media: _Media | None = None

    @property
    def picture(self) -> str | None:
        """The address of the product's picture, if it can be stored."""
        image = self.featured_media and self.featured_media.preview and self.featured_media.preview.image
        return image.url if image and len(image.url) <= MAX_ADDRESS_CHARACTERS else None


class _ItemNode(Struct):
    id: str
    tracked: bool | None = None


class _VariantLine(Struct, tag_field="__typename", tag="ProductVariant", rename="camel"):
    """A variant. The webhooks of products have the date of the product, so that one is compared."""

    id: str
    product: _ProductNode
    inventory_item: _ItemNode
    title: Any = None
    sku: Any = None


class _LineQuantity(Struct):
    quantity: int


class _LevelLine(Struct, tag_field="__typename", tag="InventoryLevel", rename="camel"):
    id: str
    updated_at: dt.datetime
    item: _NodeReference
    location: _NodeReference
    quantities: list[_LineQuantity]


class LocationNode(Struct, rename="camel"):
    """A location as the platform shows it."""

    id: str
    is_active: bool
    is_fulfillment_service: bool
    name: Any = None

    @property
    def location(self) -> Location:
        return Location(self.id, display_text(self.name), self.is_active, self.is_fulfillment_service)


class ImportLines(NamedTuple):
    """The variants and levels of some lines."""

    variants: list[CatalogVariant]
    levels: list[ObservedLevel]

    @classmethod
    def of(cls, lines: Sequence[bytes]) -> "ImportLines":
        """Decode lines. Raises `msgspec.DecodeError` for a line of another kind."""
        variants: dict[str, CatalogVariant] = {}
        levels: dict[str, ObservedLevel] = {}
        for line in lines:
            match _DECODER.decode(storable_json(line)):
                case _VariantLine() as node:
                    product, item = node.product, node.inventory_item
                    variants[node.id] = CatalogVariant(
                        node.id,
                        product.id,
                        display_text(product.title),
                        display_text(node.title),
                        display_text(node.sku) or None,
                        item.id,
                        item.tracked is not False,
                        product.updated_at,
                        product.picture,
                    )
                case _LevelLine() as node if node.quantities:
                    levels[node.id] = ObservedLevel(
                        node.item.id, node.location.id, node.id, node.quantities[0].quantity, node.updated_at
                    )
                case _:
                    pass
        return cls([*variants.values()], [*levels.values()])


_DECODER = msgspec.json.Decoder(_VariantLine | _LevelLine, strict=False)


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
    """Why a new import should not start; None: nothing. An import that has failed does not stand in the way."""
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
    """End an import, and delete rows that neither it nor a webhook since its start named. False: it ended before."""
    await announce_sync_status(tx, shop_id)
    ended_now = await tx.value(
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
    if not ended_now:
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


POLL_SECONDS = 2.0
"""Seconds from one poll of an operation to the next."""

BATCH_LINES = 1_000
"""The most lines that one transaction stores."""


class _BulkOperation(Struct, rename="camel"):
    id: str
    status: str
    error_code: str | None = None
    url: str | None = None
    object_count: str = "0"


class _BulkError(Struct):
    message: str


class _RunPayload(Struct, rename="camel"):
    bulk_operation: _BulkOperation | None
    user_errors: list[_BulkError]


class _RunAnswer(Struct, rename="camel"):
    bulk_operation_run_query: _RunPayload


class _OperationAnswer(Struct, rename="camel"):
    bulk_operation: _BulkOperation | None


class _LocationsPageInfo(Struct, rename="camel"):
    has_next_page: bool
    end_cursor: str | None


class _LocationsPage(Struct, rename="camel"):
    nodes: list[LocationNode]
    page_info: _LocationsPageInfo


class _LocationsAnswer(Struct):
    locations: _LocationsPage


RUN_IMPORT = Query(
    "run_import",
    """
    mutation RunImport($query: String!) {
      bulkOperationRunQuery(query: $query) { bulkOperation { id status } userErrors { message } }
    }
    """,
    _RunAnswer,
)
READ_IMPORT = Query(
    "read_import",
    "query ReadImport($id: ID!) { bulkOperation(id: $id) { id status errorCode url objectCount } }",
    _OperationAnswer,
    cost=1,
)
READ_LOCATIONS = Query("read_locations", LOCATIONS, _LocationsAnswer, cost=110)


class ImportFailed(Exception):
    """The platform did not complete the operation. The task is retried with a new one."""


async def begin(tx: Tx, shop_id: int) -> None:
    """Start to import a shop, soon after this transaction. An import that is under way is abandoned."""
    import_id = await store_import(tx, shop_id)
    await tx.enqueue(IMPORT, ImportTask(shop_id, import_id), tenant=shop_id)


class ImportProducts(Command):
    """Import the products of the shop now."""


@refuses(SHOP_NOT_CONNECTED)
async def import_products(tx: Tx, caller: Caller, command: ImportProducts) -> None:
    """Start to import the shop's products from the platform. An import that is under way goes on instead."""
    obstacle = await find_obstacle(tx, caller.tenant)
    if obstacle == "not_connected":
        raise SHOP_NOT_CONNECTED()
    if obstacle is None:
        await begin(tx, caller.tenant)


async def import_all(steps: Steps) -> int:
    """Import every shop that has the app again, to find changes whose webhooks did not come. Returns how many."""
    total, after = 0, 0
    while ids := await steps.transact(partial(_begin_some, after=after)):
        total, after = total + len(ids), ids[-1]
    return total


async def _begin_some(tx: Tx, *, after: int) -> Sequence[int]:
    ids = await list_connected(tx, after, 100)
    for shop_id in ids:
        await begin(tx, shop_id)
    return ids


async def advance_import(steps: Steps, of: ImportTask) -> None:
    """Do the next step of an import. May be called at any time, and twice."""
    running_import = await steps.read(partial(find, shop_id=of.shop_id))
    if running_import is None or running_import.id != of.import_id:
        return
    try:
        await _advance(steps, of, running_import)
    except Problem as problem:
        await _store_error(steps, of, problem.message)
        if problem.type is not SHOP_NOT_CONNECTED:
            raise
    except (PlatformUnreachable, PlatformRefusal, ImportFailed) as error:
        await _store_error(steps, of, str(error))
        raise


async def _advance(steps: Steps, of: ImportTask, running_import: Import) -> None:
    if running_import.bulk_gid is None:
        await _store_locations(steps, of)
        payload = (await ask(steps, of.shop_id, RUN_IMPORT, {"query": QUERY})).bulk_operation_run_query
        if payload.bulk_operation is None:
            raise ImportFailed("; ".join(error.message for error in payload.user_errors))
        gid = payload.bulk_operation.id
        await steps.transact(partial(store_operation, shop_id=of.shop_id, import_id=of.import_id, bulk_gid=gid))
        await steps.transact(partial(_poll_later, of=of))
        return
    bulk = (await ask(steps, of.shop_id, READ_IMPORT, {"id": running_import.bulk_gid})).bulk_operation
    if bulk and bulk.status in {"CREATED", "RUNNING", "CANCELING"}:
        await steps.transact(partial(_poll_later, of=of, objects=int(bulk.object_count)))
    elif bulk and bulk.status == "COMPLETED":
        await _store(steps, of, running_import, bulk.url)
        await steps.transact(partial(_finish_and_request_sync, of=of))
    else:
        await steps.transact(partial(drop_operation, shop_id=of.shop_id, import_id=of.import_id))
        raise ImportFailed(
            f"The platform's operation ended as {bulk.status if bulk else 'unknown'}: "
            f"{bulk.error_code if bulk else 'it is gone'}."
        )


async def _poll_later(tx: Tx, *, of: ImportTask, objects: int = 0) -> None:
    await store_progress(tx, of.shop_id, of.import_id, objects=objects)
    await tx.enqueue(IMPORT, of, delay=POLL_SECONDS)


async def _store_locations(steps: Steps, of: ImportTask) -> None:
    after: str | None = None
    while True:
        page = (await ask(steps, of.shop_id, READ_LOCATIONS, {"after": after})).locations
        locations = [location_node.location for location_node in page.nodes]
        await steps.transact(partial(store_locations, shop_id=of.shop_id, locations=locations, import_id=of.import_id))
        if not page.page_info.has_next_page:
            return
        after = page.page_info.end_cursor


async def _store(steps: Steps, of: ImportTask, running_import: Import, url: str | None) -> None:
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
            await steps.transact(partial(_store_lines, of=of, lines=lines, upto=number))
            lines = []
    if lines:
        await steps.transact(partial(_store_lines, of=of, lines=lines, upto=number))


async def _store_lines(tx: Tx, *, of: ImportTask, lines: Sequence[bytes], upto: int) -> None:
    read = ImportLines.of(lines)
    if read.variants:
        await store_variants(tx, of.shop_id, read.variants, import_id=of.import_id)
    await levels.observe(tx, of.shop_id, read.levels, import_id=of.import_id)
    await store_progress(tx, of.shop_id, of.import_id, stored_lines=upto)


async def _finish_and_request_sync(tx: Tx, *, of: ImportTask) -> None:
    if await finish(tx, of.shop_id, of.import_id):
        await choose_location(tx, of.shop_id)
        await levels.request_sync(tx, of.shop_id)


async def _store_error(steps: Steps, of: ImportTask, error: str) -> None:
    await steps.transact(partial(store_progress, shop_id=of.shop_id, import_id=of.import_id, error=error))
