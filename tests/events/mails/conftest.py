"""A mail server, the service that sends by it, and the process that writes mails."""

import asyncio
import threading
from collections.abc import Generator
from typing import Any

import pytest

from holdfast.events.mails.model import MailBatch
from holdfast.events.mails.writing import write
from holdfast.events.settings import Settings
from holdfast.kit.background.subprocess_call import SubprocessCall
from holdfast.kit.mail.rendering import ContentRenderer
from tests.events.mails.post import Post
from tests.helpers.events_service import Service
from tests.helpers.smtp import MailServer, mail_server


@pytest.fixture(scope="module")
def module_settings() -> dict[str, Any]:
    """Those of a mail server, at a port that the servers of all tests of a module have."""
    return MailServer().settings


@pytest.fixture
def settings(settings: Settings, module_settings: dict[str, Any]) -> Settings:
    """The same, in a service of the test's own."""
    return settings.model_copy(update=module_settings)


@pytest.fixture
def server(module_settings: dict[str, Any]) -> Generator[MailServer]:
    """A mail server that the service sends by."""
    with mail_server(port=module_settings["smtp_port"]) as server:
        yield server


@pytest.fixture(scope="session")
def writer() -> Generator[ContentRenderer[MailBatch]]:
    """The process that writes mails. It takes longer to start than most tests, so it serves them all."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    call = SubprocessCall(write)

    async def writer(batch: MailBatch) -> list[bytes]:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(batch), loop))

    yield writer
    asyncio.run_coroutine_threadsafe(call.__aexit__(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
async def post(service: Service, server: MailServer, writer: ContentRenderer[MailBatch]) -> Post:
    """The service, without background work, and the mails of its people."""
    return Post(service, server, await service.organizer(), writer)
