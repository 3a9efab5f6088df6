"""The photos of events: commands, answers and operations."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from holdfast.events.events import operations as events
from holdfast.events.events.model import EventRow
from holdfast.events.paths import EventId
from holdfast.events.photos import acceptance
from holdfast.events.photos.model import (
    MAX_PHOTO_BYTES,
    MAX_PHOTOS,
    UPLOAD_LIFETIME_SECONDS,
    ContentType,
    Key,
    PhotoRow,
    new_key,
    upload_name,
    urls,
)
from holdfast.events.problems import QUOTA_EXCEEDED, TOO_MANY_PHOTOS, TOO_MANY_UPLOADS
from holdfast.events.resources import Conclusion, Reader, Steps, Tx
from holdfast.events.settings import Settings
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command, rule
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, RATE_LIMITED, VALIDATION_FAILED, invalid, refuses


class AddPhoto(Command):
    event_id: EventId
    url: Annotated[
        Annotated[str, Meta(min_length=1, max_length=2_000)] | None,
        Meta(description="Public http or https address on a default port; or else `key`."),
    ] = None
    key: Annotated[Key | None, Meta(description="Key of an upload; or else `url`.")] = None

    @rule("url", "key")
    def _exactly_one_source(self) -> str | None:
        return message("give exactly one of url and key") if (self.url is None) == (self.key is None) else None


class SetPrimaryPhoto(Command):
    event_id: EventId
    key: Annotated[Key, Meta(description="One of the event's `image_keys`.")]


class RemovePhoto(Command):
    event_id: EventId
    key: Annotated[Key, Meta(description="One of the event's `image_keys`.")]


class PresignUpload(Command):
    content_type: Annotated[ContentType, Meta(description="Type of the file.")]
    content_length: Annotated[int, Meta(ge=1, le=MAX_PHOTO_BYTES, description="Bytes of the file.")]
    filename: Annotated[Annotated[str, Meta(max_length=300)] | None, Meta(description="For your records.")] = None


class EventPhotos(Struct):
    """The photos of an event."""

    event_id: int
    image_keys: Annotated[list[str], Meta(description="In order; the first is primary.")]
    image_urls: list[str]
    primary_image_url: str | None


class AddedPhoto(Struct):
    """A photo that was added, and all the photos of its event."""

    key: str
    url: str | None
    event_id: int
    image_keys: Annotated[list[str], Meta(description="In order; the first is primary.")]
    image_urls: list[str]
    primary_image_url: str | None


class Upload(Struct):
    """Where to PUT a file, with exactly this type and length."""

    key: Annotated[str, Meta(description="What to name the photo by once it is uploaded.")]
    content_type: ContentType
    content_length: int
    expires_in: Annotated[int, Meta(description="Seconds for which the address is good.")]
    upload_url: str


def to_api(event: EventRow, settings: Settings) -> EventPhotos:
    image_urls = urls(event.image_keys, settings)
    return EventPhotos(event.id, event.image_keys, image_urls, image_urls[0] if image_urls else None)


@refuses(TOO_MANY_UPLOADS, QUOTA_EXCEEDED)
async def presign(steps: Steps, caller: Caller, command: PresignUpload) -> Conclusion[Upload]:
    """Get an address to upload a photo to.

    PUT the file to `upload_url` with exactly this Content-Type and length, then attach `key` to an event.
    What no event shows for a day is deleted.
    """
    key = new_key(caller.tenant_id, command.content_type)
    upload_url = await steps.resources.photos.upload_url(
        upload_name(key), command.content_type, command.content_length, UPLOAD_LIFETIME_SECONDS
    )

    async def expect(tx: Tx) -> Upload:
        row = PhotoRow(key, caller.tenant_id, command.content_type, command.content_length)
        await acceptance.insert_awaited_photo(tx, row, upload=True)
        return Upload(key, command.content_type, command.content_length, UPLOAD_LIFETIME_SECONDS, upload_url)

    return await steps.conclude(expect)


@refuses(NOT_FOUND, FORBIDDEN, VALIDATION_FAILED, TOO_MANY_PHOTOS, TOO_MANY_UPLOADS, QUOTA_EXCEEDED, RATE_LIMITED)
async def add(steps: Steps, caller: Caller, command: AddPhoto) -> Conclusion[AddedPhoto]:
    """Add a photo to an event, from a public address or an upload.

    At most 5 MB and 40 million pixels, as JPEG, PNG, WebP or GIF.
    """
    event = await steps.read(lambda reader: events.find(reader, caller, command.event_id))
    _require_photos_left(event)
    if command.url is not None:
        key = await acceptance.download(steps, caller, event.organizer_id, command.url)
    else:
        key = str(command.key)
        await steps.read(lambda reader: _require_key(reader, caller, event, key))
        await acceptance.accept_uploads(steps, caller, await acceptance.find_uploads(steps, caller, [key]), "key")

    async def append(tx: Tx) -> AddedPhoto:
        photos = await _append(tx, caller, command.event_id, key)
        return AddedPhoto(key=key, url=urls([key], tx.resources.settings)[0], **msgspec.structs.asdict(photos))

    return await steps.conclude(append)


@refuses(NOT_FOUND, FORBIDDEN, VALIDATION_FAILED)
async def set_primary(tx: Tx, caller: Caller, command: SetPrimaryPhoto) -> EventPhotos:
    """Make a photo of an event the primary one."""
    event = await events.lock(tx, caller, command.event_id)
    if command.key not in event.image_keys:
        raise invalid({"key": [message("is not one of the event's image_keys")]})
    return await _store_keys(tx, event, [command.key, *_keys_without(event, command.key)])


@refuses(NOT_FOUND, FORBIDDEN)
async def remove(tx: Tx, caller: Caller, command: RemovePhoto) -> EventPhotos:
    """Take a photo off an event.

    For a day you can add it again by its key.
    """
    event = await events.lock(tx, caller, command.event_id)
    if command.key not in event.image_keys:
        raise NOT_FOUND(f"Event {event.id} has no photo with the key {command.key}.")
    return await _store_keys(tx, event, _keys_without(event, command.key))


async def _append(tx: Tx, caller: Caller, event_id: int, key: str) -> EventPhotos:
    event = await events.lock(tx, caller, event_id)
    if key in event.image_keys:
        return to_api(event, tx.resources.settings)
    _require_photos_left(event)
    if unknown := await acceptance.unknown_key_errors(tx, caller, event.organizer_id, [key]):
        raise invalid({"key": unknown})
    return await _store_keys(tx, event, [*event.image_keys, key])


async def _store_keys(tx: Tx, event: EventRow, keys: list[str]) -> EventPhotos:
    await events.store_photos(tx, event, keys)
    return to_api(msgspec.structs.replace(event, image_keys=keys), tx.resources.settings)


async def _require_key(reader: Reader, caller: Caller, event: EventRow, key: str) -> None:
    """Raise `validation_failed` if an event cannot show a photo with this key."""
    if unknown := await acceptance.foreign_key_errors(reader, caller, event.organizer_id, [key]):
        raise invalid({"key": unknown})


def _require_photos_left(event: EventRow) -> None:
    if len(event.image_keys) >= MAX_PHOTOS:
        raise TOO_MANY_PHOTOS(message("Event %(id)s has %(most)s photos already.", id=event.id, most=MAX_PHOTOS))


def _keys_without(event: EventRow, key: str) -> list[str]:
    return [image_key for image_key in event.image_keys if image_key != key]
