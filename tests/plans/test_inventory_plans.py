"""Statements of the inventory service read few rows, even in a shop with much of everything."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from functools import partial
from itertools import count
from typing import Any, LiteralString

import httpx2
import pytest
import pytest_asyncio

from holdfast.inventory import api, service
from holdfast.inventory.agents.approval_facts import approval_gate
from holdfast.inventory.catalog import import_sql, importing
from holdfast.inventory.catalog.model import IMPORT, ImportTask
from holdfast.inventory.installs.model import REDACT, SUBSCRIBE, ShopTask
from holdfast.inventory.installs.sql import end_install
from holdfast.inventory.installs.uninstalling import mark_redacted
from holdfast.inventory.partner_webhooks.inbox import Inbox
from holdfast.inventory.partner_webhooks.model import ReceivedDelivery
from holdfast.inventory.replays import operations as replays
from holdfast.inventory.replays.model import REPLAY, BeginReplay, ReplayTask
from holdfast.inventory.resources import Reader
from holdfast.kit.contract.caller import api_key, person
from holdfast.kit.operations.operation import Operation
from holdfast.kit.operations.steps import Steps
from holdfast_demo.shopify.shops import NewVariant
from tests.helpers.databases import scratch_database
from tests.helpers.events_service import eventually
from tests.helpers.inventory_service import SINGLE, SIX_PACK, run_sql, unlimited
from tests.helpers.platform_shop import DOMAIN
from tests.inventory.console.merchant_at_platform import MerchantAtPlatform
from tests.inventory.samples import ARGUMENTS
from tests.inventory.sync.sync_scene import SyncScene, open_pooled_shop
from tests.plans import running
from tests.plans.filling import filling_database
from tests.plans.inventory_arguments import OTHER_ARGUMENTS
from tests.plans.inventory_rows import FIRST_SHOP, fill
from tests.plans.judging import findings_of
from tests.plans.running import analyze, attempt, not_filled

pytestmark = pytest.mark.asyncio(loop_scope="module")

VERSIONS = "an index on the versions of pools would be written with every change of stock"

EXCEPTIONS = {
    "accounts/sessions.py forget_sessions": "once a day; an index for it would be written with every request",
    "inventory/agents/access.py show": "looks at the newest 10,000 entries at most, to say what a key was used for",
    "inventory/availability/sql.py changes_since": VERSIONS,
    "inventory/availability/sql.py read_all": "answers all of a shop, once a process",
    "inventory/catalog/import_sql.py finish": "the end of an import, which has read all of the shop",
    "inventory/installs/sql.py delete_batch": "once a shop; not every table has an index that begins with it",
    "inventory/orders/sql.py caught_up_until": "until orders of a shop are counted, every hour; reads its links",
    "inventory/pools/operations.py save": "an import; it reads the pools of its shop once",
    "inventory/stock/sql.py list_entries_of_change": "looks among the 4,000 entries around one",
    "inventory/stock/pool_history.py get_pool_history": "adds up what 30 days took from a pool",
    "inventory/sync/planning.py CHANGED_ITEMS": VERSIONS,
    "inventory/sync/reports.py list_unsynced_pools": "compares the levels of a shop",
    "inventory/sync/reports.py cart_check": "counts the variants of a shop",
    "inventory/sync/reports.py list_drift": "compares the levels of a shop",
    "inventory/sync/reports.py read_status": "counts the levels of a shop",
    "inventory/sync/sql.py lease_shops": "the poll, every few seconds: compares versions of all shops",
    "kit/postgres/transactions.py ENQUEUE_TASK": "the job library's statements are its own, also within its functions",
}
"""Functions whose statements may read more than they touch, and why."""

UNTIL_ANALYZED = {
    "kit/webhooks/delivery_leases.py LEASE": "one row for each endpoint",
    "accounts/sessions.py list_open": "a page of somebody's account",
    "inventory/pools/membership.py _listing": "sorts the variants of the shop, to look at the first of them",
    "inventory/stock/sql.py history": "an export of thousands of entries",
    "inventory/sync/planning.py _compute_targets": "one plan for one variant and for all of them",
    "inventory/sync/sql.py seconds_until_due": "one row for each shop",
    "inventory/sync/sql.py end_lease": "one row for each level of the shop",
    "inventory/partner_webhooks/sql.py list_waiting_order_webhooks": "takes an index on shops: few deliveries wait",
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


DELIVERED: LiteralString = """
    with message as (
        insert into webhook_messages (tenant_id, endpoint_id, type, subject, data, is_fanned_out)
        select tenant_id, id, 'ping', 'endpoint 1', '{}', true from webhook_endpoints where id = 1 returning id),
    subject as (
        insert into webhook_subjects (endpoint_id, subject, last_number) values (1, 'endpoint 1', 1) returning id)
    insert into webhook_deliveries (subject_id, number, endpoint_id, message_id, status, ended_at)
    select subject.id, 1, 1, message.id, 'delivered', now() from subject, message
    returning 1
