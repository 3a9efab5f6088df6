"""Listeners for notifications of the database."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from holdfast.events.settings import Settings
from holdfast.kit.postgres.database import Database

NoticeQueue = asyncio.Queue[str]


@contextlib.asynccontextmanager
async def listen_on(settings: Settings, *channels: str) -> AsyncGenerator[list[NoticeQueue]]:
    """What one more process hears on some channels, once it has begun to listen."""
    database = Database(settings.database_url, settings, size=3, name="tests")
    heard: list[NoticeQueue] = [asyncio.Queue() for _ in channels]
    with contextlib.ExitStack() as stack:
        for channel, queue in zip(channels, heard, strict=True):
            stack.enter_context(database.listen(channel, queue.put_nowait))
        await database.open()
        try:
            assert [await next_notice(queue) for queue in heard] == [""] * len(channels)
            yield heard
        finally:
            await database.close()


async def next_notice(heard: NoticeQueue) -> str:
    async with asyncio.timeout(5):
        return await heard.get()
