"""Images: the files that events show as photos, and the uploads they begin as."""

import re
import secrets
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.events.settings import Settings

ContentType = Literal["image/jpeg", "image/png", "image/webp", "image/gif"]

EXTENSIONS: dict[str, str] = {"image/jpeg": "jpg", "image/png": "png", "image/webp": "webp", "image/gif": "gif"}
CONTENT_TYPES = {extension: content_type for content_type, extension in EXTENSIONS.items()}

LARGEST = 5_000_000
"""The most bytes in a photo."""

MOST = 50
"""The most photos of an event."""

MOST_IDLE = 200
"""The most photos and uploads of an organizer that no event shows."""

UPLOAD_SECONDS = 900
"""Seconds for which the address of an upload is valid."""

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


class PhotoRow(Struct):
    """A photo as it is stored."""

    key: str
    organizer_id: int | None
    content_type: str
    content_length: int


def repeated(keys: Sequence[str]) -> str | None:
    """An error message if a key is given twice, else None."""
    again = [place for place, key in enumerate(keys) if key in keys[:place]]
    return f"image_keys[{again[0]}] is the same as image_keys[{keys.index(keys[again[0]])}]" if again else None


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


def urls(keys: Sequence[str], settings: Settings) -> list[str]:
    """The public addresses of photos."""
    return [f"{settings.media_url}/{key}" for key in keys]
