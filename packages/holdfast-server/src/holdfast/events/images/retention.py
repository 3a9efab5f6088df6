"""Deletes photos and uploads that no event has shown for a day. Within that day, a photo can be attached again.

It marks the row, then deletes the files, then deletes the row. When a process is killed in between, the next run
completes the work.
"""

from holdfast.events.images import sql
from holdfast.events.images.model import size_names, upload_name
from holdfast.events.resources import Steps

BATCH_SIZE = 100


async def clear_photos(steps: Steps) -> int:
    """Delete photos and uploads that are no longer needed. Returns the number of handled rows."""
    store = steps.resources.photos
    total = 0
    while keys := await steps.transact(lambda tx: sql.mark_idle(tx, BATCH_SIZE)):
        await store.delete([name for key in keys for name in (key, upload_name(key), *size_names(key))])
        await steps.transact(lambda tx, keys=keys: sql.delete_marked(tx, keys))
        total += len(keys)
    while keys := await steps.read(lambda tx: sql.find_ended_uploads(tx, BATCH_SIZE)):
        await store.delete([*map(upload_name, keys)])
        await steps.transact(lambda tx, keys=keys: sql.forget_uploads(tx, keys))
        total += len(keys)
    return total
