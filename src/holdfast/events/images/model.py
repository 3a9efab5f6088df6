"""Images: the files that events show as photos, and the uploads they begin as."""

import re
import secrets
from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct

from holdfast.events.images.scaling import SLOTS
from holdfast.events.settings import Settings
from holdfast.kit.said import said

ContentType = Literal["image/jpeg", "image/png", "image/webp", "image/gif"]

EXTENSIONS: dict[str, str] = {"image/jpeg": "jpg", "image/png": "png", "image/webp": "webp", "image/gif": "gif"}
SIZE_TYPE = "image/webp"
CONTENT_TYPES = {extension: content_type for content_type, extension in EXTENSIONS.items()}

LARGEST = 5_000_000
"""The most bytes in a photo."""

MOST = 50
"""The most photos of an event."""

MOST_IDLE = 200
"""The most photos and uploads of an organizer that no event shows."""

UPLOAD_SECONDS = 900
"""Seconds for which the address of an upload is valid."""

USUAL_WIDTH = 960
"""The width of the size that is shown where nothing else is chosen."""

_KEY = re.compile(r"photos/(?:[1-9][0-9]{0,18}|admin)/[A-Za-z0-9_-]{22}\.(jpg|png|webp|gif)")

_SIZE = re.compile(rf"(.+)\.w(?:{'|'.join(map(str, SLOTS))})\.webp")

Key = Annotated[str, Meta(min_length=1, max_length=300, description="Key of a photo, as `presign_upload` gave it.")]
Keys = Annotated[
    list[Key],
    Meta(
        max_length=MOST,
        description="Keys of uploads and photos, in order; the first is primary.",
        extra_json_schema={"uniqueItems": True},
    ),
]


class PhotoRow(Struct):
    """A photo as it is stored."""

    key: str
    organizer_id: int | None
    content_type: str
    content_length: int


class Sizes(Struct):
    """A photo's width and height as it is shown, and the widths of its sizes, ascending."""

    key: str
    width: int
    height: int
    widths: list[int]


class Picture(NamedTuple):
    """The attributes of an `img` element. Without sizes, `srcset` is empty, and width and height are unknown."""

    src: str
    srcset: str
    width: int | None
    height: int | None


def repeated(keys: Sequence[str]) -> str | None:
    """An error message if a key is given twice, else None."""
    for place, key in enumerate(keys):
        if key in keys[:place]:
            names = {"again": f"image_keys[{place}]", "first": f"image_keys[{keys.index(key)}]"}
            return said("%(again)s is the same as %(first)s", **names)
    return None


def new_key(organizer_id: int | None, content_type: str) -> str:
    """A random key of 128 bits, which cannot be guessed. None stands for an admin."""
    return f"photos/{organizer_id or 'admin'}/{secrets.token_urlsafe(16)}.{EXTENSIONS[content_type]}"


def upload_name(key: str) -> str:
    """The name of the upload for a key. Uploads are stored apart from photos, so that none is public unchecked."""
    return key.replace("photos/", "uploads/", 1)


def content_type_of(key: str) -> str | None:
    """The media type of the photo with a key; None if the text is not a key."""
    match = _KEY.fullmatch(key)
    return CONTENT_TYPES[match[1]] if match else None


def size_name(key: str, width: int) -> str:
    """The name of the size of a photo that has this width."""
    return f"{key}.w{min(slot for slot in SLOTS if slot >= width)}.webp"


def size_names(key: str) -> list[str]:
    """The names of all sizes that a photo may have."""
    return [size_name(key, slot) for slot in SLOTS]


def media_type(name: str) -> str | None:
    """The media type of a public file: of a photo or of one of its sizes; None if the text names neither."""
    if (size := _SIZE.fullmatch(name)) and content_type_of(size[1]):
        return SIZE_TYPE
    return content_type_of(name)


def sizes(key: str, found: Sizes | None, settings: Settings) -> Picture:
    """How a page shows a photo: in its sizes (`sizes.find_sizes`), or as the original while there are none."""
    if found is None:
        return Picture(urls([key], settings)[0], "", None, None)
    names = [size_name(key, width) for width in found.widths]
    addresses = dict(zip(found.widths, urls(names, settings), strict=True))
    usual = max((width for width in found.widths if width <= USUAL_WIDTH), default=found.widths[0])
    srcset = ", ".join(f"{address} {width}w" for width, address in addresses.items())
    return Picture(addresses[usual], srcset, found.width, found.height)


def urls(keys: Sequence[str], settings: Settings) -> list[str]:
    """The public addresses of photos, or of sizes by their names."""
    return [f"{settings.media_url}/{key}" for key in keys]
