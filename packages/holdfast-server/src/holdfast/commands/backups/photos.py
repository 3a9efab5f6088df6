"""The photos in a backup: those that the database names, read from the store and written back to it."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, LiteralString, NamedTuple

import psycopg

from holdfast.events.photos.model import media_type, size_name
from holdfast.events.settings import Settings
from holdfast.events.storage.store import Store
from holdfast.kit.contract.problems import CannotStart, Problem

MAX_CONCURRENT_PHOTOS = 8
"""The most photos that are read or written at the same time. Each of them is in memory, and has at most 5 MB."""

FOLDER = "photos/"
"""Names of photos begin with this, in the store and in the backup."""

PHOTOS: LiteralString = """
    select key, widths, idle_since is null from photos where state = 'accepted' order by key
"""


class NamedPhoto(NamedTuple):
    """A file that the database names: a photo, or one of its smaller sizes.

    is_shown    whether an event shows it. Others may be deleted at any time.
    """

    name: str
    is_shown: bool


def named_photos(connection: psycopg.Connection[Any]) -> list[NamedPhoto]:
    """All files of photos that a database names."""
    return [
        NamedPhoto(name, is_shown)
        for key, widths, is_shown in connection.execute(PHOTOS).fetchall()
        for name in (key, *(size_name(key, width) for width in widths))
    ]


async def read_photos(store: Store, names: Sequence[str]) -> AsyncIterator[tuple[str, bytes | None]]:
    """Read files from the store, some at a time, in their order; None for those that it does not have."""
    remaining = iter(names)
    limit = 1  # of the first one alone: if the store cannot be reached, that is told once
    reading: deque[tuple[str, asyncio.Task[bytes | None]]] = deque()
    try:
        while True:
            for name in remaining:
                reading.append((name, asyncio.create_task(_content(store, name))))
                if len(reading) >= limit:
                    break
            if not reading:
                return
            name, task = reading.popleft()
            yield name, await task
            limit = MAX_CONCURRENT_PHOTOS
    except Problem as problem:
        raise CannotStart(f"{problem.message} Its settings are in docs/settings.md.") from problem
    finally:
        for _, task in reading:
            task.cancel()


async def write_photos(store: Store, photos: Iterable[tuple[str, bytes]]) -> None:
    """Write files to the store, some at a time. Raises `CannotStart`."""
    remaining: Iterator[tuple[str, bytes]] = iter(photos)

    async def work() -> None:
        for name, content in remaining:
            await store.write(name, content, media_type(name) or "")

    try:
        # The first one alone: if the store cannot be reached, that is told once.
        for name, content in islice(remaining, 1):
            await store.write(name, content, media_type(name) or "")
        async with asyncio.TaskGroup() as group:
            for _ in range(MAX_CONCURRENT_PHOTOS):
                group.create_task(work())
    except* Problem as problems:
        problem = problems.exceptions[0]
        raise CannotStart(f"{getattr(problem, 'message', problem)} Its settings are in docs/settings.md.") from problem


def is_photo(name: str) -> bool:
    """Whether a file of a backup is one that belongs into the store of photos."""
    return name.startswith(FOLDER) and media_type(name) is not None


async def _content(store: Store, name: str) -> bytes | None:
    async with store.open(name) as file:
        return await file.read() if file else None


def place_text(settings: Settings) -> str:
    """The place of the photos, in words."""
    if settings.s3_bucket:
        return f"the bucket {settings.s3_bucket}"
    return f"the directory {(settings.data_dir / 'media').resolve()}"
