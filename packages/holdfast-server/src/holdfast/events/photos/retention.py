"""Deletes photos and uploads that no event has shown for a day. Within that day, a photo can be attached again.

The row is marked, then the files are deleted, then the row. When a process is killed in between, the next run completes
the work.
"""

from holdfast.events.photos import sql
from holdfast.events.photos.model import size_names, upload_name
from holdfast.events.resources import Steps

DELETE_BATCH_SIZE = 100
"""Rows that one statement deletes."""


async def clear_photos(steps: Steps) -> int:
    """Delete photos and uploads that are no longer needed. Returns the number of handled rows."""
    store = steps.resources.photos
    total = 0
    while keys := await steps.transact(lambda tx: sql.mark_idle(tx, DELETE_BATCH_SIZE)):
        await store.delete([name for key in keys for name in (key, upload_name(key), *size_names(key))])
        await steps.transact(lambda tx, keys=keys: sql.delete_marked(tx, keys))
        total += len(keys)
    while keys := await steps.read(lambda tx: sql.find_ended_uploads(tx, DELETE_BATCH_SIZE)):
        await store.delete([*map(upload_name, keys)])
        await steps.transact(lambda tx, keys=keys: sql.forget_uploads(tx, keys))
        total += len(keys)
    return total
