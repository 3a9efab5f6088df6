"""Webhooks: signed messages to subscribers, sent again with growing pauses until they are accepted."""

import base64
import hmac
import json
import uuid
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import httpx2

from holdfast.kit.security.http_client import HttpClient, trusted_certificates
from holdfast_demo.shared import webhooks
from holdfast_demo.shopify.admin_api.cost import VERSION
from holdfast_demo.shopify.model import Subscription, format_time
from holdfast_demo.shopify.platform_state import PlatformState, WebhookMessage, matching

CONNECT_TIMEOUT_SECONDS, ANSWER_TIMEOUT_SECONDS = 1, 5
RETRY_BACKOFF = (10, 30, 90, 300, 900, 1800, 3600, 7200)
"""Seconds from each failed attempt to the next; after the last, four hours later, the subscription ends."""

MAX_FINISHED_DELIVERIES = 200
"""How many finished deliveries are stored per shop, for its page."""

COMPLIANCE = ("customers/data_request", "customers/redact", "shop/redact")
"""Topics that every app gets without a subscription."""

_COLUMNS = """
    shop text not null,
    topic text not null,
    subscription integer,
    name text,
    url text not null,
    webhook text not null,
    event text not null,
    at real not null,
    body blob not null,
    answer text not null default ''
"""


class Delivery(NamedTuple):
    """A message on its way to a subscriber.

    answer    the status of the last answer, or why there was none
    """

    id: int
    shop: str
    topic: str
    subscription: int | None
    name: str | None
    url: str
    webhook: str
    event: str
    at: float
    body: bytes
    due: float
    attempts: int
    waits: int
    answer: str


def single_delivery(_: WebhookMessage) -> Sequence[float]:
    """The delays of a message that is sent once, without delay."""
    return (0.0,)


class RandomDelivery:
    """Random delays of messages, the same for the same seed.

    lost      the percentage of messages that are not sent at all
    doubled   the percentage of messages that are sent twice
    late      the maximum delay in seconds
    """

    def __init__(self, seed: int = 0, *, lost: float = 0, doubled: float = 0, late: float = 0) -> None:
        self._random = Random(seed)  # noqa: S311 - nothing is kept secret by it
        self._lost = lost
        self._doubled = doubled
        self._late = late

    def __call__(self, _: WebhookMessage) -> Sequence[float]:
        if self._random.random() * 100 < self._lost:
            return ()
        copies = 2 if self._random.random() * 100 < self._doubled else 1
        return [self._random.random() * self._late for _ in range(copies)]


class ShopifyWebhooks(webhooks.WebhookSender):
    """Sends messages. For tests:

    delays_of    returns the delays in seconds of a message; several numbers send it several times, none loses it
    haste        the divisor of the pauses between attempts
    """

    def __init__(self, platform: PlatformState) -> None:
        super().__init__(platform.store, platform.clock, _COLUMNS)
        self._platform = platform
        self.delays_of: Callable[[WebhookMessage], Sequence[float]] = single_delivery
        self.haste = 1.0
        platform.on_message.append(self._plan)

    def newest(self, shop: str, max_count: int = 50) -> list[Delivery]:
        """The deliveries of a shop, newest first."""
        return self._deliveries("shop = ? order by id desc limit ?", shop, max_count)

    def send_again(self, shop: str, webhook: str) -> None:
        """Send a message once more, as if its answer had been lost."""
        values = (self._platform.now(), shop, webhook)
        self._db.execute("update deliveries set waits = 1, due = ? where shop = ? and webhook = ?", values)
        self.wake()

    def comply(self, shop: str, topic: str, payload: dict[str, Any]) -> None:
        """Send one of the messages that every app gets, whether it is installed or not."""
        with self._platform.happening():
            self._platform.send_message(shop, topic, payload)

    def _plan(self, message: WebhookMessage) -> None:
        subscriptions: list[Subscription | None] = [None] if message.topic in COMPLIANCE else []
        topic = message.topic.upper().replace("/", "_")
        subscriptions += self._platform.store.select(
            Subscription, message.shop, matching(("json_extract(body, '$.topic') = ?", topic))
        )
        if not subscriptions:
            return
        full_body = json.dumps(message.payload).encode()
        for subscription in subscriptions:
            body = full_body
            if subscription and subscription.include_fields:
                fields = {name: value for name, value in message.payload.items() if name in subscription.include_fields}
                body = json.dumps(fields).encode()
            url = subscription.uri if subscription else f"{self._platform.app.address}/webhooks/shopify"
            webhook = str(uuid.uuid4())
            for seconds in self.delays_of(message):
                self._db.execute(
                    "insert into deliveries (shop, topic, subscription, name, url, webhook, event, at, body, due)"
                    " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        *(
                            message.shop,
                            message.topic,
                            subscription and subscription.id,
                            subscription and subscription.name,
                            url,
                            webhook,
                        ),
                        *(message.event, message.at, body, message.at + seconds),
                    ),
                )
        self.wake()

    def _deliveries(self, where: str, *values: object) -> list[Delivery]:
        rows = self._db.execute(f"select {', '.join(Delivery._fields)} from deliveries where {where}", values)
        return [Delivery(*row) for row in rows]

    def _client(self) -> httpx2.AsyncClient:
        timeout = httpx2.Timeout(ANSWER_TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS)
        return HttpClient(
            timeout=timeout, verify=trusted_certificates(), trust_env=False, transport=self._platform.transport
        )

    async def _attempt(self, client: httpx2.AsyncClient, delivery: int) -> float | None:
        [row] = self._deliveries("id = ?", delivery)
        answer = await self._answer(client, row)
        self._db.execute("update deliveries set answer = ? where id = ?", (answer, delivery))
        if answer[:1] != "2":
            if row.attempts < len(RETRY_BACKOFF):
                return RETRY_BACKOFF[row.attempts] / self.haste
            self._give_up(row)
        self._db.execute(
            "delete from deliveries where waits = 0 and shop = ? and id <= (select id from deliveries"
            " where waits = 0 and shop = ? order by id desc limit 1 offset ?)",
            (row.shop, row.shop, MAX_FINISHED_DELIVERIES),
        )
        return None

    def _give_up(self, delivery: Delivery) -> None:
        """End a subscription whose messages are not accepted."""
        subscription = self._platform.store.find(Subscription, delivery.shop, delivery.subscription)
        if subscription:
            self._platform.store.remove(delivery.shop, subscription)

    async def _answer(self, client: httpx2.AsyncClient, delivery: Delivery) -> str:
        app = self._platform.app
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "Shopify-Captain-Hook",
            "X-Shopify-API-Version": VERSION,
            "X-Shopify-Event-Id": delivery.event,
            "X-Shopify-Hmac-Sha256": signature(delivery.body, app.webhook_secret or app.client_secret),
            "X-Shopify-Shop-Domain": delivery.shop,
            "X-Shopify-Topic": delivery.topic,
            "X-Shopify-Triggered-At": format_time(delivery.at),
            "X-Shopify-Webhook-Id": delivery.webhook,
        }
        if delivery.name:
            headers["X-Shopify-Name"] = delivery.name
        try:
            answer = await client.post(delivery.url, content=delivery.body, headers=headers)
        except httpx2.HTTPError as error:
            return type(error).__name__
        return str(answer.status_code)


def signature(body: bytes, secret: str) -> str:
    """The header that proves the sender of a webhook."""
    return base64.b64encode(hmac.digest(secret.encode(), body, "sha256")).decode()
