"""Photos of events: commands and answers."""

from typing import Annotated

from msgspec import Meta, Struct

from holdfast.events.events.model import EventRow
from holdfast.events.images.model import MAX_PHOTO_BYTES, ContentType, Key, urls
from holdfast.events.paths import EventId
from holdfast.events.settings import Settings
from holdfast.kit.contract.command import Command, rule
from holdfast.kit.contract.messages import message


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
    filename: Annotated[Annotated[str, Meta(max_length=300)] | None, Meta(description="For your own records.")] = None


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
