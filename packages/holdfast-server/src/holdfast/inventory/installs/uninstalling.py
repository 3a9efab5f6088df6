"""The end of an install: its key, its tokens and the sessions of its merchants end at once. Its data is deleted when
the platform asks, at the earliest 40 hours later; without a request, after 30 days.

A webhook alone ends nothing: a forged one could end any shop, its headers are not signed, and one may come late. So the
body must name the shop too, and an install that is newer than the cause of the webhook is not ended. Before anything is
ended or deleted, the platform must confirm that the shop does not have the app, and data is not deleted before the
platform deletes. A request that comes earlier is remembered, and done when it is due. The platform is asked with the
access token of the shop, which is refreshed first if it has expired. If the platform accepts no token of the shop, it
is asked for one as the app itself.

After a webhook about changed scopes, the present ones are read from the platform, in whatever order webhooks come.
"""

import datetime as dt
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

import structlog
from msgspec import Struct

from holdfast.inventory.installs import sql
from holdfast.inventory.installs.access import call_admin_api, missing_scopes_reason
from holdfast.inventory.installs.model import REDACT, Install, ShopTask
from holdfast.inventory.merchants import operations as merchants
from holdfast.inventory.partner_webhooks import inbox
from holdfast.inventory.partner_webhooks.model import Delivery, DueLater
from holdfast.inventory.partner_webhooks.payloads import RedactionPayload, UninstallPayload, read_payload
from holdfast.inventory.problems import SHOP_NOT_CONNECTED
from holdfast.inventory.resources import Steps, Tx
from holdfast.inventory.shopify.admin import Query
from holdfast.inventory.shopify.domains import missing_scopes
from holdfast.inventory.shopify.platform_client import PlatformRefusal, PlatformUnreachable
from holdfast.inventory.shopify.platform_tokens import SHOP_GONE
from holdfast.inventory.shops import operations as shops
from holdfast.kit.contract.problems import Problem
from holdfast.kit.environment.logs import first_line
from holdfast.kit.webhooks.endpoints import pause_all as pause_webhooks

log = structlog.get_logger()

NO_SHOP = frozenset({"404", SHOP_GONE})
"""Codes of refusals for a shop that does not exist: of the Admin API, and of the token endpoint."""

MAX_CLOCK_DIFFERENCE = dt.timedelta(seconds=1)
"""The most that the platform's clock and that of the database may differ."""

ENDING_SECONDS = 60
"""Seconds after the webhook in which the platform may still accept the tokens of an uninstalled app."""

REDACTION_HOURS = 40
"""The platform says 48 hours after an uninstall that the data is to be deleted (shopify.dev, "Privacy law compliance").
The uninstall itself may have been heard of up to 8 hours late.
"""


class _Scope(Struct):
    handle: str


class _Installation(Struct, rename="camel"):
    access_scopes: list[_Scope]


class _GrantedAnswer(Struct, rename="camel"):
    current_app_installation: _Installation


READ_GRANTED_SCOPES = Query(
    "granted_scopes", "query Granted { currentAppInstallation { accessScopes { handle } } }", _GrantedAnswer, cost=5
)


async def store_granted_scopes(steps: Steps, delivery: Delivery) -> None:
    """Store the granted scopes of the shop, and which required ones are missing."""
    answer = await call_admin_api(steps, delivery.shop_id, READ_GRANTED_SCOPES)
    granted_scopes = [scope.handle for scope in answer.current_app_installation.access_scopes]
    lacks = missing_scopes(granted_scopes)

    async def store(tx: Tx) -> None:
        await sql.store_scopes(tx, delivery.shop_id, granted_scopes, missing_scopes_reason(lacks) if lacks else None)

    await steps.transact(store)


async def find_ended_install(steps: Steps, shop_id: int) -> Install | None:
    """The install of a shop that, as the platform says, does not have the app; None if the shop has it.

    None also without an install. Raises `PlatformUnreachable` and `PlatformRefusal` if the platform does not say.
    """
    install = await steps.read(partial(sql.find_install, shop_id=shop_id))
    return None if install is None or await _has_app(steps, install) else install


async def _has_app(steps: Steps, install: Install) -> bool:
    try:
        await call_admin_api(steps, install.shop_id, READ_GRANTED_SCOPES)
    except Problem as problem:
        if problem.type is not SHOP_NOT_CONNECTED:
            raise
    except PlatformRefusal as refusal:
        if refusal.code not in NO_SHOP:
            raise
    else:
        return True
    has_app = await steps.resources.token_endpoint.has_app(install.domain)
    if has_app is None and await steps.read(partial(sql.find_tokens, shop_id=install.shop_id)):
        # The tokens could not be tried, or came just now: the platform has refused none of them.
        raise PlatformUnreachable(
            "The platform does not say whether the shop has the app, and has not refused its tokens."
        )
    return bool(has_app)


Work: TypeAlias = Callable[[Tx, Install], Awaitable[None]]
"""The work on a shop that does not have the app; its install is locked."""


