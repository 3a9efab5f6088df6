"""Webhooks as the platform sends them, to a shop that has the app."""

import itertools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx2
import msgspec

from holdfast.inventory.installs import sql as installs
from holdfast.inventory.partner_webhooks import inbox
from holdfast.inventory.partner_webhooks.inbox import WebhookWork
from holdfast.inventory.partner_webhooks.model import Delivery, ReceivedDelivery
from holdfast.inventory.resources import Steps
from holdfast.inventory.service import HANDLERS
from holdfast.inventory.shopify import signatures
from holdfast.inventory.shopify.domains import REQUIRED
from tests.helpers.inventory_service import Inventory, Shop, client_secret
from tests.helpers.row_work import handle_all

_numbers = itertools.count(1)


async def install_app(inventory: Inventory, shop: Shop | None = None) -> Shop:
    """A shop, or a new one, that has the app from now on, but no tokens."""
    shop = shop or await inventory.create_shop()
    await inventory.database.transact(lambda tx: installs.store_install(tx, shop.id, REQUIRED))
    return shop


async def deliver(
    shop: Shop, topic: str, body: Any = None, *, secret: bytes | None = None, **headers: str
) -> httpx2.Response:
    """Send a webhook, signed. The names of headers are those after `X-Shopify-`."""
    content = body if isinstance(body, bytes) else msgspec.json.encode(body or {})
    signed = signatures.sign_webhook(content, secret or client_secret(shop.settings)).decode()
    headers_sent = {
        "topic": topic,
        "shop_domain": shop.domain,
        "webhook_id": f"delivery-{next(_numbers)}",
        "triggered_at": datetime.now(UTC).isoformat(),
        "hmac_sha256": signed,
        **headers,
    }
    sent = {b"content-type": b"application/json"}
    for name, value in headers_sent.items():
        if value:
            sent[f"X-Shopify-{name.replace('_', '-')}".encode()] = value.encode("latin-1")
    return await shop.http.post("/webhooks/shopify", content=content, headers=sent)


async def handle(inventory: Inventory) -> int:
    """Handle everything in the inbox that is due. Returns how many deliveries that were."""
    return await handle_all(WebhookWork(inventory.database, HANDLERS))


class DeliveryScene:
    """A shop with the app, and a handler of `orders/updated` that does what it is told."""

    def __init__(self, inventory: Inventory, shop: Shop) -> None:
        self.inventory = inventory
        self.shop = shop
        self.handled: list[Delivery] = []
        self.faults: list[Exception] = []
        self.meanwhile: Callable[[Steps], Any] = lambda _: None

    async def handler(self, steps: Steps, delivery: Delivery) -> None:
        self.handled.append(delivery)
        if waiting := self.meanwhile(steps):
            await waiting
        if self.faults:
            raise self.faults.pop(0)

    @property
    def handling(self) -> WebhookWork:
        return WebhookWork(self.inventory.database, {"orders/updated": self.handler})

    async def receive(self, *webhook_ids: str) -> None:
        box = inbox.Inbox(self.inventory.database)
        for webhook_id in webhook_ids:
            await box.store(ReceivedDelivery(self.shop.domain, "orders/updated", webhook_id, "e", None, b'{"id":1}'))

    async def row(self) -> tuple[Any, ...]:
        """What is stored of the one delivery: whether it was handled and is due, in how many seconds, its attempts, the
        error.
        """
        [row] = await self.inventory.sql(
            """select handled_at is not null, due_at is not null, extract(epoch from due_at - now())::float8,
                      attempts, error from webhooks"""
        )
        return row

    async def lock_in_another_process(self) -> None:
        """Let another process have taken the delivery."""
        await self.inventory.sql("update webhooks set due_at = now() + interval '1 hour', lease_id = gen_random_uuid()")

    async def deliver_again(self) -> None:
        """Let the delivery be due, and handle it."""
        await self.inventory.sql("update webhooks set due_at = now() where due_at is not null")
        await handle_all(self.handling)
