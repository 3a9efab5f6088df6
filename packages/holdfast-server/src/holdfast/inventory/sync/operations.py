"""Operations on the levels of a shop at the platform."""

from collections.abc import Sequence
from functools import partial
from math import ceil

from holdfast.inventory.cursor import cursor_page
from holdfast.inventory.partner_webhooks import inbox
from holdfast.inventory.problems import NOT_ENOUGH_STOCK, POOL_NOT_ACTIVE, SHOP_NOT_CONNECTED, no_pool
from holdfast.inventory.resources import Reader, Steps, Tx
from holdfast.inventory.shopify.platform_client import PlatformRefusal, PlatformUnreachable
from holdfast.inventory.stock.model import AdjustPoolQuantity, StockChange
from holdfast.inventory.stock.operations import adjust, only_answer
from holdfast.inventory.stock.shop_versions import lock_shop
from holdfast.inventory.sync import edits, level_calls, levels, reports
from holdfast.inventory.sync.model import (
    DriftReport,
    GetDrift,
    GetSyncStatus,
    ListUnsyncedPools,
    LocationPercent,
    Reconcile,
    Reconciliation,
    Resync,
    ResyncedLevels,
    Spreading,
    SyncStatus,
    UnsyncedPools,
)
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.problems import NOT_FOUND, SERVICE_UNAVAILABLE, VALIDATION_FAILED, invalid, refuses
from holdfast.kit.operations.operation import Batch, Call
from holdfast.kit.operations.steps import Conclusion

MAX_DRIFT_ROWS = 200
"""The most differences in one answer."""

RETRY_SECONDS = 5
"""Seconds until the next try if the platform did not answer and named no time."""


@refuses(NOT_FOUND)
async def status(reader: Reader, caller: Caller, command: GetSyncStatus) -> SyncStatus:
    """How levels at the platform follow the pools: what is pending, the lag; the import."""
    if command.pool_id is not None and not await reports.has_pool(reader, caller.tenant, command.pool_id):
        raise no_pool(command.pool_id)
    return await reports.read_status(reader, caller.tenant, command.pool_id)


@refuses(NOT_FOUND)
async def drift(reader: Reader, caller: Caller, command: GetDrift) -> DriftReport:
    """Levels that are not what their pools have, and why."""
    if command.pool_id is not None and not await reports.has_pool(reader, caller.tenant, command.pool_id):
        raise no_pool(command.pool_id)
    return DriftReport(await reports.list_drift(reader, caller.tenant, command.pool_id, command.limit))


@refuses(NOT_FOUND, SHOP_NOT_CONNECTED, SERVICE_UNAVAILABLE)
async def reconcile(steps: Steps, caller: Caller, command: Reconcile) -> Conclusion[Reconciliation]:
    """Read the levels of a pool's variants from the platform, and show what is different.

    A dry run unless you say `dry_run: false`: then the pool's policy handles it, when all orders are counted and calls
    to the platform are answered. `waits_for` names what is missing.
    """
    shop_id, pool_id = caller.tenant, command.pool_id
    if not await steps.read(partial(reports.has_pool, shop_id=shop_id, pool_id=pool_id)):
        raise no_pool(pool_id)
    item_locations = await steps.read(partial(reports.levels_of_pool, shop_id=shop_id, pool_id=pool_id))
    try:
        observed = await level_calls.read_levels_of_items(steps, shop_id, item_locations)
    except (PlatformUnreachable, PlatformRefusal) as error:
        pause = error.retry_after if isinstance(error, PlatformUnreachable) else None
        message = f"The platform does not say what it has. {error}"
        raise SERVICE_UNAVAILABLE(message, retry_after=ceil(pause or RETRY_SECONDS)) from error

    async def conclude(tx: Tx) -> Reconciliation:
        await tx.run("savepoint dry_run")
        await lock_shop(tx, shop_id)
        items = {item for item, _ in item_locations}
        await levels.lock(tx, shop_id, items)
        await levels.store_reading(tx, shop_id, item_locations, observed, is_complete=True)
        different = await reports.list_drift(tx, shop_id, pool_id, MAX_DRIFT_ROWS)
        calls = await reports.unanswered_calls(tx, shop_id, pool_id)
        if command.dry_run:
            await tx.run("rollback to savepoint dry_run")
            webhooks = await inbox.list_waiting_order_webhooks(tx, shop_id)
        else:
            await reports.end_grace(tx, shop_id, pool_id)
            webhooks = await edits.handle_edits(tx, shop_id, items)
            await levels.request_sync(tx, shop_id)
        return Reconciliation(command.dry_run, different, [*reports.of_webhooks(webhooks), *calls])

    return await steps.conclude(conclude)


