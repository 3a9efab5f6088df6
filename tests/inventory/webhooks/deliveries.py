"""Webhooks as the platform sends them, to a shop that has the app."""

import itertools
from datetime import UTC, datetime
from typing import Any

import httpx2
import msgspec

from holdfast.inventory.installs import sql as installs
from holdfast.inventory.service import HANDLERS
from holdfast.inventory.shopify import signatures
from holdfast.inventory.shopify.domains import REQUIRED
from holdfast.inventory.webhooks.inbox import WebhookWork
from holdfast.kit.background.row_work import handle_all
from tests.inventory.support import Inventory, Shop, client_secret

_numbers = itertools.count(1)


async def installed(inventory: Inventory, shop: Shop | None = None) -> Shop:
    """A shop, or a new one, that has the app from now on, but no tokens."""
    shop = shop or await inventory.shop()
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
