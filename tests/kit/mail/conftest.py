"""A mail server, a service that sends by it, and short pauses."""

import ssl
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from holdfast.events.settings import Settings
from holdfast.kit.background.row_work import RetryBackoff
from holdfast.kit.mail import attempts, outbox, transport
from tests.helpers.certificates import Authority
from tests.helpers.events_service import Service, running_events
from tests.helpers.smtp import MailServer, mail_server


@pytest.fixture
def server() -> Generator[MailServer]:
    """A mail server that the service sends by."""
    with mail_server() as server:
        yield server


@pytest.fixture
async def service(settings: Settings, server: MailServer) -> AsyncGenerator[Service]:
    """The service, without background work, which sends by the mail server."""
    async with running_events(settings.model_copy(update=server.settings)) as service:
        yield service


@pytest.fixture(autouse=True)
def short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for a mail server."""
    monkeypatch.setattr(attempts, "RETRY_BACKOFF", RetryBackoff(0.1, 0.4))
    monkeypatch.setattr(outbox, "RETRY_BACKOFF", RetryBackoff(0.1, 0.4))
    for name in ("CONNECT_TIMEOUT_SECONDS", "COMMAND_TIMEOUT_SECONDS", "CONTENT_TIMEOUT_SECONDS"):
        monkeypatch.setattr(transport, name, 0.5)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, ssl.SSLContext]:
    """The certificate of an authority that nobody believes yet, and a server's side of one that it has issued."""
    authority = Authority(tmp_path)
    path = tmp_path / "authority.pem"
    path.write_bytes(authority.pem)
    return path, authority.issue("127.0.0.1")
