"""A mail server, a service that sends by it, and short pauses."""

from collections.abc import AsyncGenerator, Generator

import pytest

from holdfast.events.settings import Settings
from holdfast.kit.background.due_work import RetryBackoff
from holdfast.kit.mail import outbox, sender, transport
from tests.smtp import Server, mail_server
from tests.support import Service, running


@pytest.fixture
def server() -> Generator[Server]:
    """A mail server that the service sends by."""
    with mail_server() as server:
        yield server


@pytest.fixture
async def service(settings: Settings, server: Server) -> AsyncGenerator[Service]:
    """The service, without background work, which sends by the mail server."""
    async with running(settings.model_copy(update=server.settings)) as service:
        yield service


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for a mail server."""
    monkeypatch.setattr(sender, "RETRY_BACKOFF", RetryBackoff(0.1, 0.4))
    monkeypatch.setattr(outbox, "RETRY_BACKOFF", RetryBackoff(0.1, 0.4))
    for name in ("CONNECT_TIMEOUT_SECONDS", "COMMAND_TIMEOUT_SECONDS", "CONTENT_TIMEOUT_SECONDS"):
        monkeypatch.setattr(transport, name, 0.5)
