"""A mail server, the service that sends by it, and the process that writes mails."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Generator

import pytest

from holdfast.events.mails.model import MailBatch
from holdfast.events.mails.writing import write
from holdfast.events.settings import Settings
from holdfast.kit.background.subprocess_call import SubprocessCall
from holdfast.kit.mail.rendering import ContentRenderer
from tests.events.mails.post import Post
from tests.smtp import Server, mail_server
from tests.support import running


@pytest.fixture
def server() -> Generator[Server]:
    """A mail server that the service sends by."""
    with mail_server() as server:
        yield server


@pytest.fixture(scope="session")
def writer() -> Generator[ContentRenderer[MailBatch]]:
    """The process that writes mails. It takes longer to start than most tests, so it serves them all."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    call = SubprocessCall(write)

    async def writer(portion: MailBatch) -> list[bytes]:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(portion), loop))

    yield writer
    asyncio.run_coroutine_threadsafe(call.__aexit__(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
async def post(settings: Settings, server: Server, writer: ContentRenderer[MailBatch]) -> AsyncGenerator[Post]:
    """The service, without background work, and the mails of its people."""
    async with running(settings.model_copy(update=server.settings)) as service:
        yield Post(service, server, await service.organizer(), writer)
