"""The end of an install: its key, its tokens and the sessions of its merchants end at once, its data when the platform
says so, 48 hours later.

The headers of a webhook are not signed, and one may come late. So the shop must also be named in the body, and nothing
is ended that was installed after the cause of the webhook.
"""

import datetime as dt
from functools import partial

import msgspec
import structlog
from msgspec import Struct

from holdfast.inventory.installs import sql
from holdfast.inventory.installs.model import REDACT, OfShop
from holdfast.inventory.merchants import operations as merchants
from holdfast.inventory.resources import Steps, Tx
from holdfast.inventory.shops import operations as shops
from holdfast.inventory.webhooks import inbox
from holdfast.inventory.webhooks.model import Delivery

CLOCKS = dt.timedelta(seconds=1)
"""By so much, the platform's clock and that of the database may differ."""

log = structlog.get_logger()


class _Named(Struct):
    """How the bodies of both topics name the shop."""

    myshopify_domain: str | None = None
    shop_domain: str | None = None


async def uninstall(steps: Steps, delivery: Delivery) -> None:
    """End what the service may do for the shop, and what keys may do at the service."""

    async def work(tx: Tx) -> bool:
        install = await sql.lock_install(tx, delivery.shop_id)
        if install is None or install.uninstalled_at or _is_about_another(delivery, install.domain):
            return False
        if _is_older_than(delivery, install.installed_at):
            return False
        await sql.end_install(tx, delivery.shop_id)
        await inbox.drop_pending(tx, delivery.shop_id)
        await shops.end_key(tx, delivery.shop_id)
        await merchants.end_sessions(tx, delivery.shop_id)
        return True

    ended = await steps.transact(work)
    log.info(
        "a shop has uninstalled the app" if ended else "an uninstall is not of this install", shop=delivery.shop_id
    )


async def redact(steps: Steps, delivery: Delivery) -> None:
    """Begin to delete everything of a shop that has uninstalled the app."""

    async def work(tx: Tx) -> bool:
        install = await sql.lock_install(tx, delivery.shop_id)
        if install is None or install.uninstalled_at is None or _is_about_another(delivery, install.domain):
            return False
        await mark_redacted(tx, delivery.shop_id)
        return True

    begun = await steps.transact(work)
    log.info("a shop is deleted" if begun else "a shop to delete has the app", shop=delivery.shop_id)


async def mark_redacted(tx: Tx, shop_id: int) -> None:
    """From now on the rows of the shop may be deleted; a job deletes them."""
    await sql.mark_redacted(tx, shop_id)
    await tx.enqueue(REDACT, OfShop(shop_id))


async def delete(steps: Steps, of: OfShop) -> None:
    """Delete all rows of a shop that is to be deleted, a portion at a time. May be run again at any time."""
    while await steps.transact(partial(sql.delete_portion, shop_id=of.shop_id)):
        pass


async def redact_forgotten(tx: Tx) -> int:
    """Delete shops that uninstalled the app 30 days ago, if the platform's word did not arrive. Returns how many."""
    forgotten = await sql.forgotten(tx)
    for shop_id in forgotten:
        await mark_redacted(tx, shop_id)
    return len(forgotten)


def _is_about_another(delivery: Delivery, domain: str) -> bool:
    named = msgspec.json.decode(delivery.payload, type=_Named)
    return (named.myshopify_domain or named.shop_domain) != domain


def _is_older_than(delivery: Delivery, installed_at: dt.datetime) -> bool:
    return delivery.triggered_at is not None and delivery.triggered_at + CLOCKS < installed_at
