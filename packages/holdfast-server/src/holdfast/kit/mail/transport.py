"""Sends mails by SMTP, or writes them to files in the data directory if no mail server is set.

A connection is used for many mails. After a mail was accepted, nothing is sent on it until the caller sends the next
mail or closes it: so the caller can first store that the mail was sent.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

import structlog
from aiosmtplib import SMTP, SMTPStatus
from aiosmtplib.errors import (
    SMTPDataError,
    SMTPException,
    SMTPHeloError,
    SMTPRecipientRefused,
    SMTPResponseException,
    SMTPSenderRefused,
    SMTPServerDisconnected,
)

from holdfast.kit.compat.smtp_exchange import SmtpExchange
from holdfast.kit.contract.addresses import NoAddress, envelope_address, sender_address
from holdfast.kit.environment.settings import Settings
from holdfast.kit.mail.message import Envelope, header_text

log = structlog.get_logger()

CONNECT_TIMEOUT_SECONDS = 10
COMMAND_TIMEOUT_SECONDS = 30
CONTENT_TIMEOUT_SECONDS = 120
"""Seconds that the mail server may take. The last is long: a mail that may have been accepted should not be resent."""

DEFAULT_SENDER = "holdfast@localhost"
"""The sender of mails that are written to files."""

BeforeContent = Callable[[], Awaitable[None]]
"""Called immediately before the content of a mail is sent. If it raises, the mail was not sent."""


class MailRefusal(Exception):
    """The mail server refuses this mail permanently. The message says why."""


class MailDeferral(Exception):
    """The mail server does not accept this mail now. The message says why."""


class MailServerUnavailable(Exception):
    """The mail server is unreachable, or does not accept mails from us. No mail is the cause."""

    @property
    def is_stall(self) -> bool:
        """Whether the mail server did not answer in time."""
        return isinstance(self.__cause__, TimeoutError)


class ConnectionLostAtContent(MailServerUnavailable):
    """The connection was lost after a mail had been announced on it."""


class MailConnection(Protocol):
    """A connection that sends one mail at a time."""

    async def carry(self, envelope: Envelope, last: BeforeContent) -> None:
        """Send a mail, and wait until it was accepted.

        Raises `MailRefusal`, `MailDeferral`, `MailServerUnavailable`, and the exceptions of `last`.
        """
        ...


class Mailer(Protocol):
    """Opens connections.

    sender    the sender of mails, as `Name <address>` or a bare address
    domain    the domain of the sender, for Message-IDs
    """

    sender: str
    domain: str

    def carrier(self) -> AbstractAsyncContextManager[MailConnection]:
        """A connection, which is opened for the first mail and closed at the end of the block."""
        ...


def mailer_of(settings: Settings) -> Mailer:
    if settings.smtp_host:
        return SmtpMailer(settings)
    return FileMailer(settings.data_dir / "mail", settings.mail_from or DEFAULT_SENDER)


class SmtpMailer:
    """Sends mails by the mail server in the settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.sender = settings.mail_from
        self.domain = sender_address(settings.mail_from).rpartition("@")[2]

    @contextlib.asynccontextmanager
    async def carrier(self) -> AsyncGenerator["_SmtpConnection"]:
        carrier = _SmtpConnection(self._settings)
        try:
            yield carrier
        finally:
            await carrier.close()

    async def probe(self) -> None:
        """Connect, log in and name the sender as for a mail, and send none. Raises `MailServerUnavailable`."""
        connection = _SmtpConnection(self._settings)
        try:
            await connection.begin()
        finally:
            await connection.close()


