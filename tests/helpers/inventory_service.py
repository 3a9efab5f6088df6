"""The inventory service in this process, and the shops that call it with their keys."""

import asyncio
import contextlib
import functools
import itertools
import json
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.accounts import sessions
from holdfast.accounts.agents.limits import SetLimit
from holdfast.inventory.api import OPERATIONS
from holdfast.inventory.resources import Database, build
from holdfast.inventory.service import INVENTORY
from holdfast.inventory.settings import Settings
from holdfast.inventory.shopify import signatures
from holdfast.inventory.shops import operations as shops
from holdfast.inventory.shops.operations import ENDED_SHOPS, SHOP_LIMITS
from holdfast.inventory.stock import ledger_audit
from holdfast.kit.contract.caller import system
from holdfast.kit.http.application import Application
from holdfast.kit.postgres.database import Database as AnyDatabase
from holdfast.kit.security import api_keys
from tests.helpers.connections import ReusedConnection
from tests.helpers.databases import State, empty_database, restore_database
from tests.helpers.stored_rows import Rows, read_all_rows

DAILY_LIMIT = 10

SINGLE, SIX_PACK, TWELVE_PACK = (f"gid://shopify/ProductVariant/{number}" for number in (1001, 1006, 1012))
PACKS = [
    {"variant_gid": gid, "units_per_sale": units} for gid, units in ((SINGLE, 1), (SIX_PACK, 6), (TWELVE_PACK, 12))
]
TOOLS = {operation.name: operation for operation in OPERATIONS}

UNLIMITED: dict[str, Any] = {
    "base_url": "http://inventory.test",
    "messages_per_second": 1_000_000,
    "identities_per_minute": 1_000_000,
    "installs_per_minute": 1_000_000,
    "sign_ins_per_hour": 1_000_000,
    "sign_ins_per_address": 1_000_000,
}
"""Settings of the inventory service that put rate limits out of the way."""

_numbers = itertools.count(1)


