"""How mails leave: by SMTP, or as files of the data directory where no mail server is set.

A connection is used for many mails. Nothing is sent on it after a mail was accepted, until the caller sends the next
one or closes it: so the caller can store first that the mail was sent.
"""

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

import structlog
from aiosmtplib import SMTP
from aiosmtplib.errors import (
    SMTPDataError,
    SMTPException,
    SMTPRecipientRefused,
    SMTPResponseException,
    SMTPServerDisconnected,
)

from holdfast.kit.mail import Envelope, NoAddress, envelope_address, plain, sender_address
from holdfast.kit.settings import Settings

log = structlog.get_logger()

CONNECT_SECONDS = 10
COMMAND_SECONDS = 30
CONTENT_SECONDS = 120
"""How long the mail server may take. A mail whose content it may have taken is not sent again lightly."""

NOBODY = "holdfast@localhost"
"""The sender of mails that only become files."""

Last = Callable[[], Awaitable[None]]
"""Called in the last moment before a mail is given away. If it raises, the mail was not sent."""


class Refused(Exception):
    """The mail server refuses this mail for good. Its text says why."""


class PutOff(Exception):
    """The mail server does not take this mail now. Its text says why."""


class Broken(Exception):
    """There is no mail server to talk to, or it does not take mails from us. No mail is to blame."""


class BrokenAtContent(Broken):
    """The connection broke after a mail had been announced on it."""


class Carrier(Protocol):
    """Takes one mail at a time."""

    async def carry(self, envelope: Envelope, last: Last) -> None:
        """Return when the mail was accepted. Raises `Refused`, `PutOff`, `Broken`, and what `last` raises."""
        ...


class Mailer(Protocol):
    """Opens connections.

    sender    from whom mails come, as `Name <address>` or a bare address
    domain    the domain of the sender, in which mails are named
    """

    sender: str
    domain: str

    def carrier(self) -> AbstractAsyncContextManager[Carrier]:
        """A connection, which is opened with the first mail and closed with the block."""
        ...


def mailer_of(settings: Settings) -> Mailer:
    if settings.smtp_host:
        return SmtpMailer(settings)
    return FileMailer(settings.data_dir / "mail", settings.mail_from or NOBODY)


class SmtpMailer:
    """Sends by the mail server in the settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.sender = settings.mail_from
        self.domain = sender_address(settings.mail_from).rpartition("@")[2]

    @contextlib.asynccontextmanager
    async def carrier(self) -> AsyncGenerator["_SmtpCarrier"]:
        carrier = _SmtpCarrier(self._settings)
        try:
            yield carrier
        finally:
            await carrier.close()


class _SmtpCarrier:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._sender = sender_address(settings.mail_from)
        self._client: SMTP | None = None
        self._announced = False

    async def carry(self, envelope: Envelope, last: Last) -> None:
        try:
            recipient = envelope_address(envelope.recipient)
        except NoAddress as error:
            raise Refused(_words(error)) from error
        client = await self._begin()
        try:
            await client.rcpt(recipient, timeout=COMMAND_SECONDS)
            answer = await client.execute_command(b"DATA", timeout=COMMAND_SECONDS)
            if answer.code != 354:
                raise SMTPDataError(answer.code, answer.message)
            await self._give(client, envelope.content, last)
        except (SMTPRecipientRefused, SMTPDataError) as error:
            permanent = 500 <= error.code < 600
            raise (Refused if permanent else PutOff)(_words(error)) from error
        except (SMTPException, OSError) as error:
            self._drop()
            raise BrokenAtContent(_words(error)) from error
        except BaseException:
            self._drop()  # the server waits for the content, and must not get anything else
            raise
        self._announced = False

    async def _give(self, client: SMTP, content: bytes, last: Last) -> None:
        await last()
        protocol = client.protocol
        if protocol is None:
            raise SMTPServerDisconnected("Connection lost")
        protocol.write(re.sub(rb"(?m)^\.", b"..", content) + b".\r\n")
        answer = await protocol.read_response(timeout=CONTENT_SECONDS)
        if answer.code != 250:
            raise SMTPDataError(answer.code, answer.message)

    async def _begin(self) -> SMTP:
        """A connection on which a new mail was begun. One that the server has closed meanwhile is replaced."""
        if self._client and self._client.is_connected:
            with contextlib.suppress(SMTPServerDisconnected):
                return await self._sender_named(self._client)
        self._drop()
        client = await self._connected()
        try:
            return await self._sender_named(client)
        except SMTPServerDisconnected as error:
            raise Broken(_words(error)) from error

    async def _sender_named(self, client: SMTP) -> SMTP:
        try:
            if self._announced:
                await client.rset(timeout=COMMAND_SECONDS)
            self._announced = True
            await client.mail(self._sender, timeout=COMMAND_SECONDS)
        except SMTPServerDisconnected:
            self._drop()
            raise
        except (SMTPException, OSError) as error:
            self._drop()
            raise Broken(_words(error)) from error
        return client

    async def _connected(self) -> SMTP:
        settings = self._settings
        self._client = SMTP(
            hostname=settings.smtp_host,
            port=settings.smtp_port or None,
            username=settings.smtp_username or None,
            password=settings.smtp_password or None,
            use_tls=settings.smtp_security == "tls",
            start_tls=settings.smtp_security == "starttls",
            timeout=CONNECT_SECONDS,
        )
        self._announced = False
        try:
            async with asyncio.timeout(3 * CONNECT_SECONDS):
                await self._client.connect()
        except (SMTPException, OSError) as error:
            self._drop()
            raise Broken(_words(error)) from error
        return self._client

    async def close(self) -> None:
        """Say goodbye, if that does not take long."""
        if self._client and self._client.is_connected:
            with contextlib.suppress(SMTPException, OSError):
                await self._client.quit(timeout=1)
        self._drop()

    def _drop(self) -> None:
        if self._client:
            self._client.close()
        self._client = None
        self._announced = False


class FileMailer:
    """Writes each mail to a file of a directory, where people find it without a mail server."""

    def __init__(self, directory: Path, sender: str) -> None:
        self._directory = directory
        self.sender = sender
        self.domain = sender_address(sender).rpartition("@")[2]

    @contextlib.asynccontextmanager
    async def carrier(self) -> AsyncGenerator["FileMailer"]:
        yield self

    async def carry(self, envelope: Envelope, last: Last) -> None:
        await last()
        try:
            await asyncio.to_thread(self._write, envelope)
        except OSError as error:
            raise Broken(f"cannot write to {self._directory}: {_words(error)}") from error

    def _write(self, envelope: Envelope) -> None:
        """Write a mail whole, or not at all. A mail that is sent again replaces its file."""
        path = self._directory / f"{envelope.message_id.partition('@')[0]}.eml"
        # Mails have links that let their reader act: nobody else on this machine may read them.
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_new = not path.exists()
        part = path.with_suffix(".part")
        with part.open("wb") as file:
            file.write(envelope.content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        if is_new:
            log.info("mail written to a file, since SMTP_HOST is not set", file=str(path.resolve()))


def _words(error: BaseException) -> str:
    """What a mail server said, or what went wrong, on one line."""
    if isinstance(error, SMTPResponseException):
        said = f"{error.code} {error.message}"
    elif isinstance(error, SMTPException):
        said = error.message
    else:
        said = str(error) or type(error).__name__
    return plain(said)[:500]
