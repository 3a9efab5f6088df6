"""A mail server, a service that sends by it, and short pauses."""

import datetime as dt
import ipaddress
import ssl
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from holdfast.events.settings import Settings
from holdfast.kit.background.row_work import RetryBackoff
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


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, ssl.SSLContext]:
    """A certificate of this machine that nobody trusts yet, and the server's side of it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    until = now + dt.timedelta(days=1)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, until)
    signed = made.add_extension(address, False).sign(key, hashes.SHA256())
    path, secret = tmp_path / "certificate.pem", tmp_path / "key.pem"
    path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(path, secret)
    return path, context