class ToolRefusal(Exception):
    """A tool answered with an error; `body` is what it said."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__(f"{body['code']}: {body['message']}")
        self.body = body
        self.code: str = body["code"]


class Shop:
    """A shop's agent, who calls tools with the shop's key, and its storefront."""

    def __init__(self, http: httpx2.AsyncClient, settings: Settings, id: int, domain: str, key: str) -> None:
        self.http = http
        self.settings = settings
        self.id = id
        self.domain = domain
        self.key = key

    async def post_message(self, body: Any, **headers: str) -> httpx2.Response:
        """Send a JSON-RPC message to the agent endpoint, in the handshake era unless the headers say otherwise."""
        defaults = {"authorization": f"Bearer {self.key}", "mcp-protocol-version": "2025-11-25"}
        return await self.http.post("/mcp", json=body, headers={**defaults, **headers})

    async def send_call(self, tool: str, arguments: Any) -> httpx2.Response:
        """Call a tool with arguments that may be invalid. Returns the HTTP response, whatever it is."""
        params = {"name": tool, "arguments": arguments}
        return await self.post_message({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})

    async def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool. Returns the content of its answer. Raises `ToolRefusal` if it answers with an error."""
        response = await self.send_call(tool, arguments)
        assert response.status_code == 200, response.text
        answer = response.json()
        assert "result" in answer, answer
        result = answer["result"]
        if result.get("isError"):
            raise ToolRefusal(json.loads(result["content"][0]["text"]))
        return result["structuredContent"]

    async def refusal(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must refuse the call. Returns the refusal, which must be one that an agent can act on."""
        with pytest.raises(ToolRefusal) as refusal:
            await self.call(tool, **arguments)
        assert refusal.value.body.keys() >= {"code", "message", "hint", "retryable"}, refusal.value.body
        return refusal.value.body

    async def on_hand(self, pool_id: int) -> int:
        """What a pool has on hand."""
        return (await self.call("get_pool", pool_id=pool_id))["on_hand"]

    async def entries(self, **filters: Any) -> list[dict[str, Any]]:
        """The history, the newest entry first."""
        return (await self.call("get_stock_history", **filters))["entries"]

    def at_service(self, inventory: "Inventory") -> "Shop":
        """The same shop, asking another instance of the service."""
        return Shop(inventory.http, inventory.settings, self.id, self.domain, self.key)

    async def create_pool(self, quantity: int = 50, **fields: Any) -> dict[str, Any]:
        """Create a pool, without variants unless the fields name members. Returns the pool."""
        name = f"Pool {next(_numbers)}"
        change = await self.call("create_pool", **{"name": name, "quantity": quantity, "members": [], **fields})
        return change["pool"]

    async def create_golden_pool(self) -> dict[str, Any]:
        """Create the pool of the golden example: 50 jars, sold one by one, by six and by twelve."""
        return await self.create_pool(50, name="Honey jars", members=PACKS)

    async def read_storefront(self, **headers: str) -> httpx2.Response:
        """Send the request of the shop's storefront, signed by the platform."""
        return await self.http.get(f"/storefront/availability?{self.signed_query()}", headers=headers)

    def signed_query(self) -> str:
        return signatures.sign_proxy_query(self.domain, client_secret(self.settings), time.time())


async def run_sql(database: AnyDatabase[Any], statement: Any, **parameters: Any) -> list[tuple[Any, ...]]:
    async with database.pool.connection() as connection:
        cursor = await connection.execute(statement, parameters)
        return await cursor.fetchall() if cursor.description is not None else []


class Inventory:
    """The inventory service in this process, over its real HTTP interface."""

    def __init__(self, app: Application, http: httpx2.AsyncClient, database: Database) -> None:
        self.app = app
        self.http = http
        self.database = database
        self.settings = database.resources.settings

    async def create_shop(self, *scopes: str) -> Shop:
        """Create a shop. Its key has all scopes unless some are named."""
        new_shop, key = await self.database.transact(lambda tx: shops.add(tx, f"shop-{next(_numbers)}.myshopify.com"))
        shop = Shop(self.http, self.settings, new_shop.id, new_shop.domain, key)
        if scopes:
            await self.regenerate_key(shop, *scopes)
        return shop

    async def regenerate_key(self, shop: Shop, *scopes: str) -> None:
        """Give a shop a new key, which has just these scopes."""
        shop.key = await self.database.transact(lambda tx: shops.regenerate_key(tx, shop.id, scopes))

    async def sql(self, statement: Any, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement that the service does not know of, to prepare a test or to read the result."""
        return await run_sql(self.database, statement, **parameters)

    async def empty(self, template_url: str) -> None:
        """Delete all rows of the database, and drop what this process caches of them. Ids begin at 1 again."""
        await self._replace_rows(lambda: empty_database(self.database.url, template_url))

    async def restore(self, state: State) -> None:
        """Put back the rows of a state into the database, and drop what this process caches."""
        await self._replace_rows(lambda: restore_database(self.database.url, state))

    async def _replace_rows(self, replace: Callable[[], None]) -> None:
        """Replace the rows of the database, and wait until this process has dropped what it caches of them."""
        payloads = await self.sql("select id || ' ' || domain from shops")
        replace()
        self.database.notices.add((channel, "") for channel in (api_keys.CHANNEL, sessions.SESSIONS_CHANNEL))
        self.database.notices.add((ENDED_SHOPS, payload) for (payload,) in payloads)
        await self.database.notices.flush()
        # Notices arrive in the order in which they were sent: when this one is here, the others are.
        last_notice = asyncio.Event()
        with self.database.listen("test", lambda _: last_notice.set()):
            await self.sql("select pg_notify('holdfast', 'test now')")
            async with asyncio.timeout(5):
                await last_notice.wait()

    async def ledger_differences(self) -> list[str]:
        """What is wrong in the ledger of any shop."""
        audits = [
            await self.database.read(lambda tx, shop_id=shop_id: ledger_audit.audit(tx, shop_id))
            for shop_id in await self.database.read(ledger_audit.list_shop_ids)
        ]
        return [difference for differences in audits for difference in differences]

    async def all_rows(self) -> Rows:
        """Every row there is, to see whether anything changed."""
        return await read_all_rows(self.sql)


@contextlib.asynccontextmanager
async def running_inventory(settings: Settings, *, background: bool = False) -> AsyncGenerator[Inventory]:
    """The service under these settings."""
    database = INVENTORY.database(settings)
    database.pool.connection_class = ReusedConnection
    app = INVENTORY.build(database).app(background=background)
    async with (
        app.lifespan(),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=settings.base_url) as http,
    ):
        yield Inventory(app, http, database)


def client_secret(settings: Settings) -> bytes:
    """The secret with which the storefront platform signs requests, under these settings."""
    return build(settings).client_secrets[0]


def unlimited(database_url: str, data_dir: Path, **fields: Any) -> Settings:
    """The defaults, with rate limits out of the way."""
    if fields:
        return Settings(data_dir=data_dir, database_url=database_url, **{**UNLIMITED, **fields})
    return _unlimited_settings().model_copy(update={"data_dir": data_dir, "database_url": database_url})


@functools.cache
def _unlimited_settings() -> Settings:
    return Settings(**UNLIMITED)


async def set_daily_limit(inventory: Inventory, shop: Shop, daily_limit: int | None = DAILY_LIMIT) -> None:
    """Set the limit of the key of a shop."""
    [(key_id,)] = await run_sql(
        inventory.database, "select id from api_keys where shop_id = %(id)s and active", id=shop.id
    )
    command = SetLimit(key_id=key_id, daily_limit=daily_limit)
    await inventory.database.transact(lambda tx: SHOP_LIMITS.store_limit(tx, system(shop.id), command))
