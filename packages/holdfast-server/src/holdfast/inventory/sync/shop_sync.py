"""Syncs the levels of a shop when its pools or levels change: plan, push, read again, until all of them are as wanted.

One process at a time syncs a shop. If it is killed or stalls, another process syncs the shop
(`kit/background/row_work.py`), and repeats a call whose result is not known with the same key. A call is a row, so its
result is stored once.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

import structlog
from msgspec import Struct
from prometheus_client import Counter, Histogram

from holdfast.inventory.resources import Database, Reader, Steps, Tx
from holdfast.inventory.shopify.platform_client import PlatformUnreachable
from holdfast.inventory.shops.operations import announce_sync_status
from holdfast.inventory.stock.shop_versions import STOCK_CHANNEL, lock_shop
from holdfast.inventory.sync import cart_check, edits, level_calls, levels, pushing, sql
from holdfast.inventory.sync.cart_check import CartNumbers, NumbersReading
from holdfast.inventory.sync.level_calls import AcceptedPush, UnknownPushResult
from holdfast.inventory.sync.levels import LEVELS_CHANNEL
from holdfast.inventory.sync.model import LevelPush, LevelRefusal, ObservedLevel
from holdfast.inventory.sync.planning import plan
from holdfast.inventory.sync.pushing import PushSizes
from holdfast.inventory.sync.sql import LeasedShop
from holdfast.kit.background.leases import LeaseLost
from holdfast.kit.background.row_work import RetryBackoff, RowWork
from holdfast.kit.contract.bounds import bound_without_strangers
from holdfast.kit.contract.problems import Problem
from holdfast.kit.environment.logs import first_line
from holdfast.kit.operations.slots import Slots

IDEMPOTENCY_KEY_SECONDS = 20 * 3600
"""How long the platform is sure to know a key. An older call is not repeated: its levels are read, and set again."""

RETRY_BACKOFF = RetryBackoff(1.0, 300.0)

PUSHES = Counter("holdfast_level_pushes", "Calls that change levels at the storefront platform.", ["how"])
LEVELS = Counter("holdfast_levels_pushed", "Levels changed at the storefront platform.")
LAG = Histogram(
    "holdfast_sync_lag_seconds",
    "Seconds from a webhook to the level that it changes.",
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2, 5, 15, 60, 300),
)

log = structlog.get_logger()

MAX_CONCURRENT_SHOPS = 8
"""The most shops that one process syncs at the same time."""

SYNC_TRANSACTIONS = bound_without_strangers(
    name="Transactions that sync levels",
    service="inventory",
    total=f"{MAX_CONCURRENT_SHOPS} shops",
    tenant="1 of all processes",
)

COLLECT_SECONDS = 0.02
"""How long changes are collected, so that one sync handles many."""

MIN_SYNC_INTERVAL_SECONDS = 0.5
"""Seconds from a sync that pushed levels to the next sync of the shop: changes meanwhile are pushed by one call. The
same levels are not pushed again earlier anyway (`pushing.MIN_PUSH_INTERVAL_SECONDS`).
"""


class LevelReading(Struct, frozen=True):
    """Levels to be read. `judges`: differences that stay unexplained afterwards are edits."""

    levels: list[tuple[str, str, str]]
    judges: bool


async def sync_shop(steps: Steps, shop: LeasedShop, sizes: PushSizes) -> bool:
    """Sync a shop that this process has leased. Raises `LeaseLost`, and nothing else about the platform.

    Returns whether its levels were set, or were to be set.
    """
    shop_id, error, pushed, pause = shop.shop_id, None, False, RETRY_BACKOFF.pause(shop.attempts)
    try:
        while work := await steps.transact(partial(_next_work, shop=shop, sizes=sizes)):
            match work:
                case LevelPush():
                    pushed = True
                    await _push(steps, shop_id, work, sizes)
                case LevelReading():
                    await _read(steps, shop_id, work)
                case NumbersReading():
                    await cart_check.read(steps, shop_id, work)
                case _:
                    await cart_check.write(steps, shop_id, work)
    except LeaseLost:
        raise
    except asyncio.CancelledError:
        await steps.transact(partial(sql.hand_over, shop_id=shop_id, lease_id=shop.lease_id))
        raise
    except PlatformUnreachable as unreachable:
        error, pause = str(unreachable), max(unreachable.retry_after or 0.0, pause)
        log.warning("the levels of a shop cannot be set yet", shop=shop_id, error=error)
    except Problem as problem:
        error = problem.message
        log.warning("the levels of a shop are not set", shop=shop_id, error=error)
    except Exception as fault:
        error = f"{type(fault).__name__}: {first_line(fault)}"
        log.error("the levels of a shop cannot be set", shop=shop_id, exc_info=fault)
    await steps.transact(partial(_end, shop=shop, error=error, pause=pause))
    return pushed


async def _next_work(
    tx: Tx, *, shop: LeasedShop, sizes: PushSizes
) -> LevelPush | LevelReading | NumbersReading | list[CartNumbers] | None:
    """The next work at the platform: levels first, then numbers. Raises `LeaseLost`."""
    await plan(tx, shop.shop_id)
    work = (
        await pushing.next_push(tx, shop.shop_id, sizes.size_of(shop.shop_id))
        or await _next_reading(tx, shop.shop_id)
        or await cart_check.next_writing(tx, shop.shop_id)
    )
    # The lease is locked last, because other transactions lock the levels before it.
    if not await sql.renew_lease(tx, shop.shop_id, shop.lease_id):
        raise LeaseLost
    return work


async def _next_reading(tx: Tx, shop_id: int) -> LevelReading | None:
    rows, judges = await sql.levels_to_read(tx, shop_id, level_calls.MAX_LEVELS_PER_READ), False
    if not rows:
        rows, judges = await sql.unexplained_levels(tx, shop_id, level_calls.MAX_LEVELS_PER_READ), True
    return LevelReading(rows, judges) if rows else None


async def renew(tx: Tx, shop: LeasedShop) -> bool:
    """Renew the lease of a shop, unless it was given back. False: another process has leased the shop."""
    if await sql.renew_lease(tx, shop.shop_id, shop.lease_id):
        return True
    return not await sql.is_leased_by_another(tx, shop.shop_id, shop.lease_id)


async def _end(tx: Tx, *, shop: LeasedShop, error: str | None, pause: float) -> None:
    await announce_sync_status(tx, shop.shop_id)
    await sql.end_lease(tx, shop.shop_id, shop.lease_id, error, pause)


async def _push(steps: Steps, shop_id: int, push: LevelPush, sizes: PushSizes) -> None:
    """Make a call, and store its result."""
    match await _call_platform(steps, shop_id, push):
        case AcceptedPush() as result:
            PUSHES.labels("accepted").inc()
            LEVELS.inc(len(push.levels))
            if not push.adjusts:
                sizes.note_accepted(shop_id)
            store = partial(pushing.store_accepted, shop_id=shop_id, push=push, accepted=result)
            for seconds in await steps.transact(store):
                LAG.observe(seconds)
        case UnknownPushResult():
            PUSHES.labels("untold").inc()
            observed = await level_calls.read_levels(steps, shop_id, [level.gid for level in push.levels])
            await steps.transact(partial(pushing.begin_again, shop_id=shop_id, push=push, observed=observed))
        case unsettable:
            PUSHES.labels("refused").inc()
            if not push.adjusts:
                sizes.note_refused(shop_id, len(push.levels), len(unsettable))
            await steps.transact(partial(pushing.store_refused, shop_id=shop_id, push=push, unsettable=unsettable))


async def _call_platform(
    steps: Steps, shop_id: int, push: LevelPush
) -> AcceptedPush | list[LevelRefusal] | UnknownPushResult:
    if not push.levels:
        return []
    return (
        UnknownPushResult()
        if push.age > IDEMPOTENCY_KEY_SECONDS
        else await level_calls.change_levels(steps, shop_id, push)
    )


async def _read(steps: Steps, shop_id: int, reading: LevelReading) -> None:
    """Read levels from the platform, and store them. To judge differences, all levels of their items are read."""
    if reading.judges:
        pairs = [(item, location) for item, location, _ in reading.levels]
        observed = await level_calls.read_levels_of_items(steps, shop_id, pairs)
    else:
        observed = await level_calls.read_levels(steps, shop_id, [gid for _, _, gid in reading.levels])
    await steps.transact(partial(_store_reading, shop_id=shop_id, reading=reading, observed=observed))


async def _store_reading(tx: Tx, *, shop_id: int, reading: LevelReading, observed: Sequence[ObservedLevel]) -> None:
    if reading.judges:
        await lock_shop(tx, shop_id)
    items = {item for item, _, _ in reading.levels}
    await levels.lock(tx, shop_id, items)
    await levels.store_reading(
        tx, shop_id, [level[:2] for level in reading.levels], observed, is_complete=reading.judges
    )
    if reading.judges:
        await edits.handle_edits(tx, shop_id, items)


class SyncWork(RowWork[LeasedShop]):
    """Syncs the shops that need it. Between two polls, only shops that a notice named are looked at."""

    name = "levels"
    channels = (STOCK_CHANNEL, LEVELS_CHANNEL)
    max_concurrent = MAX_CONCURRENT_SHOPS
    collect_seconds = COLLECT_SECONDS

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database
        self._slots = Slots(SYNC_TRANSACTIONS, 1)  # transactions of one shop wait for each other anyway
        self._sizes = PushSizes()
        self._changed_shops: set[int] = set()
        self._resting: set[int] = set()

    def on_notice(self, payload: str) -> None:
        self._changed_shops.add(int(payload.partition(" ")[0]))

    def busy_keys(self, rows: Sequence[LeasedShop]) -> Sequence[int]:
        """The shops that are synced now, or have just been."""
        return [*{shop.shop_id for shop in rows} | self._resting]

    async def lease(self, limit: int, excluded: Sequence[int], *, scan_all: bool) -> list[LeasedShop]:
        shop_ids = None if scan_all else self._changed_shops.difference(excluded)
        if shop_ids is not None and not shop_ids:
            return []
        lease = partial(sql.lease_shops, limit=limit, shop_ids=shop_ids, excluded_shops=excluded)
        self._changed_shops -= shop_ids or set()  # a notice from here on adds its shop again
        try:
            shops = await self._database.transact(lease)
        except BaseException:
            self._changed_shops |= shop_ids or set()
            raise
        if len(shops) == limit:
            self._changed_shops |= shop_ids or set()  # more of them may be due
        return shops

    async def renew(self, row: LeasedShop) -> bool:
        return await self._steps(row).transact(partial(renew, shop=row))

    async def seconds_until_due(self, reader: Reader, excluded: Sequence[int]) -> float | None:
        return await sql.seconds_until_due(reader, excluded)

    async def handle(self, row: LeasedShop) -> int:
        has_pushed = False
        try:
            has_pushed = await sync_shop(self._steps(row), row, self._sizes)
        finally:
            if has_pushed:
                self._resting.add(row.shop_id)
                asyncio.get_running_loop().call_later(MIN_SYNC_INTERVAL_SECONDS, self._end_rest, row.shop_id)
            else:
                self._changed_shops.add(row.shop_id)  # a change during the sync may have come too late for it
        return 1

    def _end_rest(self, shop_id: int) -> None:
        self._resting.discard(shop_id)
        self._changed_shops.add(shop_id)
        self.wake.set()

    def _steps(self, shop: LeasedShop) -> Steps:
        return Steps(self._database, shop.shop_id, self._slots)
