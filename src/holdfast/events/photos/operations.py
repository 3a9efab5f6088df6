"""What can be done with photos."""

import msgspec

from holdfast.events.photos import acceptance, sql, store
from holdfast.events.photos.model import (
    MOST,
    UPLOAD_SECONDS,
    AddedPhoto,
    AddPhoto,
    EventPhotos,
    PhotoRow,
    PresignUpload,
    RemovePhoto,
    SetPrimaryPhoto,
    Shown,
    Upload,
    new_key,
    present,
    upload_name,
    urls,
)
from holdfast.events.problems import TOO_MANY_PHOTOS
from holdfast.events.settings import Database, Tx
from holdfast.kit.operation import Caller
from holdfast.kit.problems import FORBIDDEN, NOT_FOUND, invalid


async def presign(database: Database, caller: Caller, command: PresignUpload) -> Upload:
    """Get an address to upload a photo to.

    PUT the file to `upload_url` with exactly this Content-Type and length, then attach `key` to an event: in
    `image_keys`, or with `add_event_photo`. What no event shows for a day is deleted.
    """
    key = new_key(caller.tenant_id, command.content_type)
    upload_url = await store.of(database.settings).upload_url(
        upload_name(key), command.content_type, command.content_length, UPLOAD_SECONDS
    )

    async def expect(tx: Tx) -> Upload:
        row = PhotoRow(key, caller.tenant_id, command.content_type, command.content_length)
        await acceptance.expect(tx, row, upload=True)
        return Upload(key, command.content_type, command.content_length, UPLOAD_SECONDS, upload_url)

    return await database.conclude(expect)


async def add(database: Database, caller: Caller, command: AddPhoto) -> AddedPhoto:
    """Add a photo to an event: from a public address, which the service downloads, or from an upload.

    At most 5 MB and 40 million pixels, as JPEG, PNG, WebP or GIF. What a camera noted in it, such as the place, is
    removed. The first photo of an event is primary.
    """
    event = _accessible(caller, command.event_id, await database.read(lambda tx: sql.find_shown(tx, command.event_id)))
    _has_room(event)
    if command.url is not None:
        key = await acceptance.download(database, event.organizer_id, command.url)
    else:
        key = str(command.key)
        await acceptance.accept(database, caller, [key], "key")

    async def append(tx: Tx) -> AddedPhoto:
        photos = await _append(tx, caller, command.event_id, key)
        return AddedPhoto(key=key, url=urls([key], tx.settings)[0], **msgspec.structs.asdict(photos))

    return await database.conclude(append)


async def set_primary(tx: Tx, caller: Caller, command: SetPrimaryPhoto) -> EventPhotos:
    """Make one of an event's photos its primary one: it moves to the front."""
    event = _accessible(caller, command.event_id, await sql.lock_shown(tx, command.event_id))
    if command.key not in event.image_keys:
        raise invalid({"key": ["is not one of the event's image_keys"]})
    return await _show(tx, event, [command.key, *_without(event, command.key)])


async def remove(tx: Tx, caller: Caller, command: RemovePhoto) -> EventPhotos:
    """Take a photo off an event.

    For a day it can be put back, in `image_keys` or with `add_event_photo`. Then it is deleted, unless another event
    shows it.
    """
    event = _accessible(caller, command.event_id, await sql.lock_shown(tx, command.event_id))
    if command.key not in event.image_keys:
        raise NOT_FOUND(f"Event {event.event_id} has no photo with the key {command.key}.")
    return await _show(tx, event, _without(event, command.key))


async def _append(tx: Tx, caller: Caller, event_id: int, key: str) -> EventPhotos:
    event = _accessible(caller, event_id, await sql.lock_shown(tx, event_id))
    if key in event.image_keys:
        return present(event, tx.settings)
    _has_room(event)
    if unknown := await acceptance.unknown(tx, caller, event.organizer_id, [key]):
        raise invalid({"key": unknown})
    return await _show(tx, event, [*event.image_keys, key])


async def _show(tx: Tx, event: Shown, keys: list[str]) -> EventPhotos:
    await sql.show(tx, event.event_id, keys)
    return present(msgspec.structs.replace(event, image_keys=keys), tx.settings)


def _accessible(caller: Caller, event_id: int, event: Shown | None) -> Shown:
    if event is None:
        raise NOT_FOUND(f"No event has the id {event_id}.")
    if not caller.may_access(event.organizer_id):
        raise FORBIDDEN(f"Event {event_id} belongs to another organizer.")
    return event


def _has_room(event: Shown) -> None:
    if len(event.image_keys) >= MOST:
        raise TOO_MANY_PHOTOS(f"Event {event.event_id} has {MOST} photos already.")


def _without(event: Shown, key: str) -> list[str]:
    return [each for each in event.image_keys if each != key]