async def uninstall(steps: Steps, delivery: Delivery) -> None:
    """End the access of the service to the shop, and of the shop's keys to the service.

    Raises `PlatformUnreachable` while it cannot be known whether the shop has uninstalled the app.
    """
    install = await _find_install_of(steps, delivery, read_payload(delivery, UninstallPayload).myshopify_domain)
    if install is None or install.uninstalled_at:
        log.info("an uninstall is not of this install", shop=delivery.shop_id)
        return
    ended_install = await find_ended_install(steps, delivery.shop_id)
    if ended_install is None:
        now = await steps.read(sql.now)
        if now - delivery.received_at < dt.timedelta(seconds=ENDING_SECONDS):
            raise PlatformUnreachable("The platform still accepts the tokens of the shop.", ENDING_SECONDS)
        log.warning("a webhook tells of an uninstall, but the shop has the app", shop=delivery.shop_id)
    elif await steps.transact(partial(_do_unless_installed_again, ended_install=ended_install, work=_end)):
        log.info("a shop has uninstalled the app", shop=delivery.shop_id)


async def redact(steps: Steps, delivery: Delivery) -> None:
    """Start to delete all rows of a shop that has uninstalled the app, even if no webhook of that came before.

    Raises `DueLater` while its data is kept, and `PlatformUnreachable` while it cannot be known whether the shop has
    uninstalled the app.
    """
    install = await _find_install_of(steps, delivery, read_payload(delivery, RedactionPayload).shop_domain)
    is_deleted = False
    if install:
        await _wait_until_due(steps, install)
    if install and (ended_install := await find_ended_install(steps, delivery.shop_id)):
        is_deleted = await steps.transact(
            partial(_do_unless_installed_again, ended_install=ended_install, work=_end_and_delete)
        )
    log.info("a shop is deleted" if is_deleted else "a shop is not to be deleted", shop=delivery.shop_id)


async def _find_install_of(steps: Steps, delivery: Delivery, domain: str | None) -> Install | None:
    """The install of the shop that a webhook names; None if it is another shop, or an earlier install."""
    install = await steps.read(partial(sql.find_install, shop_id=delivery.shop_id))
    if install is None or install.domain != domain or _is_older_than(delivery, install):
        return None
    return install


async def _do_unless_installed_again(tx: Tx, *, ended_install: Install, work: Work) -> bool:
    """Do the work on a shop without the app, unless it was installed again while the platform was asked."""
    install = await sql.lock_install(tx, ended_install.shop_id)
    if install is None or install.installed_at != ended_install.installed_at:
        return False
    await work(tx, install)
    return True


async def _end(tx: Tx, install: Install) -> None:
    if install.uninstalled_at:
        return
    await sql.end_install(tx, install.shop_id)
    await inbox.delete_unhandled(tx, install.shop_id)
    # The programs are the shop's, which may be of another owner when it installs the app again.
    await pause_webhooks(tx, install.shop_id)
    await shops.end(tx, install.shop_id, install.domain)
    await merchants.end_sessions(tx, install.shop_id)


async def _end_and_delete(tx: Tx, install: Install) -> None:
    await _end(tx, install)
    await mark_redacted(tx, install.shop_id)


async def mark_redacted(tx: Tx, shop_id: int) -> None:
    """Store that the rows of the shop may be deleted; a job deletes them."""
    await sql.mark_redacted(tx, shop_id)
    await tx.enqueue(REDACT, ShopTask(shop_id))


async def delete(steps: Steps, task: ShopTask) -> None:
    """Delete all rows of a shop that is to be deleted, in batches. May be run again at any time."""
    while await steps.transact(partial(sql.delete_batch, shop_id=task.shop_id)):
        pass


async def redact_forgotten(steps: Steps) -> int:
    """Delete shops that uninstalled the app 30 days ago, if the platform's request did not arrive. Returns how many."""
    deleted, after = 0, 0
    while shop_ids := await steps.read(partial(sql.list_forgotten, after=after)):
        after = shop_ids[-1]
        for shop_id in shop_ids:
            deleted += await _redact_forgotten_shop(steps, shop_id)
    return deleted


async def _redact_forgotten_shop(steps: Steps, shop_id: int) -> bool:
    """Whether a shop is deleted. Unless the platform says that it lacks the app, it is retried the next day."""
    try:
        ended_install = await find_ended_install(steps, shop_id)
    except (PlatformUnreachable, PlatformRefusal) as error:
        log.warning("the platform does not say whether a shop has the app", shop=shop_id, why=first_line(error))
        return False
    work = (
        partial(_do_unless_installed_again, ended_install=ended_install, work=_end_and_delete)
        if ended_install
        else None
    )
    return work is not None and await steps.transact(work)


async def _wait_until_due(steps: Steps, install: Install) -> None:
    """Raise `DueLater` if the shop has uninstalled the app less than `REDACTION_HOURS` ago."""
    if install.uninstalled_at is None:
        return
    due_at = install.uninstalled_at + dt.timedelta(hours=REDACTION_HOURS)
    seconds = (due_at - await steps.read(sql.now)).total_seconds()
    if seconds > 0:
        message = f"The data of the shop is kept for {REDACTION_HOURS} hours after the uninstall, then it is deleted."
        raise DueLater(message, seconds)


def _is_older_than(delivery: Delivery, install: Install) -> bool:
    return delivery.triggered_at is not None and delivery.triggered_at + MAX_CLOCK_DIFFERENCE < install.installed_at
