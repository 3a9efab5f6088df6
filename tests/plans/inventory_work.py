"""Everything that the inventory service does, once, for a shop that has much of everything."""

import json
from base64 import b64encode
from functools import partial
from itertools import count
from typing import Any

import httpx2

from holdfast.inventory import service
from holdfast.inventory.catalog import importing
from holdfast.inventory.catalog.model import IMPORT, ImportTask
from holdfast.inventory.installs.model import REDACT, SUBSCRIBE, ShopTask
from holdfast.inventory.installs.sql import end_install
from holdfast.inventory.installs.uninstalling import mark_redacted
from holdfast.inventory.resources import Database
from holdfast.inventory.webhooks.inbox import Inbox
from holdfast.inventory.webhooks.model import ReceivedDelivery
from holdfast.kit.contract.caller import api_key, person
from holdfast.kit.http.application import Application
from holdfast.kit.running.operation import Operation
from holdfast.kit.running.steps import Steps
from tests.inventory.console.scene import BASE_URL
from tests.inventory.installs.merchants import DOMAIN
from tests.inventory.samples import ARGUMENTS
from tests.inventory.support import SINGLE, SIX_PACK
from tests.inventory.sync.scene import Scene
from tests.plans.inventory_rows import FIRST_SHOP
from tests.plans.recording import Recorder
from tests.plans.running import attempt, background, pages
from tests.support import eventually

BROWSER = b64encode(b"b" * 32).decode()

ALONE: dict[str, dict[str, Any]] = {
    "list_actors": {"entry_ids": [1, 2]},
    "look_at_pool": {"pool_id": 1},
    "get_pool_figures": {"pool_ids": [1, 2]},
    "list_unsynced_pools": {"query": "lids"},
    "suggest_pools": {},
    "import_products": {},
    "list_undone": {"entry_ids": [1, 2]},
    "list_units_per_sale": {"entries": [(1, 1, SINGLE, 1, "2030-01-01T00:00:00Z")]},
    "name_variants": {"gids": [SINGLE]},
    "ask_low_stock": {},
    "want_low_stock": {"enabled": True, "language": "de"},
    "show_access": {},
    "renew_key": {"scopes": ["read_pools"]},
    "name_keys": {"key_ids": [1, 2]},
    "look_at_mailbox": {"mailbox": BROWSER},
    "stop_mails_to_mailbox": {"mailbox": BROWSER},
    "resume_mails_to_mailbox": {"mailbox": BROWSER},
    "ask_sign_in_link": {"email": "merchant7@example.com", "browser": BROWSER, "return_to": "/", "language": "en"},
    "look_at_sign_in_link": {"id": 7, "browser": BROWSER},
    "sign_in_by_link": {"id": 7, "browser": BROWSER, "user_agent": "Firefox"},
    "sign_in_by_password": {"email": "merchant7@example.com", "password": "not a password", "user_agent": "Firefox"},
    "look_at_known_browser": {"email": "person7@example.com", "secret": "x" * 43},
    "list_sessions": {"account_id": 1007},
    "end_sessions": {"account_id": 1007, "id": None},
}
"""Arguments of the operations that agents do not have."""

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

IN_PATHS = {"pool_id": "1", "entry_id": "1", "link": "no-link"}
ORDER = {
    "id": 7,
    "created_at": "2026-11-20T10:00:00Z",
    "updated_at": "2026-11-20T10:00:00Z",
    "line_items": [{"id": 1, "variant_id": 1, "quantity": 1, "current_quantity": 1}],
}


