"""Makes the smaller sizes of photos, one at a time in each process, in turns of organizers.

The row of a photo says whether its sizes are still to be made, so there is no job that could be lost, and older photos
need no special handling. If a process is killed or stalls, another process claims the photo
(`kit/background/row_work.py`), deletes the sizes that were left, and makes them again. No size file remains after its
photo: a photo is claimed only if it cannot be deleted for a long time, and all possible sizes of a photo are deleted
with it.
"""

from collections.abc import Collection, Sequence

import structlog

from holdfast.events.photos import sandbox, sql
from holdfast.events.photos.container import UnfitFile
from holdfast.events.photos.model import (
    SIZE_TYPE,
    PhotoSizes,
    size_name,
    size_names,
)
from holdfast.events.resources import Database, Reader, Steps, Tx
from holdfast.kit.background.leases import LeasedRow
from holdfast.kit.background.row_work import TableWork

CHANNEL = "photos_accepted"

log = structlog.get_logger()


async def find_sizes(reader: Reader, keys: Collection[str]) -> dict[str, PhotoSizes]:
    """The sizes of the photos that have sizes, by key."""
    rows = await reader.rows(
        PhotoSizes,
        "select key, width, height, widths from photos where key = any(%(keys)s) and cardinality(widths) > 0",
        {"keys": list(keys)},
    )
    return {row.key: row for row in rows}


async def accept_photos(tx: Tx, keys: list[str]) -> None:
    """Mark photos as accepted, and have their sizes made."""
    await sql.mark_accepted(tx, keys)
    await tx.notify(CHANNEL)


class SizesWork(TableWork):
    """Makes the sizes of the photos that have none."""

    name = "photo sizes"
    channels = (CHANNEL,)
    max_concurrent = 1

    def __init__(self, database: Database) -> None:
        super().__init__(database, sql.UNSCALED)
        self._previous = -1
        """The organizer that had the last turn."""

    async def lease(self, limit: int, excluded: Sequence[str], *, scan_all: bool) -> Sequence[LeasedRow]:
        """Lease a photo of the organizer with the next id, or else of the first one."""

        async def lease(tx: Tx) -> list[LeasedRow]:
            rows = await self.table.lease_due(tx, 1, after_owner=self._previous)
            return rows if rows or self._previous < 0 else await self.table.lease_due(tx, 1, after_owner=-1)

        photos = await self.database.transact(lease)
        if photos:
            self._previous = photos[0].owner
        return photos

    async def handle(self, row: LeasedRow) -> int:
        await _make_sizes_of(Steps(self.database), row)
        return 1


async def _make_sizes_of(steps: Steps, row: LeasedRow) -> None:
    key, store = row.key, steps.resources.photos
    if row.attempts > 1:
        await store.delete(size_names(key))  # those that an earlier lease may have left
    async with store.open(key) as photo_file:
        content = await photo_file.read() if photo_file else None
    if content is None:
        log.error("the file of a photo is missing", key=key)
        return
    try:
        scaled_photo = await sandbox.scale(content)
    except UnfitFile as reason:
        log.warning("a photo has no sizes", key=key, reason=str(reason))
        await steps.transact(lambda tx: sql.leave_unscaled(tx, key))
        return
    for width, file in scaled_photo.files.items():
        await store.write(size_name(key, width), file, SIZE_TYPE)
    if not await steps.transact(
        lambda tx: sql.store_sizes(tx, row, scaled_photo.width, scaled_photo.height, [*scaled_photo.files])
    ):
        # The photo is being deleted, or has been.
        await store.delete(size_names(key))
