"""The double for benchmarks: it sells at a steady pace, and notes when it told of that, and when levels were set.

python -m benchmarks.platform PORT ADDRESS-OF-THE-APP
"""

import asyncio
import json
import random
import sys
import time
from typing import Any

import httpx2
import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from benchmarks import load
from holdfast.kit.http.sockets import listen_all
from holdfast.kit.process.serving import serve
from holdfast_demo.shared.serving import guarded_server
from holdfast_demo.shopify import CLIENT_ID, testing
from holdfast_demo.shopify.application import ShopifyDouble
from holdfast_demo.shopify.model import Bulk, Subscription
from holdfast_demo.shopify.orders import SaleLine
from holdfast_demo.shopify.platform_state import App, WebhookMessage

CLIENT_SECRET = "shpss_of_the_benchmarks"


class AnsweredWebhook(Struct):
    """A webhook that was answered. `order`: the id of the order that is new; 0 for any other topic."""

    shop: str
    order: int
    sent: float
    answered: float
    status: int


class Accepted(Struct):
    """A level that only the app sets, and was set."""

    shop: str
    item: int
    at: float
    available: int


class Record(Struct):
    """What happened since the last sale began."""

    webhooks: list[AnsweredWebhook] = []
    accepted: list[Accepted] = []


class Sale(Struct):
    """Sell one unit of a variant at a time, at random, at a steady pace.

    variants    those that are sold, by shop
    watched     inventory items whose levels are noted, because they are never sold
    """

    per_second: float
    seconds: float
    variants: dict[str, list[int]]
    watched: list[int]


class Sold(Struct):
    """The ids of the orders that were made, each with its variant; and how long that took."""

    orders: list[tuple[int, int]]
    seconds: float


class Telling(httpx2.AsyncBaseTransport):
    """Sends webhooks with little work, and notes when, and how long their answers took."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._idle: list[load.Connection] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body, sent = await request.aread(), time.time()
        head = b"".join(b"%s: %s\r\n" % header for header in request.headers.raw)
        self._idle = [connection for connection in self._idle if connection.is_open]
        connection = self._idle.pop() if self._idle else await load.connect(request.url.port or 80)
        status, _ = await connection.send(b"POST %s HTTP/1.1\r\n%s\r\n%s" % (request.url.raw_path, head, body))
        self._idle.append(connection)
        order = json.loads(body)["id"] if request.headers["x-shopify-topic"] == "orders/create" else 0
        self._record.webhooks.append(
            AnsweredWebhook(request.headers["x-shopify-shop-domain"], order, sent, time.time(), status)
        )
        return httpx2.Response(status)


class Stage:
    """The double with what benchmarks ask of it."""

    def __init__(self, double: ShopifyDouble) -> None:
        self._double = double
        self._record = Record()
        self._watched: frozenset[int] = frozenset()
        double.state.transport = Telling(self._record)
        double.state.on_message.append(self._notice)
        double.app.router.routes[:0] = [
            *testing.routes(double),
            Route("/_bench/sell", self.sell, methods=["POST"]),
            Route("/_bench/record", self.record),
            Route("/_bench/shops", self.shops),
        ]

    def _notice(self, message: WebhookMessage) -> None:
        if message.topic == "inventory_levels/update" and message.payload["inventory_item_id"] in self._watched:
            item, available = message.payload["inventory_item_id"], message.payload["available"]
            self._record.accepted.append(Accepted(message.shop, item, message.at, available))

    async def sell(self, request: Request) -> Response:
        """Sell as asked, and answer when the last order is made: each order with its variant."""
        sale = msgspec.json.decode(await request.body(), type=Sale)
        self._record.webhooks.clear()
        self._record.accepted.clear()
        self._watched = frozenset(sale.watched)
        chance, shops = random.Random(7), [*sale.variants]
        sold: list[tuple[int, int]] = []
        started = time.perf_counter()
        for number in range(int(sale.per_second * sale.seconds)):
            if (ahead := started + number / sale.per_second - time.perf_counter()) > 0:
                await asyncio.sleep(ahead)
            else:
                await asyncio.sleep(0)
            shop = shops[number % len(shops)]
            variant = chance.choice(sale.variants[shop])
            sold.append((self._double.sell(shop, SaleLine(variant, 1)).id, variant))
        return _json(Sold(sold, time.perf_counter() - started))

    async def record(self, _: Request) -> Response:
        return _json(self._record)

    async def shops(self, _: Request) -> Response:
        """How many subscriptions each shop has, and when its last import was ready here."""
        store = self._double.state.store
        shops: dict[str, Any] = {}
        for shop in self._double.state.shops():
            ready = [bulk.completed for bulk in store.select(Bulk, shop.domain)]
            shops[shop.domain] = {
                "subscriptions": store.count(Subscription, shop.domain),
                "ready": ready[-1] if ready else None,
            }
        return _json(shops)


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


def main() -> None:
    port, app = int(sys.argv[1]), sys.argv[2]
    (listener,) = listen_all("127.0.0.1", port)
    double = ShopifyDouble(f"http://127.0.0.1:{port}", App(CLIENT_ID, CLIENT_SECRET, app))
    Stage(double)
    print(double.address, flush=True)
    try:
        serve([guarded_server(double.app, listener)])
    finally:
        double.close()


if __name__ == "__main__":
    main()
