"""Operations on the levels of a shop at the platform."""

from collections.abc import Sequence
from functools import partial
from math import ceil

from holdfast.inventory.problems import SHOP_NOT_CONNECTED, no_pool
from holdfast.inventory.resources import Reader, Steps, Tx
from holdfast.inventory.shopify.platform import Refused, Unreachable
from holdfast.inventory.stock import book
from holdfast.inventory.sync import edits, levels, platform, reports
from holdfast.inventory.sync.answers import (
    DriftReport,
    GetDrift,
    GetSyncStatus,
    LocationShare,
    Reconcile,
    Reconciled,
    Resync,
    Resynced,
    Share,
    SyncStatus,
)
from holdfast.inventory.sync.model import Observed
from holdfast.kit.caller import Caller
from holdfast.kit.problems import NOT_FOUND, SERVICE_UNAVAILABLE, invalid, refuses
from holdfast.kit.steps import Concluded

SHOWN = 200
"""The most differences that are shown at once."""

RETRY_SECONDS = 5
"""When to try again, where the platform did not answer and did not say when it will."""


@refuses(NOT_FOUND)
async def status(reader: Reader, caller: Caller, command: GetSyncStatus) -> SyncStatus:
    """How levels at the platform follow the pools: what is pending, the lag; the import."""
    if command.pool_id is not None and not await reports.has_pool(reader, caller.tenant, command.pool_id):
        raise no_pool(command.pool_id)
    return await reports.status(reader, caller.tenant, command.pool_id)


@refuses(NOT_FOUND)
async def drift(reader: Reader, caller: Caller, command: GetDrift) -> DriftReport:
    """Levels that are not what their pools have, and why."""
    if command.pool_id is not None and not await reports.has_pool(reader, caller.tenant, command.pool_id):
        raise no_pool(command.pool_id)
    return DriftReport(await reports.drift(reader, caller.tenant, command.pool_id, command.limit))


@refuses(NOT_FOUND, SHOP_NOT_CONNECTED, SERVICE_UNAVAILABLE)
async def reconcile(steps: Steps, caller: Caller, command: Reconcile) -> Concluded[Reconciled]:
    """Read the levels of a pool's variants from the platform, and show what is different.

    A dry run unless you say `dry_run: false`: then the pool's policy handles it.
    """
    shop_id, pool_id = caller.tenant, command.pool_id
    if not await steps.read(partial(reports.has_pool, shop_id=shop_id, pool_id=pool_id)):
        raise no_pool(pool_id)
    known = await steps.read(partial(reports.of_pool, shop_id=shop_id, pool_id=pool_id))
    found: list[Observed] = []
    try:
        for start in range(0, len(known), platform.READ_AT_ONCE):
            gids = [gid for _, _, gid in known[start : start + platform.READ_AT_ONCE]]
            found += await platform.read_levels(steps, shop_id, gids)
    except (Unreachable, Refused) as error:
        pause = error.retry_after if isinstance(error, Unreachable) else None
        message = f"The platform does not say what it has. {error}"
        raise SERVICE_UNAVAILABLE(message, retry_after=ceil(pause or RETRY_SECONDS)) from error

    async def conclude(tx: Tx) -> Reconciled:
        await tx.run("savepoint dry_run")
        await book.lock(tx, shop_id)
        await levels.lock(tx, shop_id, {item for item, _, _ in known}, late=True)
        await _store(tx, shop_id, known, found)
        different = await reports.drift(tx, shop_id, pool_id, SHOWN)
        if command.dry_run:
            await tx.run("rollback to savepoint dry_run")
        else:
            await reports.judge_now(tx, shop_id, pool_id)
            await edits.judge(tx, shop_id)
            await levels.call(tx, shop_id)
        return Reconciled(command.dry_run, different)

    return await steps.conclude(conclude)


async def _store(tx: Tx, shop_id: int, known: Sequence[tuple[str, str, str]], found: Sequence[Observed]) -> None:
    there = {(each.item_gid, each.location_gid) for each in found}
    await levels.forget(tx, shop_id, [each[:2] for each in known if each[:2] not in there])
    await levels.observe(tx, shop_id, found, fresh=True)


@refuses(NOT_FOUND)
async def resync(tx: Tx, caller: Caller, command: Resync) -> Resynced:
    """Set the levels of a pool's variants to what it has, also parked ones."""
    if not await reports.has_pool(tx, caller.tenant, command.pool_id):
        raise no_pool(command.pool_id)
    known = await reports.of_pool(tx, caller.tenant, command.pool_id)
    await levels.lock(tx, caller.tenant, {item for item, _, _ in known})
    count = await reports.resync(tx, caller.tenant, command.pool_id)
    await levels.call(tx, caller.tenant)
    return Resynced(command.dry_run, count)


async def spread(tx: Tx, shop_id: int, shares: Sequence[Share]) -> Sequence[LocationShare]:
    """Spread the quantity of a variant over locations from now on: by shares, or without any, all of it to each.

    Raises `validation_failed` for shares that do not come to 100 percent, or of locations that the shop does not have.
    """
    known = {each.gid for each in await reports.locations(tx, shop_id)}
    named = [each.location_gid for each in shares]
    if unknown := [gid for gid in named if gid not in known]:
        raise invalid({"share": [f"the shop has no location {unknown[0]}"]})
    if len({*named}) < len(named):
        raise invalid({"share": ["must name each location once"]})
    if shares and (sum(each.percent for each in shares) != 100 or min(each.percent for each in shares) < 1):
        raise invalid({"share": ["must come to 100 percent together, each from 1"]})
    await reports.set_rule(tx, shop_id, "all" if not shares else "one" if len(shares) == 1 else "shares", shares)
    await levels.call(tx, shop_id)
    return await reports.locations(tx, shop_id)


async def locations(reader: Reader, shop_id: int) -> Sequence[LocationShare]:
    """The locations of a shop with their shares."""
    return await reports.locations(reader, shop_id)
