"""A running platform with a shop, an app that receives webhooks, and a client of the Admin API."""

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx2
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from holdfast_demo.shopify import seed
from holdfast_demo.shopify.admin_api.cost import VERSION
from holdfast_demo.shopify.application import ShopifyDouble
from holdfast_demo.shopify.model import Variant, gid
from holdfast_demo.shopify.platform_state import App
from tests.demo.webhook_recorder import WebhookRecorder

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


class PlatformStage:
    """A platform, and what an app does with it. `live`: how many of each variant the app says can be sold."""

    def __init__(self, double: ShopifyDouble, recorder: WebhookRecorder, http: httpx2.AsyncClient) -> None:
        self.double = double
        self.recorder = recorder
        self.http = http
        self.visits: list[Request] = []
        self.live: dict[str, int] = {}
        self.token = ""
        self.variants: list[Variant] = []

    @property
    def location(self) -> str:
        """The gid of the first location."""
        return self.double.locations(DOMAIN)[0].gid

    def item(self, variant: int = 0) -> str:
        return gid("InventoryItem", self.variants[variant].item)

    def level(self, variant: int = 0) -> dict[str, str]:
        """Which level of a variant is meant: that at the first location."""
        return {"inventoryItemId": self.item(variant), "locationId": self.location}

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

    async def set(self, quantity: int, **options: Any) -> Any:
        """What setting the level of a variant is answered."""
        return (await self.data(SET, **self.setting(quantity, **options)["variables"]))["inventorySetQuantities"]

    async def adjust(self, delta: int, *, key: str, variant: int = 0, **changes: Any) -> Any:
        """What changing the level of a variant by a difference is answered."""
        change = {"delta": delta, "changeFromQuantity": None, **self.level(variant)}
        input = {"name": "available", "reason": "correction", "changes": [change], **changes}
        return (await self.data(ADJUST, input=input, key=key))["inventoryAdjustQuantities"]

    def setting(
        self, quantity: int, *, key: str, variant: int = 0, before: int | None = None, **changes: Any
    ) -> dict[str, Any]:
        """The request that sets the level of a variant."""
        level = {"quantity": quantity, "changeFromQuantity": before, **self.level(variant)}
        input = {"name": "available", "reason": "correction", "quantities": [level], **changes}
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
async def run_platform(path: Path | None = None) -> AsyncGenerator[PlatformStage]:
    """A platform that runs, for as long as the block lasts; its shop has no app yet. Nothing goes over the network."""

    async def visit(request: Request) -> Response:
        stage.visits.append(request)
        return JSONResponse({"variants": stage.live}, headers={"set-cookie": "a=b", "etag": '"7"'})

    recorder = WebhookRecorder()
    double = ShopifyDouble(ADDRESS, App(CLIENT, SECRET, f"{ADDRESS}/-app"), path=path)
    double.app.router.routes[:0] = [
        Route("/hook", recorder.receive, methods=["POST"]),
        Route("/-app/webhooks/shopify", recorder.receive, methods=["POST"]),
        Route("/-app/storefront/{path:path}", visit),
    ]
    double.webhooks.haste = 100_000
    double.state.transport = httpx2.ASGITransport(double.app)
    try:
        async with (
            double.app.router.lifespan_context(double.app),
            httpx2.AsyncClient(base_url=ADDRESS, transport=double.state.transport) as http,
        ):
            stage = PlatformStage(double, recorder, http)
            yield stage
    finally:
        double.close()


@contextlib.asynccontextmanager
async def run_platform_with_app(path: Path | None = None) -> AsyncGenerator[PlatformStage]:
    """A platform that runs, with a shop that sells honey and has the app."""
    async with run_platform(path) as stage:
        stage.double.open(DOMAIN)
        stage.variants = seed.fill(stage.double.state, DOMAIN)
        stage.double.install(DOMAIN)
        stage.token = stage.double.token(DOMAIN)
        yield stage
