"""The photos in a backup: those that the database names, read from the store and written back to it."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from itertools import islice
from typing import Any, LiteralString, TypeVar

import psycopg

from holdfast.events.photos.model import media_type, size_name
from holdfast.events.resources import photo_store
from holdfast.events.settings import Settings
from holdfast.kit.contract.problems import CannotStart, Problem
from holdfast.kit.security.service_secret import Secret

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_CONCURRENT_PHOTOS = 8
"""The most photos that are read or written at the same time. Each of them is in memory, and has at most 5 MB."""

NO_SECRET = Secret(b"")
"""The secret signs addresses of uploads alone, which are not asked for here."""

PHOTOS: LiteralString = """
    select key, widths, idle_since is null from photos where state = 'accepted' order by key
"""


def named_photos(connection: psycopg.Connection[Any]) -> dict[str, bool]:
    """The files that a database names (photos and their smaller sizes), and whether an event shows them.

    Those that no event shows may be deleted at any time.
    """
    return {
        name: is_public
        for key, widths, is_public in connection.execute(PHOTOS).fetchall()
        for name in (key, *(size_name(key, width) for width in widths))
    }


def is_photo(name: str) -> bool:
    """Whether a file of a backup is one that belongs into the store of photos."""
    return name.startswith("photos/") and media_type(name) is not None


def read_photos(settings: Settings, names: Iterable[str]) -> AsyncIterator[tuple[str, bytes | None]]:
    """Read files from the store, in their order; None for those that it does not have. Raises `CannotStart`."""
    store = photo_store(settings, NO_SECRET)

    async def read(name: str) -> tuple[str, bytes | None]:
        async with store.open(name) as file:
            return name, await file.read() if file else None

    return _results(read, names)


async def write_photos(settings: Settings, photos: Iterable[tuple[str, bytes]]) -> None:
    """Write files to the store. Raises `CannotStart`."""
    store = photo_store(settings, NO_SECRET)

    async def write(photo: tuple[str, bytes]) -> None:
        name, content = photo
        await store.write(name, content, media_type(name) or "")

    async for _ in _results(write, photos):
        pass


async def _results(work: Callable[[Item], Awaitable[Result]], items: Iterable[Item]) -> AsyncIterator[Result]:
    """The results of the work on each item, in their order, some at a time."""
    remaining = iter(items)
    limit = 1  # of the first one alone: if the store cannot be reached, that is told once
    tasks: deque[asyncio.Future[Result]] = deque()
    try:
        while True:
            tasks.extend(asyncio.ensure_future(work(item)) for item in islice(remaining, limit - len(tasks)))
            if not tasks:
                return
            yield await tasks.popleft()
            limit = MAX_CONCURRENT_PHOTOS
    except Problem as problem:
        raise CannotStart(f"{problem.message} Its settings are in docs/settings.md.") from problem
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
