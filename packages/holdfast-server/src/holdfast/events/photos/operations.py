"""Photos that an organizer sends and sees in a form of the console, before an event shows them."""

from typing import LiteralString

from msgspec import Struct

from holdfast.events.organizers.branding import photo_origin
from holdfast.events.photos import acceptance
from holdfast.events.photos.container import UnfitFile
from holdfast.events.photos.model import ImageAttributes, content_type_of, image_attributes
from holdfast.events.photos.sizes import accept_photos, find_sizes
from holdfast.events.problems import QUOTA_EXCEEDED, TOO_MANY_UPLOADS
from holdfast.events.resources import Conclusion, Reader, Steps, Tx
from holdfast.events.users.quotas import share_of
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.messages import message_of
from holdfast.kit.contract.problems import RATE_LIMITED, VALIDATION_FAILED, invalid, refuses
from holdfast.kit.operations.operation import Operation, read, steps


class StorePhoto(Command):
    """Asks to store a file as a photo of the organizer."""

    content: bytes


class StoredPhoto(Struct):
    """A stored photo that no event shows yet."""

    key: str


class ReadPhotos(Command):
    """Asks for photos by their keys."""

    keys: list[str]


class PhotoList(Struct):
    """Photos with their keys. `images_from`: their origin; empty if it is that of the pages."""

    photos: list[tuple[str, ImageAttributes]]
    images_from: str


_OWN_PHOTOS: LiteralString = """
    select requested_photo.key
      from unnest(%(keys)s::text[]) as requested_photo (key)
     cross join lateral (select from photos where photos.key = requested_photo.key and organizer_id = %(organizer_id)s
                                              and state = 'accepted' limit 1) as accepted_photo
"""


@refuses(VALIDATION_FAILED, QUOTA_EXCEEDED, TOO_MANY_UPLOADS, RATE_LIMITED)
async def store_photo(steps: Steps, caller: Caller, command: StorePhoto) -> Conclusion[StoredPhoto]:
    """Store a file as a photo that an event can show. A photo that no event shows for a day is deleted."""
    try:
        owner = await share_of(steps, caller)
        key = await acceptance.store(steps, owner, caller.tenant, command.content)
    except UnfitFile as reason:
        raise invalid({"content": [message_of(reason)]}) from reason

    async def accept_photo(tx: Tx) -> StoredPhoto:
        await accept_photos(tx, [key])
        return StoredPhoto(key)

    return await steps.conclude(accept_photo)


async def read_photos(reader: Reader, caller: Caller, command: ReadPhotos) -> PhotoList:
    """Read photos in the order of the keys. Keys that are not of the organizer, or are not keys, are left out."""
    keys = [key for key in command.keys if content_type_of(key)]
    own_keys = {key for (key,) in await reader.tuples(_OWN_PHOTOS, {"keys": keys, "organizer_id": caller.tenant})}
    known_sizes = await find_sizes(reader, [*own_keys]) if own_keys else {}
    settings = reader.resources.settings
    photos = [(key, image_attributes(key, known_sizes.get(key), settings)) for key in keys if key in own_keys]
    return PhotoList(photos, photo_origin(settings))


STORE_PHOTO = Operation("keep_photo", None, steps(store_photo))
READ_PHOTOS = Operation("get_photos", None, read(read_photos))
OPERATIONS = (STORE_PHOTO, READ_PHOTOS)
"""Operations of the console alone: they have no routes of the API and no tools."""
