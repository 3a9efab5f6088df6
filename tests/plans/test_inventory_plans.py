"""The statements of the inventory service read what they touch, in a shop with much of everything."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from holdfast.inventory import api
from holdfast.inventory.service import INVENTORY
from tests.databases import scratch_database
from tests.inventory.console.stocking import Stocking
from tests.inventory.support import unlimited
from tests.inventory.sync.scene import pooled
from tests.plans.filling import filling
from tests.plans.inventory_rows import fill
from tests.plans.inventory_work import Work
from tests.plans.judging import findings_of
from tests.plans.recording import Recorder
from tests.plans.running import analyze, filled, not_filled, wrong

pytestmark = pytest.mark.asyncio(loop_scope="module")

VERSIONS = "an index on the versions of pools would be written with every change of stock"

EXCEPTIONS = {
    "accounts/sessions.py forget_sessions": "once a day; an index for it would be written with every request",
    "inventory/agents/access.py show": "looks at the newest 10,000 entries at most, to say what a key was used for",
    "inventory/availability/sql.py changes_since": VERSIONS,
    "inventory/availability/sql.py read_all": "answers all of a shop, once a process",
    "inventory/catalog/importing.py finish": "the end of an import, which has read all of the shop",
    "inventory/installs/sql.py delete_batch": "once a shop; not every table has an index that begins with it",
    "inventory/orders/sql.py caught_up_until": "until orders of a shop are counted, every hour; reads its links",
    "inventory/pools/sql.py save_pools": "an import; it reads the pools of its shop once",
    "inventory/stock/sql.py entries_of_change": "looks among the 4,000 entries around one",
    "inventory/stock/pool_page.py get_pool_history": "adds up what 30 days took from a pool",
    "inventory/sync/planning.py CONCERNED": VERSIONS,
    "inventory/sync/pool_figures.py list_unsynced_pools": "compares the levels of a shop",
    "inventory/sync/reports.py cart_check": "counts the variants of a shop",
    "inventory/sync/reports.py drift": "compares the levels of a shop",
    "inventory/sync/reports.py status": "counts the levels of a shop",
    "inventory/sync/sql.py lease_shops": "the patrol, every few seconds: compares versions of all shops",
    "kit/postgres/tasks.py ENQUEUE": "the job library's statements are its own, also within its functions",
}
"""Functions whose statements may read more than they touch, and why."""

UNTIL_ANALYZED = {
    "accounts/sessions.py list_open": "a page of somebody's account",
    "inventory/pools/membership.py _listing": "sorts the variants of the shop, to look at the first of them",
    "inventory/stock/sql.py history": "an export of thousands of entries",
    "inventory/sync/planning.py _compute": "one plan for one variant and for all of them",
    "inventory/sync/sql.py next_due": "one row for each shop",
    "inventory/sync/sql.py end_lease": "one row for each level of the shop",
    "inventory/webhooks/sql.py list_waiting_order_webhooks": "takes an index on shops, where few deliveries wait",
}
"""Those that may do so until statistics have caught up with a load, which takes a minute or two."""

SMALL = {
    "signing_keys": "a few keys",
    "oauth_access_tokens": "the service is no authorization server",
    "oauth_clients": "the same",
    "oauth_codes": "the same",
    "oauth_grants": "the same",
    "oauth_refresh_tokens": "the same",
}
"""Tables of this service without many rows, and why."""


@pytest.fixture(scope="module")
def url(inventory_template: str) -> Iterator[str]:
    with scratch_database(inventory_template, "plans") as url:
        yield url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def work(url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Work]:
    """The service in a database that was filled after everything had run once, while there was little in it."""
    recorder = Recorder()
    async with pooled(unlimited(url, tmp_path_factory.mktemp("data"))) as scene:
        merchant = Stocking(scene)
        async with merchant.http:
            await merchant.open()
        await scene.shop.pool(9, name="Lids")
        await scene.shop.pool(0, name="Old")
        await scene.shop.call("archive_pool", pool_id=3)
        await scene.shop.call("hold_quantity", pool_id=2, quantity=5, reference="cart 7")
        database = recorder.attend(INVENTORY.database(scene.inventory.settings))
        app = INVENTORY.build(database).app(background=False)
        work = Work(recorder, app, database, scene, merchant.http.cookies)
        async with filled(app, work, url, fill):
            yield work


async def test_every_table_has_thousands_of_rows(work: Work, url: str) -> None:
    assert not_filled(url, SMALL) == ""


async def test_every_statement_reads_what_it_touches_right_after_a_load(work: Work) -> None:
    assert await wrong(work, EXCEPTIONS | UNTIL_ANALYZED) == ""


async def test_every_statement_reads_what_it_touches(work: Work, url: str) -> None:
    await asyncio.to_thread(analyze, url)  # loops go on meanwhile

    assert await wrong(work, EXCEPTIONS) == ""


async def test_an_index_that_is_missing_is_found(work: Work, url: str) -> None:
    [adjust] = (operation for operation in api.OPERATIONS if operation.name == "adjust_pool_quantity")
    with filling(url) as connection:
        connection.execute("drop index members_of_pool; alter table members drop constraint members_pkey")
    work.recorder.forget()

    await work.operation(adjust)

    reported = findings_of(work.recorder.plans, EXCEPTIONS)
    assert reported.startswith("inventory/stock/sql.py pools_around (adjust_pool_quantity; planned for any values")
    assert "of members" in reported
