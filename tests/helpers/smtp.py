"""A real mail server for tests. It behaves as a test sets it, and records every command of every connection."""

import asyncio
import contextlib
import re
import ssl
from collections.abc import Callable, Generator, Sequence
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

from tests.helpers.serving import bind_port

NEVER = "never"
"""The server takes the command, and never answers."""

_ID = re.compile(rb"^Message-ID: <(.+)>", re.MULTILINE | re.IGNORECASE)

BREAK = "break"
"""The server takes the command, and closes the connection."""


class ReceivedMail:
    """A mail that the server has accepted.

    connection    the number of its connection
    message_id    its name, without angle brackets
    is_proved     whether the client has sent anything on this connection after it knew that the mail was accepted
    is_wrong      whether an earlier copy was proved already when this one arrived
    """

    def __init__(self, connection: int, recipient: str, content: bytes) -> None:
        self.connection = connection
        self.recipient = recipient
        self.content = content
        match = _ID.search(content)
        self.message_id = match[1].decode() if match else ""
        self.is_proved = False
        self.is_wrong = False

    @property
    def mail(self) -> EmailMessage:
        mail = message_from_bytes(self.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        return mail


class MailServer:
    """A mail server in a thread of its own, on a port that it keeps.

    offers      the further extensions that it offers after EHLO
    answers     what it says instead of 250: by command (`MAIL`, `RCPT`, `DATA`), or by command and address
                (`RCPT ann@example.com`); each answer once, and the last one from then on unless it is empty
    received    the mails it has accepted, in order
    copies      the same mails, by their Message-IDs
    commands    (connection, command, argument) of everything it was told, in order
    arrived     called after each mail, in the server's thread
    """

    def __init__(self, port: int | None = None, **options: Any) -> None:
        with bind_port() as free:
            self.port: int = port or free.getsockname()[1]
        self.offers = ["PIPELINING"]
        self.answers: dict[str, list[str]] = {}
        self.received: list[ReceivedMail] = []
        self.copies: dict[str, list[ReceivedMail]] = {}
        self.commands: list[tuple[int, str, str]] = []
        self.options = options
        self.arrived: Callable[[], object] = lambda: None
        self._numbers: dict[int, int] = {}
        self._all_sessions: list[Session] = []
        self._controller: Controller | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a service that uses it, without encryption."""
        return {
            "smtp_host": "127.0.0.1",
            "smtp_port": self.port,
            "smtp_security": "none",
            "mail_from": "Holdfast <tickets@events.example>",
        }

    def start(self) -> None:
        self._controller = _Controller(self, hostname="127.0.0.1", port=self.port, **self.options)
        self._controller.start()

    def stop(self) -> None:
        """Close the port and every connection."""
        if self._controller:
            self._controller.stop()
        self._controller = None

    def recipients(self) -> list[str]:
        return [message.recipient for message in self.received]

    def connections(self) -> int:
        """How many connections have begun a mail."""
        return len({number for number, command, _ in self.commands if command == "MAIL"})

    def take(self, received: ReceivedMail) -> None:
        copies = self.copies.setdefault(received.message_id, [])
        received.is_wrong = any(copy.is_proved for copy in copies)
        copies.append(received)
        self.received.append(received)
        self.arrived()

    def note(self, session: Session, command: str, argument: str = "") -> int:
        if id(session) not in self._numbers:
            self._numbers[id(session)] = len(self._numbers)
            self._all_sessions.append(session)  # so that no other session gets its id
        number = self._numbers[id(session)]
        for message in reversed(self.received):
            if message.connection == number:
                message.is_proved = True
                break
        self.commands.append((number, command, argument))
        return number

    async def answer(self, server: SMTP, command: str, address: str = "") -> str | None:
        """What a test wants to be said; None: 250."""
        for key in (f"{command} {address}", command):
            answers = self.answers.get(key)
            if answers:
                answer = answers.pop(0) if len(answers) > 1 else answers[0]
                if answer == NEVER:
                    await asyncio.Event().wait()
                if answer == BREAK:
                    _abort(server)
                    return "421 closed"
                return answer or None
        return None


class _Handler:
    def __init__(self, server: MailServer) -> None:
        self._server = server

    async def handle_EHLO(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        session.host_name = hostname
        return [*responses[:-1], *(f"250-{extension}" for extension in self._server.offers), responses[-1]]

    async def handle_MAIL(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: Sequence[str]
    ) -> str:
        self._server.note(session, "MAIL", address)
        if answer := await self._server.answer(server, "MAIL", address):
            return answer
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 go on"

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: Sequence[str]
    ) -> str:
        self._server.note(session, "RCPT", address)
        if answer := await self._server.answer(server, "RCPT", address):
            return answer
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(options)
        return "250 go on"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        number = self._server.note(session, "DATA", envelope.rcpt_tos[0])
        if answer := await self._server.answer(server, "DATA", envelope.rcpt_tos[0]):
            return answer
        assert isinstance(envelope.content, bytes)
        self._server.take(ReceivedMail(number, envelope.rcpt_tos[0], envelope.content))
        return "250 taken"

    async def handle_RSET(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        self._server.note(session, "RSET")
        return "250 forgotten"

    async def handle_QUIT(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        self._server.note(session, "QUIT")
        return "221 goodbye"


class _Controller(Controller):
    def __init__(self, server: MailServer, **options: Any) -> None:
        self._smtp: list[SMTP] = []
        super().__init__(_Handler(server), **options)  # pyright: ignore[reportUnknownMemberType]

    def factory(self) -> SMTP:
        self._smtp.append(super().factory())
        return self._smtp[-1]

    def cancel_tasks(self, stop_loop: bool = True) -> None:
        for session in self._smtp:
            _abort(session)
        super().cancel_tasks(stop_loop)


def _abort(server: SMTP) -> None:
    transport: asyncio.WriteTransport | None = server.transport  # pyright: ignore[reportAssignmentType]
    if transport:
        transport.abort()


@contextlib.contextmanager
def mail_server(**options: Any) -> Generator[MailServer]:
    """A mail server that runs, for as long as the block lasts."""
    server = MailServer(**options)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def login(username: str, password: str) -> dict[str, Any]:
    """Options of a server that wants a login, whatever the encryption."""

    def authenticate(_: SMTP, __: Session, ___: Envelope, ____: str, data: Any) -> AuthResult:
        is_right = (data.login, data.password) == (username.encode(), password.encode())
        return AuthResult(success=is_right, handled=False)  # the server answers

    return {"authenticator": authenticate, "auth_required": True}


def starttls_options(context: ssl.SSLContext) -> dict[str, Any]:
    """Options of a server that wants STARTTLS."""
    return {"tls_context": context, "require_starttls": True}
