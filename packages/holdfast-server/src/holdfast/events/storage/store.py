"""The interface of file stores: the local disk, or any S3-compatible store. Files are stored by name.

Uploads and photos have separate prefixes (`uploads/…`, `photos/…`). A presigned address never writes a photo.
"""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from holdfast.kit.contract.bounds import Bound
from holdfast.kit.contract.client import path_of, request_source, without_client
from holdfast.kit.operations.slots import Slots

MAX_CONCURRENT_FILES = 10
"""The most reads and writes of a store at the same time."""

MAX_CONCURRENT_FILES_OF_SOURCE = 8
"""The most of one address, and of background work."""

CHUNK_BYTES = 64 * 1024

FILES = Bound(
    name="Reads and writes of photos and uploads",
    service="events",
    total=f"{MAX_CONCURRENT_FILES}",
    tenant="the shares of its addresses",
    address=f"{MAX_CONCURRENT_FILES_OF_SOURCE}, in turns of 64 kB; as many for background work",
    reserved="-",
    stranger="Others wait one turn, some milliseconds.",
)


def file_slots() -> Slots:
    """The turns of a store."""
    return Slots(FILES, MAX_CONCURRENT_FILES, max_per_address=MAX_CONCURRENT_FILES_OF_SOURCE)


@contextlib.asynccontextmanager
async def file_turn(slots: Slots) -> AsyncGenerator[None]:
    """The turn of the request that this task answers. It is completed even when the client has gone."""
    with without_client():
        async with slots.slot_of(("files", *path_of(request_source()))):
            yield


CACHE_CONTROL = "public, max-age=31536000, immutable"
"""The Cache-Control header of photos: the photo of a key never changes."""


class OpenedFile(NamedTuple):
    """A file that is being read."""

    size: int
    chunks: AsyncIterator[bytes]

    async def read(self) -> bytes:
        """Read the whole file."""
        return b"".join([chunk async for chunk in self.chunks])


class Store(Protocol):
    """A store of files. A file is durable when `write` returns. Every method may raise `service_unavailable`."""

    async def upload_url(self, name: str, content_type: str, content_length: int, seconds: int) -> str:
        """An address that accepts one file of exactly this type and length by PUT, for this number of seconds."""
        ...

    def open(self, name: str) -> AbstractAsyncContextManager[OpenedFile | None]:
        """A file that is read in chunks; None when it does not exist."""
        ...

    async def write(self, name: str, content: bytes, content_type: str) -> None:
        """Store a file. It replaces a file of the same name."""
        ...

    async def delete(self, names: Sequence[str]) -> None:
        """Delete files. Files that do not exist are ignored."""
        ...


class MissingPackage(Exception):
    """A package that the settings need is not installed. The message says how to install it."""
