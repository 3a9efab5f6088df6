"""A mail server, and the service that sends by it."""

from collections.abc import AsyncGenerator, Generator

import pytest

from holdfast.events.settings import Settings
from tests.events.mails.post import Post
from tests.smtp import Server, mail_server
from tests.support import running


@pytest.fixture
def server() -> Generator[Server]:
    """A mail server that the service sends by."""
    with mail_server() as server:
        yield server


@pytest.fixture
async def post(settings: Settings, server: Server) -> AsyncGenerator[Post]:
    """The service, without background work, and the mails of its people."""
    async with running(settings.model_copy(update=server.settings)) as service:
        yield Post(service, server, await service.organizer())
