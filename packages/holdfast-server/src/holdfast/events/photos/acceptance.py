"""Makes a photo of a file: checks it, removes its metadata, stores it under its key, and accepts it.

The work on the file is done between transactions. The row is stored before the file. So a killed process leaves no
file without a row, and the file can be deleted later.
"""

from collections.abc import Mapping, Sequence

from holdfast.events.photos import sandbox, sizes, sql, unproved_quotas
from holdfast.events.photos.container import UnfitFile
from holdfast.events.photos.model import EXTENSIONS, MAX_PHOTO_BYTES, PhotoRow, new_key, upload_name
from holdfast.events.photos.sandbox import CheckedPhoto
from holdfast.events.problems import TOO_MANY_UPLOADS
from holdfast.events.resources import Reader, Steps, Tx
from holdfast.events.storage.store import Store
from holdfast.events.users.quotas import require_quota, share_of
from holdfast.kit.contract.bounds import bound_without_strangers
from holdfast.kit.contract.caller import Caller, Owner
from holdfast.kit.contract.client import without_client
from holdfast.kit.contract.messages import message, message_of
from holdfast.kit.contract.problems import invalid
from holdfast.kit.operations.slots import MAX_WAITING, Slots
from holdfast.kit.outbound.refusals import FetchRefusal

UNDECLARED = {"application/octet-stream", "binary/octet-stream"}

UPLOADS = bound_without_strangers(
    name="Requests that make a photo of one upload",
    service="events",
    total="none",
    tenant=f"1 for each upload; {MAX_WAITING} wait",
)

_uploads = Slots(UPLOADS, 1)
"""A lock for each upload: of several requests that attach it, one decodes it."""


async def find_uploads(steps: Steps, caller: Caller, keys: Sequence[str]) -> list[str]:
    """The keys that are uploads of the caller that are not photos yet, in their order."""
    if not keys:
        return []
    awaited_keys = await steps.read(lambda reader: sql.find_awaited(reader, keys, caller.tenant_id))
    return [key for key in keys if key in awaited_keys]


async def accept_uploads(steps: Steps, caller: Caller, uploads: Sequence[str], field: str = "image_keys") -> None:
    """Make photos of uploads of the caller, one at a time. The file of a refused one is deleted.

    Raises `validation_failed` on `field`, with a message for each upload that cannot be a photo; `rate_limited` when
    the files of the caller have taken too much time.
    """
    if not uploads:
        return
    owner = await share_of(steps, caller)
    refusals: list[str] = []
    for key in uploads:
        try:
            async with _uploads.slot_of((key,)):
                await _accept_upload(steps, owner, key)
        except UnfitFile as reason:
            refusals.append(message("%(key)s %(reason)s", key=key, reason=message_of(reason)))
    if refusals:
        raise invalid({field: refusals})


async def _accept_upload(steps: Steps, owner: Owner, key: str) -> None:
    """Make a photo of an upload, unless another request has done so meanwhile. Raises `UnfitFile`."""
    store = steps.resources.photos
    row = await steps.transact(lambda tx: sql.claim_awaited(tx, key))
    if row is None:
        return
    try:
        # The file is read when it is its turn: those that wait take no memory.
        async with sandbox.decoder_turn(owner):
            photo = await _read_upload(store, row, owner)
    except UnfitFile:
        with without_client():
            # Else it could be decoded again and again. The address of the upload takes another file while it is valid.
            await store.delete([upload_name(key)])
        raise
    with without_client():
        await store.write(key, photo.content, photo.content_type)
        await steps.transact(lambda tx: sizes.accept_photos(tx, [key]))


async def _read_upload(store: Store, row: PhotoRow, owner: Owner) -> CheckedPhoto:
    """The photo in an upload. Raises `UnfitFile`."""
    async with store.open(upload_name(row.key)) as upload:
        if upload is None:
            raise UnfitFile(message("has not been uploaded yet"))
        if upload.size != row.content_length:
            raise UnfitFile(
                message(
                    "was presigned for %(expected)s bytes and has %(size)s",
                    expected=row.content_length,
                    size=upload.size,
                )
            )
        content = await upload.read()
    return await sandbox.decode(content, owner, row.content_type)


async def download(steps: Steps, caller: Caller, organizer_id: int, url: str) -> str:
    """Download a public URL for a caller and store it as a photo of an organizer. Returns the key of the photo.

    Raises `validation_failed` on `url`, `rate_limited`, and `too_many_uploads`.
    """
    owner = await share_of(steps, caller)
    sandbox.require_time(owner)
    try:
        answer = await steps.resources.outbound.get(
            url, owner=owner, limit=MAX_PHOTO_BYTES, accept=", ".join(EXTENSIONS)
        )
        key = await store(steps, owner, organizer_id, answer.content, _declared_type(answer.content_type))
    except (FetchRefusal, UnfitFile) as reason:
        raise invalid({"url": [message_of(reason)]}) from reason
    await steps.transact(lambda tx: sizes.accept_photos(tx, [key]))
    return key


async def store(steps: Steps, owner: Owner, organizer_id: int, content: bytes, declared_type: str = "") -> str:
    """Store a file as a photo of an organizer that is not accepted yet. Returns the key of the photo.

    owner    the organizer or address whose turn it is to have a file decoded

    Raises `UnfitFile`, `rate_limited`, `quota_exceeded` and `too_many_uploads`.
    """
    photo = await sandbox.check(content, owner, declared_type)
    key = new_key(organizer_id, photo.content_type)
    row = PhotoRow(key, organizer_id, photo.content_type, len(content))
    await steps.transact(lambda tx: insert_awaited_photo(tx, row, upload=False))
    await steps.resources.photos.write(key, photo.content, photo.content_type)
    return key


def _declared_type(content_type: str) -> str:
    """The media type that a server declares for a file; empty when it declares none."""
    if content_type in UNDECLARED:
        return ""
    return "image/jpeg" if content_type == "image/jpg" else content_type


async def insert_awaited_photo(tx: Tx, row: PhotoRow, *, upload: bool) -> None:
    """Store the row of a photo whose file is not stored yet. Raises `quota_exceeded` and `too_many_uploads`."""
    networks = None
    if row.organizer_id is not None:
        await require_quota(
            tx, row.organizer_id, message("photos"), tx.resources.settings.photos_per_organizer, sql.COUNT
        )
        networks = await unproved_quotas.require_share(tx, row.organizer_id, row.content_length)
    if not await sql.insert_photo(tx, row, networks, upload=upload):
        raise TOO_MANY_UPLOADS()


async def foreign_key_errors(reader: Reader, caller: Caller, organizer_id: int, keys: Sequence[str]) -> list[str]:
    """The error messages for the keys that an organizer's event cannot show, even once all uploads are photos."""
    owners = await sql.find_owners(reader, keys) if keys else {}
    return _key_errors(caller, organizer_id, keys, owners)


async def unknown_key_errors(tx: Tx, caller: Caller, organizer_id: int, keys: Sequence[str]) -> list[str]:
    """The error messages for the keys that an organizer's event may not show. Locks the other photos until the commit.

    An event may show photos of its organizer. An admin may also attach photos of admins.
    """
    owners = await sql.lock_accepted(tx, keys) if keys else {}
    return _key_errors(caller, organizer_id, keys, owners)


def _key_errors(caller: Caller, organizer_id: int, keys: Sequence[str], owners: Mapping[str, int | None]) -> list[str]:
    allowed_owners = {organizer_id, None} if caller.is_admin else {organizer_id}
    return [
        message("no uploaded photo has the key %(key)s", key=key)
        for key in keys
        if key not in owners or owners[key] not in allowed_owners
    ]
