"""A shop, its key, and an agent that talks to the service; an operation that tells who it was asked by."""

import contextlib
import json
from base64 import urlsafe_b64decode
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import httpx2
import pytest
from msgspec import Struct

from holdfast.inventory.agents.credentials import Credentials
from holdfast.inventory.agents.model import JWT_BEARER
from holdfast.inventory.agents.routes import routes
from holdfast.inventory.agents.tokens import TokenSigner
from holdfast.inventory.problems import error_body
from holdfast.inventory.resources import Database, Reader
from holdfast.inventory.service import INVENTORY
from holdfast.inventory.settings import Settings
from holdfast.inventory.shops import operations as shops
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.http.event_streams import Streams
from holdfast.kit.operations.operation import Operation, read
from holdfast.kit.operations.rate_limits import Limits
from holdfast.kit.operations.runner import Runner
from holdfast.kit.process.part import Endpoints
from holdfast.kit.process.service import Service
from holdfast.kit.security.api_keys import KeyRing
from tests.helpers.any_bound import ANY_BOUND
from tests.helpers.inventory_service import run_sql

DOMAIN = "ada.myshopify.com"
BASE_URL = "http://inventory.test"


class AskWho(Command):
    """No options."""


class Who(Struct):
    key_id: int
    shop_id: int | None
    scopes: list[str]


async def tell(reader: Reader, caller: Caller, command: AskWho) -> Who:
    """The caller, its tenant and its scopes."""
    return Who(caller.id, caller.tenant_id, sorted(caller.scopes or ()))


OPERATIONS = [Operation("tell", "GET /who", read(tell), bare=True)]


class AgentScene:
    """The service in this process, with one shop."""

    def __init__(self, http: httpx2.AsyncClient, database: Database, shop_id: int, key: str) -> None:
        self.http = http
        self.database = database
        self.shop_id = shop_id
        self.key = key

    async def identify(self, body: Any = None, **options: Any) -> httpx2.Response:
        """Ask for an identity, with the shop's key unless a body says otherwise."""
        body = {"type": "service_auth", "api_key": self.key} if body is None else body
        return await self.http.post("/api/agent/identity", json=body, **options)

    async def assertion(self) -> str:
        response = await self.identify()
        assert response.status_code == 200, response.text
        return response.json()["identity_assertion"]

    async def exchange(self, **form: str) -> httpx2.Response:
        """Exchange an assertion, a fresh one unless the form has one; a parameter left empty is sent empty."""
        if "assertion" not in form:
            form["assertion"] = await self.assertion()
        return await self.http.post("/oauth/token", data={"grant_type": JWT_BEARER, **form})

    async def token(self, **form: str) -> str:
        response = await self.exchange(**form)
        assert response.status_code == 200, response.text
        return response.json()["access_token"]

    async def who(self, credential: str | None) -> httpx2.Response:
        """Ask who one is, with a bearer credential."""
        headers = {"Authorization": f"Bearer {credential}"} if credential is not None else {}
        return await self.http.get("/who", headers=headers)

    async def regenerate(self, *scopes: str) -> str:
        """Give the shop a new key; the old one stays in `key`."""
        return await self.database.transact(lambda tx: shops.regenerate_key(tx, self.shop_id, scopes or None))

    async def run_sql(self, statement: Any, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement behind the service's back."""
        return await run_sql(self.database, statement, **parameters)


@contextlib.asynccontextmanager
async def running_agent_endpoints(settings: Settings) -> AsyncGenerator[tuple[httpx2.AsyncClient, Database]]:
    """The endpoints that take credentials, and the operation behind them, as one process has them."""
    database = INVENTORY.database(settings)
    limits = Limits(settings.rate_limit_storage_url, settings.limits)
    ring = KeyRing(database, shops.find_callers)
    credentials = Credentials(ring, TokenSigner(database, settings.base_url), settings.base_url)
    app = Service(
        database=database,
        runner=Runner(OPERATIONS, database),
        operations=OPERATIONS,
        endpoints=Endpoints(routes(database, limits, credentials), caches=[ring.forgetting]),
        authenticate=credentials.caller,
        limits=limits,
        streams=Streams(ANY_BOUND),
        error_body=error_body,
    ).app(background=False)
    async with (
        app.lifespan(),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=settings.base_url) as http,
    ):
        yield http, database


def parts(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the claims of a token, unverified."""
    header, claims, _ = token.split(".")
    decoded: list[dict[str, Any]] = [json.loads(urlsafe_b64decode(part + "==")) for part in (header, claims)]
    return decoded[0], decoded[1]


@pytest.fixture
async def scene(settings: Settings) -> AsyncIterator[AgentScene]:
    """The endpoints that take credentials, and one shop."""
    async with running_agent_endpoints(settings) as (http, database):
        shop, key = await database.transact(lambda tx: shops.add(tx, DOMAIN))
        yield AgentScene(http, database, shop.id, key)
