"""Photos of events, and the uploads they begin as."""

import re
import secrets
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.events.ids import EventId
from holdfast.events.settings import Settings
from holdfast.kit.command import Command, rule

ContentType = Literal["image/jpeg", "image/png", "image/webp", "image/gif"]

EXTENSIONS: dict[str, str] = {"image/jpeg": "jpg", "image/png": "png", "image/webp": "webp", "image/gif": "gif"}
CONTENT_TYPES = {extension: content_type for content_type, extension in EXTENSIONS.items()}

LARGEST = 5_000_000
"""Bytes a photo may have."""

MOST = 50
"""Photos an event may show."""

MOST_IDLE = 200
"""Photos and uploads an organizer may have that no event shows."""

UPLOAD_SECONDS = 900
"""How long the address of an upload is good."""

_KEY = re.compile(r"photos/(?:[1-9][0-9]{0,18}|admin)/[A-Za-z0-9_-]{22}\.(jpg|png|webp|gif)")

Key = Annotated[str, Meta(min_length=1, max_length=300, description="Key of a photo, as `presign_upload` gave it.")]
Keys = Annotated[
    list[Key],
    Meta(
        max_length=MOST,
        description="Keys of uploads and photos, in order; the first is primary.",
        extra_json_schema={"uniqueItems": True},
    ),
]


class AddPhoto(Command):
    event_id: EventId
    url: Annotated[
        Annotated[str, Meta(min_length=1, max_length=2_000)] | None,
        Meta(description="Publicly reachable http or https address on a default port; or else give `key`."),
    ] = None
    key: Annotated[Key | None, Meta(description="Key of an upload; or else give `url`.")] = None

    @rule("url", "key")
    def _exactly_one_source(self) -> str | None:
        return "give exactly one of url and key" if (self.url is None) == (self.key is None) else None


class SetPrimaryPhoto(Command):
    event_id: EventId
    key: Annotated[Key, Meta(description="One of the event's `image_keys`.")]


class RemovePhoto(Command):
    event_id: EventId
    key: Annotated[Key, Meta(description="One of the event's `image_keys`.")]


class PresignUpload(Command):
    content_type: Annotated[ContentType, Meta(description="Type of the file that will be uploaded.")]
    content_length: Annotated[int, Meta(ge=1, le=LARGEST, description="Bytes of the file; part of the signature.")]
    filename: Annotated[
        Annotated[str, Meta(max_length=300)] | None, Meta(description="For your own records: the key is random.")
    ] = None


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


class PhotoRow(Struct):
    """A photo as it is stored."""

    key: str
    organizer_id: int | None
    content_type: str
    content_length: int


class Shown(Struct):
    """An event as far as its photos go."""

    event_id: int
    organizer_id: int
    image_keys: list[str]


def repeated(keys: Sequence[str]) -> str | None:
    """What is wrong with keys that name a photo twice; None when none does."""
    return None if len(set(keys)) == len(keys) else "names a photo more than once"


def new_key(organizer_id: int | None, content_type: str) -> str:
    """A random key: 128 bits, so that nobody guesses one. None stands for an admin."""
    return f"photos/{organizer_id or 'admin'}/{secrets.token_urlsafe(16)}.{EXTENSIONS[content_type]}"


def upload_name(key: str) -> str:
    """Where the upload for a key goes: apart from the photos, so that nothing is public before it was looked at."""
    return key.replace("photos/", "uploads/", 1)


def content_type_of(key: str) -> str | None:
    """The type of the photo with a key; None for what is no key."""
    match = _KEY.fullmatch(key)
    return CONTENT_TYPES[match[1]] if match else None


def urls(keys: Sequence[str], settings: Settings) -> list[str]:
    """Where the public finds photos."""
    return [f"{settings.media_url}/{key}" for key in keys]


def present(event: Shown, settings: Settings) -> EventPhotos:
    image_urls = urls(event.image_keys, settings)
    return EventPhotos(event.event_id, event.image_keys, image_urls, image_urls[0] if image_urls else None)
