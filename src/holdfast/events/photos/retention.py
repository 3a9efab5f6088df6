"""How long files are kept that no event shows: a day. So a photo can be put back, and an upload wait for its event.

A row is doomed first, then its files are deleted, then the row: whoever is killed in between, the next run goes on.
"""

from holdfast.events.photos import sql, store
from holdfast.events.photos.model import upload_name
from holdfast.events.settings import Database

BATCH = 100


async def clear_photos(database: Database) -> int:
    """Delete photos and uploads nobody needs any more; how many rows were dealt with."""
    kept_in = store.of(database.settings)
    total = 0
    while keys := await database.transact(lambda tx: sql.doom_idle(tx, BATCH)):
        await kept_in.delete([*keys, *map(upload_name, keys)])
        await database.transact(lambda tx, keys=keys: sql.delete_doomed(tx, keys))
        total += len(keys)
    while keys := await database.read(lambda tx: sql.find_ended_uploads(tx, BATCH)):
        await kept_in.delete([*map(upload_name, keys)])
        await database.transact(lambda tx, keys=keys: sql.forget_uploads(tx, keys))
        total += len(keys)
    return total
