"""A platform that runs, with a shop, an app that listens, and somebody who asks the Admin API."""

import contextlib
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from holdfast_demo.shopify import seed
from holdfast_demo.shopify.application import ShopifyDouble
from holdfast_demo.shopify.model import Variant, gid
from holdfast_demo.shopify.platform_state import App
from holdfast_demo.shopify.schema import VERSION
from tests.support import eventually

DOMAIN = "first.myshopify.com"
SECRET = "shpss_0123456789abcdef0123456789abcdef"
CLIENT = "client-tests"
ADDRESS = "http://127.0.0.1:8004"
SCOPES = "read_products,write_inventory,read_orders,read_locations"

_ANSWERED = """
    inventoryAdjustmentGroup {
      id reason changes(quantityNames: ["available"]) { delta quantityAfterChange item { id } }
    }
    userErrors { code field message }
"""
SET = f"""
mutation Set($input: InventorySetQuantitiesInput!, $key: String!) {{
  inventorySetQuantities(input: $input) @idempotent(key: $key) {{ {_ANSWERED} }}
}}
"""
ADJUST = f"""
mutation Adjust($input: InventoryAdjustQuantitiesInput!, $key: String!) {{
  inventoryAdjustQuantities(input: $input) @idempotent(key: $key) {{ {_ANSWERED} }}
}}
"""


class Heard(NamedTuple):
    """A webhook that came."""

    topic: str
    body: Any
    headers: dict[str, str]
    raw: bytes


class Listener:
    """An app that gets webhooks and visitors of the storefront.

    answers    the statuses of the next answers; afterwards all are 200
    """

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self.answers: list[int] = []
        self.visited: list[Request] = []

    async def take(self, request: Request) -> Response:
        """Take a webhook."""
        raw = await request.body()
        self.heard.append(Heard(request.headers["x-shopify-topic"], json.loads(raw), dict(request.headers), raw))
        return Response(status_code=self.answers.pop(0) if self.answers else 200)

    async def visit(self, request: Request) -> Response:
        """Answer a visitor of a storefront."""
        self.visited.append(request)
        return JSONResponse({"variants": {}}, headers={"set-cookie": "a=b", "etag": '"7"'})

    def topics(self) -> list[str]:
        return [message.topic for message in self.heard]

    def of(self, topic: str) -> list[Heard]:
        return [message for message in self.heard if message.topic == topic]

    async def hears(self, topic: str, times: int = 1) -> Heard:
        """The newest webhook of a topic, once there were so many."""

        async def is_heard() -> bool:
            return len(self.of(topic)) >= times

        await eventually(is_heard)
        return self.of(topic)[-1]


class Stage:
    """A platform, and what an app does with it."""

    def __init__(self, double: ShopifyDouble, listener: Listener, http: httpx2.AsyncClient) -> None:
        self.double = double
        self.listener = listener
        self.http = http
        self.token = ""
        self.variants: list[Variant] = []

    @property
    def place(self) -> str:
        """The gid of the first location."""
        return self.double.locations(DOMAIN)[0].gid

    def item(self, variant: int = 0) -> str:
        return gid("InventoryItem", self.variants[variant].item)

    async def post(self, body: Any, *, token: str | None = None, shop: str = DOMAIN) -> httpx2.Response:
        """A request to the Admin API, as it is."""
        headers = {"X-Shopify-Access-Token": self.token if token is None else token}
        return await self.http.post(f"/{shop}/admin/api/{VERSION}/graphql.json", json=body, headers=headers)

    async def ask(self, query: str, /, **variables: Any) -> Any:
        """The answer to an operation."""
        return (await self.post({"query": query, "variables": variables})).json()

    async def data(self, query: str, /, **variables: Any) -> Any:
        """The data in the answer to an operation that has no errors."""
        answer = await self.ask(query, **variables)
        assert "errors" not in answer, answer
        return answer["data"]

    async def refuses(self, query: str, /, **variables: Any) -> tuple[str, str]:
        """The code and the message of the error that an operation is refused with."""
        error = (await self.ask(query, **variables))["errors"][0]
        return error.get("extensions", {}).get("code", ""), error["message"]

    async def set(self, quantity: int, *, key: str, variant: int = 0, before: int | None = None, **changes: Any) -> Any:
        """What setting the level of a variant is answered."""
        request = self.setting(quantity, key=key, variant=variant, before=before, **changes)
        return (await self.data(SET, **request["variables"]))["inventorySetQuantities"]

    async def adjust(self, delta: int, *, key: str, variant: int = 0, **changes: Any) -> Any:
        """What changing the level of a variant by a difference is answered."""
        change = {
            "inventoryItemId": self.item(variant),
            "locationId": self.place,
            "delta": delta,
            "changeFromQuantity": None,
        }
        input = {"name": "available", "reason": "correction", "changes": [change], **changes}
        return (await self.data(ADJUST, input=input, key=key))["inventoryAdjustQuantities"]

    def setting(
        self, quantity: int, *, key: str, variant: int = 0, before: int | None = None, **changes: Any
    ) -> dict[str, Any]:
        """The request that sets the level of a variant."""
        quantity_input = {
            "inventoryItemId": self.item(variant),
            "locationId": self.place,
            "quantity": quantity,
            "changeFromQuantity": before,
        }
        input = {"name": "available", "reason": "correction", "quantities": [quantity_input], **changes}
        return {"query": SET, "variables": {"input": input, "key": key}}

    async def subscribe(self, *topics: str) -> None:
        """Be told of topics."""
        for topic in topics:
            made = await self.data(
                "mutation($topic: WebhookSubscriptionTopic!, $to: WebhookSubscriptionInput!) {"
                " webhookSubscriptionCreate(topic: $topic, webhookSubscription: $to) { userErrors { message } } }",
                topic=topic,
                to={"uri": f"{self.double.address}/hook"},
            )
            assert made["webhookSubscriptionCreate"]["userErrors"] == []


@contextlib.asynccontextmanager
async def playing(path: Path | None = None) -> AsyncGenerator[Stage]:
    """A platform that runs, for as long as the block lasts; its shop has no app yet. Nothing goes over the network."""
    heard = Listener()
    double = ShopifyDouble(ADDRESS, App(CLIENT, SECRET, f"{ADDRESS}/-app"), path=path)
    double.app.router.routes[:0] = [
        Route("/hook", heard.take, methods=["POST"]),
        Route("/-app/webhooks/shopify", heard.take, methods=["POST"]),
        Route("/-app/storefront/{path:path}", heard.visit),
    ]
    double.webhooks.haste = 100_000
    double.world.transport = httpx2.ASGITransport(double.app)
    try:
        async with (
            double.app.router.lifespan_context(double.app),
            httpx2.AsyncClient(base_url=ADDRESS, transport=double.world.transport) as http,
        ):
            yield Stage(double, heard, http)
    finally:
        double.close()


@contextlib.asynccontextmanager
async def installed(path: Path | None = None) -> AsyncGenerator[Stage]:
    """A platform that runs, with a shop that sells honey and has the app."""
    async with playing(path) as stage:
        stage.double.open(DOMAIN)
        stage.variants = seed.fill(stage.double.world, DOMAIN)
        stage.double.install(DOMAIN)
        stage.token = stage.double.token(DOMAIN)
        yield stage