class _SmtpConnection:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._sender = sender_address(settings.mail_from)
        self._client: SMTP | None = None
        self._exchange: SmtpExchange | None = None
        self._announced = False

    async def carry(self, envelope: Envelope, last: BeforeContent) -> None:
        try:
            recipient = envelope_address(envelope.recipient)
        except NoAddress as error:
            raise MailRefusal(error_line(error)) from error
        exchange = await self.begin(f"RCPT TO:<{recipient}>".encode("ascii"), b"DATA")
        try:
            await self._recipient_accepted(exchange, recipient)
            answer = await exchange.answer(COMMAND_TIMEOUT_SECONDS)
            if answer.code != SMTPStatus.start_input:
                raise SMTPDataError(answer.code, answer.message)
            await last()
            exchange.send_content(envelope.content)
            answer = await exchange.answer(CONTENT_TIMEOUT_SECONDS)
            if answer.code != SMTPStatus.completed:
                raise SMTPDataError(answer.code, answer.message)
        except (SMTPRecipientRefused, SMTPDataError) as error:
            permanent = 500 <= error.code < 600
            raise (MailRefusal if permanent else MailDeferral)(error_line(error)) from error
        except (SMTPException, OSError) as error:
            self._drop()
            raise ConnectionLostAtContent(error_line(error)) from error
        except BaseException:
            self._drop()  # the server waits for the content, and must not get another command
            raise
        self._announced = False

    async def _recipient_accepted(self, exchange: SmtpExchange, recipient: str) -> None:
        answer = await exchange.answer(COMMAND_TIMEOUT_SECONDS)
        if answer.code in (SMTPStatus.completed, SMTPStatus.will_forward):
            return
        if exchange.is_pipelined:
            # DATA was sent with the recipient, and has an answer too.
            try:
                data_answer = await exchange.answer(COMMAND_TIMEOUT_SECONDS)
            except (SMTPException, OSError):
                self._drop()
            else:
                if data_answer.code == SMTPStatus.start_input:
                    self._drop()  # the server waits for a content, and there is none
        raise SMTPRecipientRefused(answer.code, answer.message, recipient)

    async def begin(self, *further: bytes) -> SmtpExchange:
        """A connection on which a new mail was started. Replaces a connection that the server has closed meanwhile.

        further     the next commands of the mail, whose answers the caller reads
        """
        if self._client and self._exchange and self._client.is_connected:
            with contextlib.suppress(SMTPServerDisconnected):
                return await self._sender_named(self._exchange, further)
        self._drop()
        exchange = await self._connected()
        try:
            return await self._sender_named(exchange, further)
        except SMTPServerDisconnected as error:
            raise MailServerUnavailable(error_line(error)) from error

    async def _sender_named(self, exchange: SmtpExchange, further: Sequence[bytes]) -> SmtpExchange:
        resets = [b"RSET"] if self._announced else []
        try:
            exchange.send([*resets, f"MAIL FROM:<{self._sender}>".encode("ascii"), *further])
            self._announced = True
            for _ in resets:
                await exchange.answer(COMMAND_TIMEOUT_SECONDS)
            answer = await exchange.answer(COMMAND_TIMEOUT_SECONDS)
            if answer.code != SMTPStatus.completed:
                raise SMTPSenderRefused(answer.code, answer.message, self._sender)
        except SMTPServerDisconnected:
            self._drop()
            raise
        except (SMTPException, OSError) as error:
            self._drop()
            raise MailServerUnavailable(error_line(error)) from error
        except BaseException:
            self._drop()  # answers to these commands may still come
            raise
        return exchange

    async def _connected(self) -> SmtpExchange:
        settings = self._settings
        self._client = SMTP(
            hostname=settings.smtp_host,
            port=settings.smtp_port or None,
            username=settings.smtp_username or None,
            password=settings.smtp_password or None,
            use_tls=settings.smtp_security == "tls",
            start_tls=settings.smtp_security == "starttls",
            timeout=CONNECT_TIMEOUT_SECONDS,
        )
        self._announced = False
        try:
            async with asyncio.timeout(3 * CONNECT_TIMEOUT_SECONDS):
                await self._client.connect()
                await _greet(self._client)
            self._exchange = SmtpExchange(self._client)
        except (SMTPException, OSError) as error:
            self._drop()
            raise MailServerUnavailable(error_line(error)) from error
        return self._exchange

    async def close(self) -> None:
        """Send QUIT, with a short timeout, and close the connection."""
        if self._client and self._exchange and self._client.is_connected:
            with contextlib.suppress(SMTPException, OSError):
                self._exchange.send([b"QUIT"])
                await self._exchange.answer(1)
        self._drop()

    def _drop(self) -> None:
        if self._client:
            self._client.close()
        self._client = self._exchange = None
        self._announced = False


async def _greet(client: SMTP) -> None:
    """Learn what the server offers, if that is not known from a login."""
    if client.is_ehlo_or_helo_needed:
        try:
            await client.ehlo()
        except SMTPHeloError:
            await client.helo()


class FileMailer:
    """Writes each mail to a file in a directory, for use without a mail server."""

    def __init__(self, directory: Path, sender: str) -> None:
        self._directory = directory
        self.sender = sender
        self.domain = sender_address(sender).rpartition("@")[2]

    @contextlib.asynccontextmanager
    async def carrier(self) -> AsyncGenerator["FileMailer"]:
        yield self

    async def carry(self, envelope: Envelope, last: BeforeContent) -> None:
        await last()
        try:
            await asyncio.to_thread(self._write, envelope)
        except OSError as error:
            raise MailServerUnavailable(f"cannot write to {self._directory}: {error_line(error)}") from error

    def path(self, envelope: Envelope) -> Path:
        """The file of a mail."""
        return self._directory / f"{envelope.message_id.partition('@')[0]}.eml"

    def _write(self, envelope: Envelope) -> None:
        """Write a mail atomically. A mail that is sent again replaces its file."""
        path = self.path(envelope)
        # Mails have links that authorize their reader: no other user of this machine may read them.
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


def error_line(error: BaseException) -> str:
    """The answer of the mail server, or the error, on one line."""
    if isinstance(error, SMTPResponseException):
        text = f"{error.code} {error.message}"
    elif isinstance(error, SMTPException):
        text = error.message
    else:
        text = str(error) or type(error).__name__
    return header_text(text)[:500]