@refuses(NOT_FOUND)
async def resync(tx: Tx, caller: Caller, command: Resync) -> ResyncedLevels:
    """Set the levels of a pool's variants to what it has, also parked ones."""
    if not await reports.has_pool(tx, caller.tenant, command.pool_id):
        raise no_pool(command.pool_id)
    item_locations = await reports.levels_of_pool(tx, caller.tenant, command.pool_id)
    items = {item for item, _ in item_locations}
    await levels.lock(tx, caller.tenant, items)
    set_again = await reports.mark_levels_to_set(tx, caller.tenant, command.pool_id)
    begun = [(item, location) for item, location, begins in set_again if begins]
    await levels.release_changes(tx, caller.tenant, begun)
    await levels.recheck(tx, caller.tenant, items)
    await levels.request_sync(tx, caller.tenant)
    return ResyncedLevels(command.dry_run, len(set_again))


@refuses(NOT_FOUND, POOL_NOT_ACTIVE, NOT_ENOUGH_STOCK, VALIDATION_FAILED)
async def keep_platform_number(tx: Tx, caller: Caller, command: AdjustPoolQuantity) -> StockChange:
    """Correct a pool to the number that the platform shows, and have its levels set again: the number no longer waits.

    Both in one transaction: if one fails, nothing is changed, and the page says so.
    """
    change = only_answer(await adjust(tx, Batch(caller.tenant, [Call(caller, command)])))
    await resync(tx, caller, Resync(pool_id=command.pool_id, dry_run=command.dry_run))
    return change


async def list_unsynced_pools(reader: Reader, caller: Caller, command: ListUnsyncedPools) -> UnsyncedPools:
    """The pools of which the platform has another quantity, by id."""
    ids = await reports.list_unsynced_pools(reader, caller.tenant, command)
    pool_ids, cursor = cursor_page(ids, command, lambda pool_id: pool_id)
    return UnsyncedPools(pool_ids, cursor)


async def spread(tx: Tx, shop_id: int, shares: Sequence[LocationPercent]) -> Spreading:
    """Spread the quantity of a variant over locations from now on: by shares, or without any, all of it to each.

    Raises `validation_failed` for shares that do not sum to 100 percent, or of locations that the shop does not have.
    """
    known_gids = {location.gid for location in (await reports.spreading(tx, shop_id)).locations}
    location_gids = [share.location_gid for share in shares]
    if unknown := [gid for gid in location_gids if gid not in known_gids]:
        raise invalid({"share": [f"the shop has no location {unknown[0]}"]})
    if len({*location_gids}) < len(location_gids):
        raise invalid({"share": ["must name each location once"]})
    if shares and (sum(share.percent for share in shares) != 100 or min(share.percent for share in shares) < 1):
        raise invalid({"share": ["must come to 100 percent together, each from 1"]})
    await reports.set_rule(tx, shop_id, "all" if not shares else "one" if len(shares) == 1 else "shares", shares)
    await levels.request_sync(tx, shop_id)
    return await reports.spreading(tx, shop_id)


async def spreading(reader: Reader, shop_id: int) -> Spreading:
    """How the quantities of a shop are spread over its locations."""
    return await reports.spreading(reader, shop_id)
