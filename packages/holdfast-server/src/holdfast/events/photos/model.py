"""Images: the files that events show as photos, and their uploads."""

import re
import secrets
from collections.abc import Sequence
from typing import Annotated, Any, Literal, LiteralString, NamedTuple

import msgspec
from msgspec import Meta, Struct

from holdfast.events.photos.scaling import SIZE_WIDTHS
from holdfast.events.settings import Settings
from holdfast.kit.contract.messages import message

ContentType = Literal["image/jpeg", "image/png", "image/webp", "image/gif"]

EXTENSIONS: dict[str, str] = {"image/jpeg": "jpg", "image/png": "png", "image/webp": "webp", "image/gif": "gif"}
SIZE_TYPE = "image/webp"
CONTENT_TYPES = {extension: content_type for content_type, extension in EXTENSIONS.items()}

MAX_PHOTO_BYTES = 5_000_000
"""The most bytes in a photo."""

MAX_PHOTOS = 50
"""The most photos of an event."""

MAX_IDLE_PHOTOS = 200
"""The most photos and uploads of an organizer that are not shown by an event."""

UPLOAD_LIFETIME_SECONDS = 900
"""Seconds for which the address of an upload is valid."""

DEFAULT_WIDTH = 960
"""The width of the size that browsers without `srcset` show."""

_KEY = re.compile(r"photos/(?:[1-9][0-9]{0,18}|admin)/[A-Za-z0-9_-]{22}\.(jpg|png|webp|gif)")

_SIZE = re.compile(rf"(.+)\.w(?:{'|'.join(map(str, SIZE_WIDTHS))})\.webp")

Key = Annotated[str, Meta(min_length=1, max_length=300, description="Key of a photo, as `presign_upload` gave it.")]
Keys = Annotated[
    list[Key],
    Meta(
        max_length=MAX_PHOTOS,
        description="Photos, each once; the first is primary.",
        extra_json_schema={"uniqueItems": True},
    ),
]


class PhotoRow(Struct):
    """A photo as it is stored."""

    key: str
    organizer_id: int | None
    content_type: str
    content_length: int


class PhotoSizes(Struct):
    """The displayed width and height of a photo, and the widths of its sizes, ascending."""

    key: str
    width: int
    height: int
    widths: list[int]


PHOTO_SIZES: LiteralString = """
    (select jsonb_build_object('key', key, 'width', width, 'height', height, 'widths', widths)
       from photos where key = events.image_keys[1] and cardinality(widths) > 0)"""
"""SQL for the sizes of the first photo of an event, as `read_sizes` reads them; null: it has none."""


def read_sizes(stored_sizes: Any) -> PhotoSizes | None:
    """What `PHOTO_SIZES` has given."""
    return None if stored_sizes is None else msgspec.convert(stored_sizes, PhotoSizes)


class ImageAttributes(NamedTuple):
    """The attributes of an `img` element. Without sizes, `srcset` is empty, and width and height are unknown."""

    src: str
    srcset: str
    width: int | None
    height: int | None


def repeated_key_error(keys: Sequence[str]) -> str | None:
    """The error message for a key that is given twice; None if there is none."""
    for index, key in enumerate(keys):
        if key in keys[:index]:
            names = {"again": f"image_keys[{index}]", "first": f"image_keys[{keys.index(key)}]"}
            return message("%(again)s is the same as %(first)s", **names)
    return None


def new_key(organizer_id: int | None, content_type: str) -> str:
    """A random key of 128 bits, which cannot be guessed. `organizer_id` None stands for an admin."""
    return f"photos/{organizer_id or 'admin'}/{secrets.token_urlsafe(16)}.{EXTENSIONS[content_type]}"


def upload_name(key: str) -> str:
    """The name of the upload for a key. Uploads are stored apart from photos, so that no unchecked file is public."""
    return key.replace("photos/", "uploads/", 1)


def content_type_of(key: str) -> str | None:
    """The media type of the photo with a key; None if the text is not a key."""
    match = _KEY.fullmatch(key)
    return CONTENT_TYPES[match[1]] if match else None


def size_name(key: str, width: int) -> str:
    """The name of the size of a photo that has this width."""
    return f"{key}.w{min(slot for slot in SIZE_WIDTHS if slot >= width)}.webp"


def size_names(key: str) -> list[str]:
    """The names of all sizes that a photo may have."""
    return [size_name(key, slot) for slot in SIZE_WIDTHS]


def media_type(name: str) -> str | None:
    """The media type of a public file: of a photo or of one of its sizes; None if the text names neither."""
    if (size := _SIZE.fullmatch(name)) and content_type_of(size[1]):
        return SIZE_TYPE
    return content_type_of(name)


def image_attributes(key: str, sizes: PhotoSizes | None, settings: Settings) -> ImageAttributes:
    """The `img` attributes of a photo: with its sizes (`sizes.find_sizes`), or of the original while it has none."""
    if sizes is None:
        return ImageAttributes(urls([key], settings)[0], "", None, None)
    names = [size_name(key, width) for width in sizes.widths]
    addresses = dict(zip(sizes.widths, urls(names, settings), strict=True))
    usual = max((width for width in sizes.widths if width <= DEFAULT_WIDTH), default=sizes.widths[0])
    srcset = ", ".join(f"{address} {width}w" for width, address in addresses.items())
    return ImageAttributes(addresses[usual], srcset, sizes.width, sizes.height)


def urls(keys: Sequence[str], settings: Settings) -> list[str]:
    """The public addresses of photos, or of sizes by their names."""
    return [f"{settings.media_url}/{key}" for key in keys]
