"""Makes a photo of a file: checks it, removes its metadata, stores it under its key, and accepts it.

The work on the file is done between transactions. The row is stored before the file. So a killed process leaves no
file without a row, and the file can be deleted later.
"""

from collections.abc import Sequence

from holdfast.events.images import sandbox, sizes, sql, stranger_shares
from holdfast.events.images.container import UnfitFile
from holdfast.events.images.model import EXTENSIONS, MAX_PHOTO_BYTES, PhotoRow, new_key, upload_name
from holdfast.events.images.sandbox import CheckedPhoto
from holdfast.events.problems import TOO_MANY_UPLOADS
from holdfast.events.quotas import require_room
from holdfast.events.resources import Steps, Tx
from holdfast.events.storage.store import Store
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.messages import message, message_of
from holdfast.kit.contract.problems import invalid
from holdfast.kit.security.outbound_requests import FetchRefusal

UNDECLARED = {"application/octet-stream", "binary/octet-stream"}


async def accept(steps: Steps, caller: Caller, keys: Sequence[str], field: str = "image_keys") -> None:
    """Make photos of the keys that are uploads of the caller. Other keys are ignored.

    Raises `validation_failed` on `field`, with a message for each upload that cannot be a photo.
    """
    if not keys:
        return
    store = steps.resources.photos
    accepted: list[str] = []
    refused: list[str] = []
    for row in await steps.transact(lambda tx: sql.claim_awaited(tx, keys, caller.tenant_id)):
        try:
            photo = await _read_upload(store, row)
        except UnfitFile as reason:
            refused.append(message("%(key)s %(reason)s", key=row.key, reason=message_of(reason)))
        else:
            await store.write(row.key, photo.content, photo.content_type)
            accepted.append(row.key)
    if accepted:
        await steps.transact(lambda tx: sizes.accept(tx, accepted))
    if refused:
        raise invalid({field: refused})


async def _read_upload(store: Store, row: PhotoRow) -> CheckedPhoto:
    """The photo in an upload. Raises `UnfitFile`. A file that is no photo is deleted; another one may be uploaded."""
    async with store.open(upload_name(row.key)) as upload:
        if upload is None:
            raise UnfitFile(message("has not been uploaded yet"))
        if upload.size != row.content_length:
            raise UnfitFile(
                message(
                    "was presigned for %(wanted)s bytes and has %(size)s", wanted=row.content_length, size=upload.size
                )
            )
        content = await upload.read()
    try:
        return await sandbox.check(content, row.content_type)
    except UnfitFile:
        await store.delete([upload_name(row.key)])
        raise


async def download(steps: Steps, organizer_id: int, url: str) -> str:
    """Download a public URL and store it as a photo of an organizer. Returns the key of the photo.

    Raises `validation_failed` on `url`, and `too_many_uploads`.
    """
    try:
        fetched = await steps.resources.outbound.get(
            url, tenant=organizer_id, limit=MAX_PHOTO_BYTES, accept=", ".join(EXTENSIONS)
        )
        key = await store(steps, organizer_id, fetched.content, _declared_type(fetched.content_type))
    except (FetchRefusal, UnfitFile) as reason:
        raise invalid({"url": [message_of(reason)]}) from reason
    await steps.transact(lambda tx: sizes.accept(tx, [key]))
    return key


async def store(steps: Steps, organizer_id: int, content: bytes, declared: str = "") -> str:
    """Store a file as a photo of an organizer that is not accepted yet. Returns the key of the photo.

    Raises `UnfitFile`, `quota_exceeded` and `too_many_uploads`.
    """
    photo = await sandbox.check(content, declared)
    key = new_key(organizer_id, photo.content_type)
    row = PhotoRow(key, organizer_id, photo.content_type, len(content))
    await steps.transact(lambda tx: expect(tx, row, upload=False))
    await steps.resources.photos.write(key, photo.content, photo.content_type)
    return key


def _declared_type(content_type: str) -> str:
    """The media type that a server declares for a file; empty when it declares none."""
    if content_type in UNDECLARED:
        return ""
    return "image/jpeg" if content_type == "image/jpg" else content_type


async def expect(tx: Tx, row: PhotoRow, *, upload: bool) -> None:
    """Store the row of a photo whose file is not stored yet. Raises `quota_exceeded` and `too_many_uploads`."""
    networks = None
    if row.organizer_id is not None:
        await require_room(
            tx, row.organizer_id, message("photos"), tx.resources.settings.photos_per_organizer, sql.COUNT
        )
        networks = await stranger_shares.require_share(tx, row.organizer_id, row.content_length)
    if not await sql.insert_photo(tx, row, networks, upload=upload):
        raise TOO_MANY_UPLOADS()


async def unknown_key_errors(tx: Tx, caller: Caller, organizer_id: int, keys: Sequence[str]) -> list[str]:
    """The error messages for the keys that an organizer's event may not show. Locks the other photos until the commit.

    An event may show photos of its organizer. An admin may also attach photos of admins.
    """
    owners = await sql.lock_accepted(tx, keys) if keys else {}
    allowed = {organizer_id, None} if caller.is_admin else {organizer_id}
    return [
        message("no uploaded photo has the key %(key)s", key=key)
        for key in keys
        if key not in owners or owners[key] not in allowed
    ]
