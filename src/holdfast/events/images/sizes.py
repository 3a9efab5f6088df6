"""Makes the smaller sizes of photos, one photo at a time in each process, and never while somebody waits for it.

The row of a photo says whether its sizes are still to be made, so there is no job that could be lost, and photos that
are older than this need nothing special. A process claims a photo for some minutes. If it is killed, another one claims
the photo afterwards, deletes what was left of its sizes, and makes them again.

No size is forgotten: a photo is claimed only if it cannot be deleted for a long time yet, and whatever sizes it may
have are deleted with it.
"""

import asyncio

import structlog

from holdfast.events.images import sandbox, sql
from holdfast.events.images.container import Unfit
from holdfast.events.images.model import SIZE_TYPE, size_name, size_names
from holdfast.events.resources import Database, Steps, Tx
from holdfast.kit import steps
from holdfast.kit.notifications import notified

CHANNEL = "photos_accepted"

PATROL_SECONDS = 10
"""Seconds between checks without a notification: for photos that were claimed in vain, or attached again."""

RETRY_SECONDS = 0.25
"""Seconds until photos are tried again that others have locked, as they do while an event begins to show them."""

log = structlog.get_logger()

find_sizes = sql.find_sizes


async def run(database: Database) -> None:
    """Make the sizes of accepted photos, until cancelled."""
    accepted = asyncio.Event()
    with database.listen(CHANNEL, lambda _: accepted.set()):
        while True:
            accepted.clear()
            await make_sizes(steps.Steps(database))
            are_locked = await database.read(sql.has_unscaled)
            await notified(accepted, RETRY_SECONDS if are_locked else PATROL_SECONDS)


async def accept(tx: Tx, keys: list[str]) -> None:
    """Mark photos as accepted, and have their sizes made."""
    await sql.accept(tx, keys)
    await tx.notify(CHANNEL)


async def make_sizes(steps: Steps) -> int:
    """Make the sizes of all photos that are due. Returns how many photos were handled."""
    handled = 0
    while claimed := await steps.transact(sql.claim_unscaled):
        await _make_sizes_of(steps, claimed)
        handled += 1
    return handled


async def _make_sizes_of(steps: Steps, claimed: sql.Unscaled) -> None:
    key, store = claimed.key, steps.resources.photos
    if claimed.again:
        await store.delete(size_names(key))
    async with store.open(key) as opened:
        content = await opened.read() if opened else None
    if content is None:
        log.error("the file of a photo is missing", key=key)
        return
    try:
        scaled = await sandbox.scale(content)
    except Unfit as reason:
        log.warning("a photo has no sizes", key=key, reason=str(reason))
        await steps.transact(lambda tx: sql.leave_unscaled(tx, key))
        return
    for width, file in scaled.files.items():
        await store.write(size_name(key, width), file, SIZE_TYPE)
    if not await steps.transact(lambda tx: sql.store_sizes(tx, key, scaled.width, scaled.height, [*scaled.files])):
        # The photo is being deleted, or has been.
        await store.delete(size_names(key))