"""

SEARCHES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("list_pools", {"query": "lids"}),
    ("list_pools", {"query": "nobody has this"}),
    ("list_pools", {"status": "paused"}),
    ("find_variant", {"text": "nobody has this"}),
    ("find_variant", {"sku": "NOBODY-HAS-THIS"}),
    ("search_variants", {"query": "nobody has this"}),
    ("search_variants", {"limit": 20}),
    ("export_csv", {"kind": "history", "limit": 20}),
    ("import_csv", {"kind": "members", "text": "pool,sku,units_per_sale,pool_id\nJars,HONEY-1,1,1\n"}),
)
"""What operations are asked for besides their arguments among the samples."""

LIMITED = """
    insert into agent_limits (tenant_id, key_id, daily_limit, allowed)
    select shop_id, id, 1000000, 1000000 from api_keys where active
"""
"""Gives the key of the shop a daily limit."""

OWNER = """
    insert into merchants (shop_id, email, proved_at) values (%(shop_id)s, 'owner@example.com', now())
"""
"""A person who gets mails."""

IN_PATHS = {"endpoint_id": 1, "message_id": "msg_1", "id": "1", "pool_id": "1", "entry_id": "1", "link": "no-link"}
ORDER = {
    "id": 7,
    "created_at": "2026-11-20T10:00:00Z",
    "updated_at": "2026-11-20T10:00:00Z",
    "line_items": [{"id": 1, "variant_id": 1, "quantity": 1, "current_quantity": 1}],
}


async def _replay_ids(reader: Reader) -> list[tuple[int]]:
    return await reader.tuples("select replay_id from replays where result is null and error is null")


class InventoryWork(running.PlanWork):
    """The service, and a merchant who has its pages open."""

    def __init__(self, scene: SyncScene, cookies: httpx2.Cookies) -> None:
        super().__init__(service.INVENTORY, service.PARTS, scene.inventory.settings, cookies)
        self.shop = scene.shop
        own_gids = [f"gid://shopify/ProductVariant/{scene.variants[title].id}" for title in ("Single", "6-pack")]
        named = json.dumps({**ARGUMENTS, **OTHER_ARGUMENTS}).replace(SIX_PACK, own_gids[1]).replace(SINGLE, own_gids[0])
        self.arguments: dict[str, dict[str, Any]] = json.loads(named)
        self.variant = own_gids[0]
        # The first time, there is no other shop yet.
        self.leaving = count(FIRST_SHOP - 1)
        self.changes = count(1)

    async def run_all(self) -> None:
        for operation in (*service.ALL_OPERATIONS, *service.TENANTLESS_OPERATIONS):
            await self.operation(operation)
        for name, arguments in SEARCHES:
            [searched] = (operation for operation in service.ALL_OPERATIONS if operation.name == name)
            await self.operation(searched, arguments)
        [adjust] = (operation for operation in api.OPERATIONS if operation.name == "adjust_pool_quantity")
        gate = approval_gate(api.OPERATIONS, self.database.resources.settings.base_url)
        change = {"pool_id": 1, "delta": next(self.changes)}
        await self.ask_first(gate, adjust, api_key(1, self.shop.id), change)
        await self.pages()
        await self.ask_from_outside()
        self.recorder.doing = "webhook"
        for topic, payload in (("orders/updated", ORDER), ("app/scopes_update", {"current": ["read_products"]})):
            received = ReceivedDelivery(DOMAIN, topic, f"new {topic}", None, None, json.dumps(payload).encode())
            await Inbox(self.database).store(received)
        await self.tasks()
        await self.background()
        await self.timed()

    async def operation(self, operation: Operation, arguments: dict[str, Any] | None = None) -> None:
        """Run an operation, with its arguments among the samples unless others are given."""
        self.recorder.doing = operation.name
        if operation in service.TENANTLESS_OPERATIONS:
            caller, database = person(1, self.shop.id), self.database.across_tenants()
        else:
            caller, database = api_key(1, self.shop.id, limit_id=1), self.database
        refusal = await attempt(database, operation, caller, arguments or self.arguments[operation.name])
        assert not refusal or operation in service.TENANTLESS_OPERATIONS, (operation.name, refusal)

    async def tasks(self) -> None:
        """Run each task that transactions enqueue: an import to its end, and another shop is deleted."""
        steps, leaving = Steps(self.database, self.shop.id), next(self.leaving)
        self.recorder.doing = "begin of tasks"
        await Steps(self.database).transact(partial(end_install, shop_id=leaving))
        await Steps(self.database).transact(partial(mark_redacted, shop_id=leaving))
        import_id = await steps.transact(partial(import_sql.store_import, shop_id=self.shop.id))
        await steps.transact(partial(replays.begin, caller=person(1, self.shop.id), command=BeginReplay()))
        [(replay_id,)] = await self.database.read(_replay_ids, self.shop.id)
        arguments: dict[str, Any] = {
            REPLAY.name: ReplayTask(self.shop.id, replay_id),
            REDACT.name: ShopTask(leaving),
            SUBSCRIBE.name: ShopTask(self.shop.id),
            IMPORT.name: ImportTask(self.shop.id, import_id),
        }
        for job in (task for part in self.parts for task in part.tasks):
            self.recorder.doing = f"task {job.task.name}"
            assert job.task.name in arguments, f"{job.task.name}: give it arguments in {__file__}"
            run: Any = job.run
            await run(Steps(self.database) if job.task is REDACT else steps, arguments[job.task.name])

        async def imported() -> bool:
            if under_way := await steps.read(partial(import_sql.find, shop_id=self.shop.id)):
                self.recorder.doing = f"task {IMPORT.name}"
                await importing.advance_import(steps, arguments[IMPORT.name])
            return under_way is None

        await eventually(imported)

    async def page(self, path: str) -> None:
        query = {"shop": DOMAIN, **({"gid": self.variant} if path == "/console/variant" else {})}
        await self.get(path.format(**IN_PATHS), {200, 302, 303, 401, 404}, params=query)

    async def ask_from_outside(self) -> None:
        """Ask as the storefront does, and as an agent."""
        await self.get(f"/storefront/availability?{self.shop.signed_query()}")
        self.recorder.doing = "POST /mcp"
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        parameters = {"name": "get_pool", "arguments": {"pool_id": 1}}
        key = {"authorization": f"Bearer {self.shop.key}", "accept": "application/json, text/event-stream"}
        answer = await self.browser.post("/mcp", json={**message, "params": parameters}, headers=key)
        assert answer.status_code == 200, answer.text


@pytest.fixture(scope="module")
def url(inventory_template: str) -> Iterator[str]:
    with scratch_database(inventory_template, "plans") as url:
        yield url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def work(url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[InventoryWork]:
    """The service in a database that was filled after everything had run once, while there was little in it."""
    async with open_pooled_shop(unlimited(url, tmp_path_factory.mktemp("data"))) as scene:
        merchant = MerchantAtPlatform(scene)
        async with merchant.http:
            await merchant.open()
        # It suggests a pool, and comes first by its title.
        scene.platform.add_product(DOMAIN, "A soap", [NewVariant("Single", stock=9), NewVariant("6-pack", stock=9)])
        await scene.transact(partial(import_sql.store_import, shop_id=scene.shop.id))
        await scene.finish_import()
        await scene.shop.create_pool(9, name="Lids")
        await scene.shop.create_pool(0, name="Old")
        await scene.shop.call("archive_pool", pool_id=3)
        await scene.shop.call("hold_quantity", pool_id=2, quantity=5, reference="cart 7")
        for _ in range(2):
            await scene.shop.call("set_webhook", url="https://shop.example/hooks")
        await run_sql(scene.inventory.database, DELIVERED)
        await run_sql(scene.inventory.database, LIMITED)
        await run_sql(scene.inventory.database, OWNER, shop_id=scene.shop.id)
        async with InventoryWork(scene, merchant.http.cookies).filled(fill) as work:
            yield work


async def test_every_table_of_the_plans_has_thousands_of_rows(work: InventoryWork, url: str) -> None:
    assert not_filled(url, SMALL) == ""


async def test_every_statement_reads_few_rows_right_after_a_load(work: InventoryWork) -> None:
    assert await work.wrong(EXCEPTIONS | UNTIL_ANALYZED) == ""


async def test_every_statement_reads_few_rows(work: InventoryWork, url: str) -> None:
    await asyncio.to_thread(analyze, url)  # loops go on meanwhile

    assert await work.wrong(EXCEPTIONS) == ""


async def test_a_missing_index_is_found_by_the_plans(work: InventoryWork, url: str) -> None:
    [adjust] = (operation for operation in api.OPERATIONS if operation.name == "adjust_pool_quantity")
    with filling_database(url) as connection:
        connection.execute("drop index members_of_pool; alter table members drop constraint members_pkey")
    work.recorder.begin()

    await work.operation(adjust)

    reported = findings_of(work.recorder.plans, EXCEPTIONS)
    assert reported.startswith("inventory/stock/sql.py pools_around (adjust_pool_quantity)")
    assert "of members" in reported
