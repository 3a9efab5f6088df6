"""How a file becomes a photo: it is looked at, cleaned, kept under its key, and then accepted.

All of that happens between transactions. Its row is stored before the file is, so nothing that is killed on the way
leaves a file behind that nobody knows of.
"""

from collections.abc import Sequence

from holdfast.events.outbound import Refused
from holdfast.events.photos import sandbox, sql, store
from holdfast.events.photos.container import Unfit
from holdfast.events.photos.model import EXTENSIONS, LARGEST, PhotoRow, new_key, upload_name
from holdfast.events.photos.sandbox import Photo
from holdfast.events.problems import TOO_MANY_UPLOADS
from holdfast.events.settings import Database, Tx
from holdfast.kit.operation import Caller
from holdfast.kit.problems import invalid

UNDECLARED = {"application/octet-stream", "binary/octet-stream"}


async def accept(database: Database, caller: Caller, keys: Sequence[str], field: str = "image_keys") -> None:
    """Make photos of those of the keys that are uploads of the caller; all others are left alone.

    Raises `validation_failed` on the field that names the keys, with a message for each upload that can be no photo.
    """
    if not keys:
        return
    kept_in = store.of(database.settings)
    taken: list[str] = []
    refused: list[str] = []
    for row in await database.transact(lambda tx: sql.claim_awaited(tx, keys, caller.tenant_id)):
        try:
            photo = await _uploaded(kept_in, row)
        except Unfit as reason:
            refused.append(f"{row.key} {reason}")
        else:
            await kept_in.write(row.key, photo.content, photo.content_type)
            taken.append(row.key)
    if taken:
        await database.transact(lambda tx: sql.accept(tx, taken))
    if refused:
        raise invalid({field: refused})


async def _uploaded(kept_in: store.Store, row: PhotoRow) -> Photo:
    """The photo in an upload. Raises `Unfit`."""
    async with kept_in.open(upload_name(row.key)) as upload:
        if upload is None:
            raise Unfit("has not been uploaded yet")
        if upload.size != row.content_length:
            raise Unfit(f"was presigned for {row.content_length} bytes and has {upload.size}")
        content = await upload.read()
    return await sandbox.look_at(content, row.content_type)


async def download(database: Database, organizer_id: int, url: str) -> str:
    """Make a photo of an organizer from what a public address leads to; its key.

    Raises `validation_failed` on `url`, and `too_many_uploads`.
    """
    try:
        fetched = await database.settings.outbound.get(url, limit=LARGEST, accept=", ".join(EXTENSIONS))
        photo = await sandbox.look_at(fetched.content, _declared(fetched.content_type))
    except (Refused, Unfit) as reason:
        raise invalid({"url": [str(reason)]}) from reason
    key = new_key(organizer_id, photo.content_type)
    row = PhotoRow(key, organizer_id, photo.content_type, len(fetched.content))
    await database.transact(lambda tx: expect(tx, row, upload=False))
    await store.of(database.settings).write(key, photo.content, photo.content_type)
    await database.transact(lambda tx: sql.accept(tx, [key]))
    return key


def _declared(content_type: str) -> str:
    """What a server says a file is; empty when it does not say."""
    if content_type in UNDECLARED:
        return ""
    return "image/jpeg" if content_type == "image/jpg" else content_type


async def expect(tx: Tx, row: PhotoRow, *, upload: bool) -> None:
    """Store that a photo is to come. Raises `too_many_uploads`."""
    if not await sql.insert_photo(tx, row, upload=upload):
        raise TOO_MANY_UPLOADS()


async def unknown(tx: Tx, caller: Caller, organizer_id: int, keys: Sequence[str]) -> list[str]:
    """A message for each key that is not of a photo which an organizer's event may show. The others stay until commit.

    An event shows photos of its organizer, and those of admins that an admin attaches.
    """
    owners = await sql.lock_accepted(tx, keys) if keys else {}
    allowed = {organizer_id, None} if caller.is_admin else {organizer_id}
    return [f"no uploaded photo has the key {key}" for key in keys if key not in owners or owners[key] not in allowed]
