"""Commands of SMTP and their answers, on a connection that aiosmtplib has opened. Written for aiosmtplib 5.1.

aiosmtplib sends each command alone, and drops an answer that arrives before it is awaited. Where the server offers
PIPELINING, several commands are sent here in one write, which saves round trips (RFC 2920, docs/upstream.md). It stays
until aiosmtplib can do so: a mail costs two round trips, not four.

`SMTP.data` sends the command DATA and the content in one call. The sender must be able to stop between the two, and it
sends bytes that are already encoded (docs/upstream.md). It stays for safety: a sender checks its right to send after
DATA was accepted, so that a mail is sent once (decision 29).
"""

import asyncio
import re
from collections import deque
from collections.abc import Sequence
from typing import cast

from aiosmtplib import SMTP, SMTPResponse
from aiosmtplib.errors import (
    SMTPException,
    SMTPReadTimeoutError,
    SMTPResponseException,
    SMTPServerDisconnected,
)

VERSION = "5.1"

MAX_ANSWER_BYTES = 65_536
"""Bytes of answers that are not read yet. A server that sends more is not one of SMTP."""

_ANSWER_LINE = re.compile(rb"(\d{3})(?:([ -])(.*))?")


class SmtpExchange(asyncio.Protocol):
    """Sends commands, and reads the answers in their order. It replaces the client on its connection."""

    def __init__(self, client: SMTP) -> None:
        if client.transport is None:
            raise SMTPServerDisconnected("Connection lost")
        self.is_pipelined = client.supports_extension("pipelining")
        self._transport = cast(asyncio.Transport, client.transport)
        self._received = b""
        self._lines: list[bytes] = []
        self._answers: deque[SMTPResponse] = deque()
        self._unsent: deque[bytes] = deque()
        self._error: SMTPException | None = None
        self._change_signal = asyncio.Event()
        self._transport.set_protocol(self)

    def send(self, commands: Sequence[bytes]) -> None:
        """Send commands without their line ends: all now, or each when its answer is awaited, if not pipelined.

        All earlier answers were read. What the server has said since then answers no command.
        """
        self._answers.clear()
        self._unsent.clear()
        if self.is_pipelined:
            self._write(b"".join(command + b"\r\n" for command in commands))
        else:
            self._unsent.extend(commands)

    def send_content(self, content: bytes) -> None:
        """Send the content of a mail, whose lines end with CRLF. The server has accepted DATA."""
        self._write(re.sub(rb"(?m)^\.", b"..", content) + b".\r\n")

    async def answer(self, seconds: float) -> SMTPResponse:
        """The next answer. Raises `SMTPException` if there is none, also if the server takes too long."""
        if self._unsent:
            self._write(self._unsent.popleft() + b"\r\n")
        try:
            async with asyncio.timeout(seconds):
                while not self._answers:
                    if self._error:
                        raise self._error
                    self._change_signal.clear()
                    await self._change_signal.wait()
        except TimeoutError as error:
            if isinstance(error, SMTPException):
                raise
            raise SMTPReadTimeoutError("Timed out waiting for server response") from error
        return self._answers.popleft()

    def _write(self, data: bytes) -> None:
        if self._error:
            raise self._error
        if self._transport.is_closing():
            raise SMTPServerDisconnected("Connection lost")
        self._transport.write(data)

    def data_received(self, data: bytes) -> None:
        unread = sum(map(len, self._lines)) + sum(len(answer.message) for answer in self._answers)
        if len(self._received) + len(data) + unread > MAX_ANSWER_BYTES:
            self._fail(SMTPResponseException(-1, "Response too long"))
            return
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            match = _ANSWER_LINE.match(line)
            if match is None:
                text = line.decode("utf-8", "replace")
                self._fail(SMTPResponseException(-1, f"Malformed SMTP response line: {text}"))
                return
            self._lines.append((match[3] or b"").strip())
            if match[2] != b"-":
                text = b"\n".join(self._lines).decode("utf-8", "surrogateescape")
                self._answers.append(SMTPResponse(int(match[1]), text))
                self._lines.clear()
                self._change_signal.set()

    def connection_lost(self, exc: Exception | None) -> None:
        error = SMTPServerDisconnected("Connection lost")
        error.__cause__ = exc
        self._fail(error)

    def _fail(self, error: SMTPException) -> None:
        self._error = self._error or error
        self._transport.close()
        self._change_signal.set()