class Work:
    """The service on connections that have statements explained, and a merchant who has its pages open."""

    def __init__(self, recorder: Recorder, app: Application, database: Database, scene: Scene, cookies: httpx2.Cookies):
        self.recorder = recorder
        self.app = app
        self.database = database
        self.shop = scene.shop
        own_gids = [f"gid://shopify/ProductVariant/{scene.variants[title].id}" for title in ("Single", "6-pack")]
        named = json.dumps({**ARGUMENTS, **ALONE}).replace(SIX_PACK, own_gids[1]).replace(SINGLE, own_gids[0])
        self.arguments: dict[str, dict[str, Any]] = json.loads(named)
        self.variant = own_gids[0]
        # The first time, there is no other shop yet.
        self.leaving = count(FIRST_SHOP - 1)
        self.browser = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app), base_url=BASE_URL, cookies=cookies, headers={"Accept": "text/html"}
        )

    async def everything(self) -> None:
        """Run each operation and each job, turn each loop, and open each page."""
        for operation in (*service.ALL_OPERATIONS, *service.ACROSS):
            await self.operation(operation)
        for name, arguments in SEARCHES:
            [searched] = (operation for operation in service.ALL_OPERATIONS if operation.name == name)
            await self.operation(searched, arguments)
        await self.pages()
        self.recorder.doing = "webhook"
        for topic, payload in (("orders/updated", ORDER), ("app/scopes_update", {"current": ["read_products"]})):
            received = ReceivedDelivery(DOMAIN, topic, f"new {topic}", None, None, json.dumps(payload).encode())
            await Inbox(self.database).take(received)
        await self.tasks()
        await background(self.recorder, service, self.database)
        for periodic in (task for part in service.PARTS for task in part.timed_tasks):
            self.recorder.doing = f"job {periodic.name}"
            await periodic.run(Steps(self.database))
        self.recorder.doing = ""

    async def operation(self, operation: Operation, arguments: dict[str, Any] | None = None) -> None:
        """Run an operation, with its arguments among the samples unless others are given."""
        self.recorder.doing = operation.name
        assert operation.name in self.arguments, f"{operation.name}: give it arguments in {__file__}"
        if operation in service.ACROSS:
            caller, database = person(1, self.shop.id), self.database.across_tenants()
        else:
            caller, database = api_key(1, self.shop.id), self.database
        refused = await attempt(database, operation, caller, arguments or self.arguments[operation.name])
        assert not refused or operation in service.ACROSS, (operation.name, refused)

    async def tasks(self) -> None:
        """Run each task that transactions enqueue: an import to its end, and another shop is deleted."""
        steps, leaving = Steps(self.database, self.shop.id), next(self.leaving)
        self.recorder.doing = "begin of tasks"
        await Steps(self.database).transact(partial(end_install, shop_id=leaving))
        await Steps(self.database).transact(partial(mark_redacted, shop_id=leaving))
        import_id = await steps.transact(partial(importing.store_import, shop_id=self.shop.id))
        arguments: dict[str, Any] = {
            REDACT.name: ShopTask(leaving),
            SUBSCRIBE.name: ShopTask(self.shop.id),
            IMPORT.name: ImportTask(self.shop.id, import_id),
        }
        for job in (task for part in service.PARTS for task in part.tasks):
            self.recorder.doing = f"task {job.task.name}"
            assert job.task.name in arguments, f"{job.task.name}: give it arguments in {__file__}"
            run: Any = job.run
            await run(Steps(self.database) if job.task is REDACT else steps, arguments[job.task.name])

        async def imported() -> bool:
            if under_way := await steps.read(partial(importing.find, shop_id=self.shop.id)):
                self.recorder.doing = f"task {IMPORT.name}"
                await importing.advance_import(steps, arguments[IMPORT.name])
            return under_way is None

        await eventually(imported)

    async def pages(self) -> None:
        for path in pages(self.app):
            query = {"shop": DOMAIN}
            if path == "/console/variant":
                query["gid"] = self.variant
            self.recorder.doing = f"GET {path}"
            answer = await self.browser.get(path.format(**IN_PATHS), params=query)
            assert answer.status_code in {200, 302, 303, 401, 404}, (path, answer.status_code, answer.text[:500])
            assert not answer.headers.get("location", "").startswith("/sign-in"), path
        self.recorder.doing = "GET /storefront/availability"
        await self.browser.get(f"/storefront/availability?{self.shop.signed()}")
        self.recorder.doing = "POST /mcp"
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        parameters = {"name": "get_pool", "arguments": {"pool_id": 1}}
        key = {"authorization": f"Bearer {self.shop.key}", "accept": "application/json, text/event-stream"}
        answer = await self.browser.post("/mcp", json={**message, "params": parameters}, headers=key)
        assert answer.status_code == 200, answer.text
