"""Attending to the levels of a shop: plan, push, read again, until everything there is as wanted.

One process at a time attends to a shop. It takes the shop by a lease, which it prolongs at each step; if it is killed,
the shop is due again when the lease ends, and a call whose outcome is not known is made again with the same key.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial

import structlog
from msgspec import Struct
from prometheus_client import Counter, Histogram

from holdfast.inventory.resources import Steps, Tx
from holdfast.inventory.shopify.platform import Unreachable
from holdfast.inventory.shops import status
from holdfast.inventory.stock import book
from holdfast.inventory.sync import edits, levels, numbers, platform, pushing, sql, writing
from holdfast.inventory.sync.model import Observed, Push, Unsettable
from holdfast.inventory.sync.numbers import Numbers, Rereading
from holdfast.inventory.sync.planning import plan
from holdfast.inventory.sync.platform import Accepted
from holdfast.inventory.sync.pushing import Sizes
from holdfast.kit.logs import first_line
from holdfast.kit.problems import Problem

KEY_SECONDS = 20 * 3600
"""How long the platform surely knows a key. An older call is not repeated; its levels are read instead."""

PAUSES = (1.0, 300.0)
"""Seconds until a shop is tried again after a failure, at first and at most; they double."""

PUSHES = Counter("holdfast_level_pushes", "Calls that set levels at the storefront platform.", ["how"])
LEVELS = Counter("holdfast_levels_pushed", "Levels set at the storefront platform.")
LAG = Histogram(
    "holdfast_sync_lag_seconds",
    "Seconds from a webhook to the level that it changes.",
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2, 5, 15, 60, 300),
)

log = structlog.get_logger()


class Reading(Struct, frozen=True):
    """Levels to be read. `judges`: what stays unexplained afterwards is an edit."""

    levels: list[tuple[str, str, str]]
    judges: bool


class Lost(Exception):
    """Another process attends to the shop now."""


async def attend(steps: Steps, shop_id: int, until: datetime, attempts: int, sizes: Sizes) -> bool:
    """Attend to a shop that was taken until then, for the so-manieth time without success. It does not raise.

    Returns whether its levels were set, or were to be set.
    """
    lease = _Lease(shop_id, until, sizes)
    first, longest = PAUSES
    error, pushed, pause = None, False, min(first * 2 ** min(attempts - 1, 20), longest)
    try:
        while work := await steps.transact(lease.next):
            match work:
                case Push():
                    pushed = True
                    await _push(steps, shop_id, work, sizes)
                case Reading():
                    await _read(steps, shop_id, work)
                case Rereading():
                    await writing.read(steps, shop_id, work)
                case _:
                    await writing.write(steps, shop_id, work)
    except Lost:
        return pushed
    except asyncio.CancelledError:
        await steps.transact(lease.hand_over)
        raise
    except Unreachable as unreachable:
        error, pause = str(unreachable), max(unreachable.retry_after or 0.0, pause)
        log.warning("the levels of a shop cannot be set yet", shop=shop_id, error=error)
    except Problem as problem:
        error = problem.message
        log.warning("the levels of a shop are not set", shop=shop_id, error=error)
    except Exception as fault:
        error = f"{type(fault).__name__}: {first_line(fault)}"
        log.error("the levels of a shop cannot be set", shop=shop_id, exc_info=fault)
    await steps.transact(partial(lease.end, error=error, pause=pause))
    return pushed


class _Lease:
    """A shop that this process attends to."""

    def __init__(self, shop_id: int, until: datetime, sizes: Sizes) -> None:
        self._shop_id = shop_id
        self._until = until
        self._sizes = sizes

    async def next(self, tx: Tx) -> Push | Reading | Rereading | list[Numbers] | None:
        """What is to be done next at the platform: levels first, then numbers. Raises `Lost`."""
        await plan(tx, self._shop_id)
        work = (
            await pushing.next_push(tx, self._shop_id, self._sizes.of(self._shop_id))
            or await self._reading(tx)
            or await numbers.next_writing(tx, self._shop_id)
        )
        # Last, because whoever changes levels and then has them attended to also locks the levels first.
        until = await sql.prolong(tx, self._shop_id, self._until)
        if until is None:
            raise Lost
        self._until = until
        return work

    async def _reading(self, tx: Tx) -> Reading | None:
        rows, judges = await sql.to_read(tx, self._shop_id, platform.READ_AT_ONCE), False
        if not rows:
            rows, judges = await sql.suspects(tx, self._shop_id, platform.READ_AT_ONCE), True
        return Reading(rows, judges) if rows else None

    async def hand_over(self, tx: Tx) -> None:
        """Let whoever is next go on at once."""
        await sql.hand_over(tx, self._shop_id, self._until)

    async def end(self, tx: Tx, *, error: str | None, pause: float) -> None:
        await status.announce(tx, self._shop_id)
        await sql.release(tx, self._shop_id, self._until, error, pause)


async def _push(steps: Steps, shop_id: int, push: Push, sizes: Sizes) -> None:
    """Make a call, and store what came of it."""
    if push.age > KEY_SECONDS:
        outcome: Accepted | list[Unsettable] = _again(push)
    elif push.levels:
        outcome = await platform.set_levels(steps, shop_id, push)
    else:
        outcome = []
    if isinstance(outcome, Accepted):
        PUSHES.labels("accepted").inc()
        sizes.accepted(shop_id)
        LEVELS.inc(len(push.levels))
        for seconds in await steps.transact(partial(pushing.accepted, shop_id=shop_id, push=push, at=outcome.at)):
            LAG.observe(seconds)
    else:
        PUSHES.labels("refused").inc()
        sizes.refused(shop_id, len(push.levels), len(outcome))
        await steps.transact(partial(pushing.refused, shop_id=shop_id, push=push, unsettable=outcome))


def _again(push: Push) -> list[Unsettable]:
    return [Unsettable(each.item_gid, each.location_gid, None) for each in push.levels]


async def _read(steps: Steps, shop_id: int, reading: Reading) -> None:
    """Ask what levels are, and store it."""
    found = await platform.read_levels(steps, shop_id, [gid for _, _, gid in reading.levels])
    await steps.transact(partial(_store, shop_id=shop_id, reading=reading, found=found))


async def _store(tx: Tx, *, shop_id: int, reading: Reading, found: Sequence[Observed]) -> None:
    if reading.judges:
        await book.lock(tx, shop_id)
    await levels.lock(tx, shop_id, {item for item, _, _ in reading.levels}, late=reading.judges)
    there = {(each.item_gid, each.location_gid) for each in found}
    await levels.forget(tx, shop_id, [each[:2] for each in reading.levels if each[:2] not in there])
    await levels.observe(tx, shop_id, found, fresh=True)
    if reading.judges:
        await edits.judge(tx, shop_id)
