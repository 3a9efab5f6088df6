"""Sends one mail at once, step by step, so that an operator sees which step fails and why."""

import contextlib
import datetime as dt
import secrets
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from aiosmtplib import SMTP, SMTPResponse
from aiosmtplib.errors import SMTPException, SMTPResponseException, SMTPTimeoutError

from holdfast.kit.contract.addresses import envelope_address, sender_address
from holdfast.kit.environment.settings import Settings
from holdfast.kit.mail.message import Envelope, MailMessage
from holdfast.kit.mail.transport import (
    COMMAND_TIMEOUT_SECONDS,
    CONNECT_TIMEOUT_SECONDS,
    CONTENT_TIMEOUT_SECONDS,
    DEFAULT_SENDER,
    FileMailer,
    error_line,
)

USUAL_PORTS = {"starttls": 587, "tls": 465, "none": 25}

AUTHENTICATION_REQUIRED = 530
"""The answer of a server that wants a login first (RFC 4954)."""


class TrialStep(NamedTuple):
    """The result of one step.

    text      what was done, with the words of the mail server; or what failed
    advice    what to do; empty if the step succeeded
    """

    text: str
    advice: str = ""


class _Step(NamedTuple):
    """A step to take. It returns what it did; its advice follows from the error."""

    take: Callable[[], Awaitable[str]]
    failure: str
    advice: Callable[[BaseException], str]


def trial_mail(settings: Settings, title: str, recipient: str) -> Envelope:
    """A mail to try the settings with. Raises `NoAddress`."""
    sender = settings.mail_from or DEFAULT_SENDER
    text = f"{title} can send mails. An operator asked for this one, with the command `mail test`."
    name = f"test-{secrets.token_hex(8)}@{sender_address(sender).rpartition('@')[2]}"
    mail = MailMessage(
        envelope_address(recipient), f"{title}: a test", f"{text}\n", f"<p>{text}</p>", name, dt.datetime.now(dt.UTC)
    )
    return Envelope(mail.recipient, name, mail.encoded(sender))


async def write(settings: Settings, envelope: Envelope) -> Path:
    """Write the mail to a file, as mails are without a mail server. Raises `MailServerUnavailable`."""
    mailer = FileMailer(settings.data_dir / "mail", settings.mail_from or DEFAULT_SENDER)
    await mailer.carry(envelope, _nothing_before)
    return mailer.path(envelope).absolute()


async def send(settings: Settings, envelope: Envelope) -> AsyncGenerator[TrialStep]:
    """Send the mail to the mail server in the settings. Yields each step; after one that failed there is no other."""
    client = SMTP(
        hostname=settings.smtp_host,
        port=settings.smtp_port or USUAL_PORTS[settings.smtp_security],
        use_tls=settings.smtp_security == "tls",
        start_tls=False,
        timeout=CONNECT_TIMEOUT_SECONDS,
    )
    try:
        for step in _steps(client, settings, envelope):
            try:
                text = await step.take()
            except (SMTPException, OSError) as error:
                yield TrialStep(f"{step.failure}: {error_line(error)}", step.advice(error))
                return
            yield TrialStep(text)
    finally:
        with contextlib.suppress(SMTPException, OSError):
            await client.quit(timeout=1)
        client.close()


def _steps(client: SMTP, settings: Settings, envelope: Envelope) -> Sequence[_Step]:
    """The steps of a trial mail, in order, each with the advice for its failure."""
    server = f"{client.hostname}, port {client.port}"
    sender = sender_address(settings.mail_from)

    async def connect() -> str:
        return f"Connected to {server}: {_words(await client.connect())}"

    async def encrypt() -> str:
        if settings.smtp_security == "starttls":
            await client.starttls()
        return f"Encrypted with {client.get_transport_info('ssl_object').version()}; the certificate is valid"

    async def log_in() -> str:
        words = _words(await client.login(settings.smtp_username, settings.smtp_password))
        return f"Logged in as {settings.smtp_username}: {words}"

    async def name_sender() -> str:
        return f"Sender {sender}: {_words(await client.mail(sender, timeout=COMMAND_TIMEOUT_SECONDS))}"

    async def name_recipient() -> str:
        words = _words(await client.rcpt(envelope.recipient, timeout=COMMAND_TIMEOUT_SECONDS))
        return f"Recipient {envelope.recipient}: {words}"

    async def hand_over() -> str:
        await client.data(envelope.content, timeout=CONTENT_TIMEOUT_SECONDS)
        return "The mail server has accepted the mail"

    return [
        _Step(connect, f"No connection to {server}", _connection_advice),
        *([] if settings.smtp_security == "none" else [_Step(encrypt, "No encryption", _encryption_advice)]),
        *([_Step(log_in, f"No login as {settings.smtp_username}", _login_advice)] if settings.smtp_username else []),
        _Step(name_sender, f"The sender {sender} was refused", _sender_advice),
        _Step(name_recipient, f"The recipient {envelope.recipient} was refused", _recipient_advice),
        _Step(hand_over, "The mail was refused", _content_advice),
    ]


def _connection_advice(error: BaseException) -> str:
    if isinstance(error.__cause__, ssl.SSLError):
        return _encryption_advice(error)
    if isinstance(error.__cause__, socket.gaierror):
        return "No server has this name. Check SMTP_HOST."
    if isinstance(error, SMTPTimeoutError):
        return (
            "Check SMTP_HOST and SMTP_PORT, and that no firewall is between. Many networks let nothing out to port 25. "
            "A server on port 465 encrypts from the beginning: set SMTP_SECURITY to tls for it."
        )
    return "Check SMTP_HOST and SMTP_PORT, that the mail server runs, and that no firewall is between."


def _encryption_advice(error: BaseException) -> str:
    causes = (error, error.__cause__, error.__context__)
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return (
            "SMTP_HOST must be a name in the certificate of the mail server. If an authority of your own signed it, "
            "set SSL_CERT_FILE to a file with the certificate of that authority."
        )
    return (
        "Set SMTP_SECURITY to starttls if the server changes to TLS after it has greeted (usually on port 587), to tls "
        "if it encrypts from the beginning (usually on port 465), or to none for a server on this machine."
    )


def _login_advice(error: BaseException) -> str:
    if isinstance(error, SMTPResponseException | OSError):
        return "Check SMTP_USERNAME and SMTP_PASSWORD. Some providers want a password that was made for programs."
    return "The server takes no login on this port. Use another SMTP_PORT, or set no SMTP_USERNAME and SMTP_PASSWORD."


def _sender_advice(error: BaseException) -> str:
    if isinstance(error, SMTPResponseException) and error.code == AUTHENTICATION_REQUIRED:
        return "The server wants a login. Set SMTP_USERNAME and SMTP_PASSWORD."
    return "MAIL_FROM must be an address for which the mail server sends."


def _recipient_advice(error: BaseException) -> str:
    return (
        "Check the address. If the server says that it relays no mails, it wants a login: set SMTP_USERNAME and "
        "SMTP_PASSWORD."
    )


def _content_advice(error: BaseException) -> str:
    return "The addresses were accepted, and the mail itself was not. The words of the server say why."


def _words(answer: SMTPResponse) -> str:
    """The answer of the server, on one line."""
    return error_line(SMTPResponseException(answer.code, answer.message))


async def _nothing_before() -> None:
    pass
