"""Where files are kept, by name: on the local disk, or in any S3-compatible store.

Uploads and photos lie apart (`uploads/…`, `photos/…`). A stranger can write an upload, never a photo.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from typing import NamedTuple, Protocol

from holdfast.events.settings import Settings

CHUNK = 64 * 1024

CACHED = "public, max-age=31536000, immutable"
"""How long a photo may be remembered: a key never means another one."""


class Opened(NamedTuple):
    """A file that is being read."""

    size: int
    chunks: AsyncIterator[bytes]

    async def read(self) -> bytes:
        """All of it."""
        return b"".join([chunk async for chunk in self.chunks])


class Store(Protocol):
    """What is written is there for good when the call returns. Raises `service_unavailable` when out of reach."""

    async def upload_url(self, name: str, content_type: str, content_length: int, seconds: int) -> str:
        """An address that takes, for so many seconds, one file of exactly this type and length by PUT."""
        ...

    def open(self, name: str) -> AbstractAsyncContextManager[Opened | None]:
        """A file, to be read in chunks; None when there is none."""
        ...

    async def write(self, name: str, content: bytes, content_type: str) -> None:
        """Keep a file, in place of one that has the name already."""
        ...

    async def delete(self, names: Sequence[str]) -> None:
        """Remove files; those that are not there are no fault."""
        ...


class NotInstalled(Exception):
    """What the settings ask for is not there; the message says how to get it."""


def of(settings: Settings) -> Store:
    """The store these settings want; no other is loaded. Raises `NotInstalled`."""
    if settings.s3_bucket:
        return _s3(
            settings.s3_bucket,
            settings.s3_endpoint_url,
            settings.s3_region,
            settings.s3_access_key_id,
            settings.s3_secret_access_key,
        )
    from holdfast.events.photos.disk import DiskStore

    return DiskStore(settings.data_dir / "media", settings.base_url, settings.secret.derive("uploads"))


@lru_cache(8)  # its client takes a tenth of a second to make
def _s3(*known_by: str) -> Store:
    try:
        from holdfast.events.photos.s3 import S3Store
    except ModuleNotFoundError as error:
        raise NotInstalled("S3_BUCKET is set, which takes boto3: pip install 'holdfast[s3]'") from error
    return S3Store(*known_by)
