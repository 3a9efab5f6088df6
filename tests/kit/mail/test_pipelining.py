"""Commands of a mail reach a server that offers PIPELINING together, and each of its answers is judged (RFC 2920)."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.events.settings import Settings
from holdfast.kit.mail.transport import Mailer, MailRefusal, MailServerUnavailable, mailer_of
from tests.kit.mail.posting import confirm_at_once, envelope


class Writes:
    """What a mail server was told, by connection, and with each write of the client apart."""

    def __init__(self) -> None:
        self.connections: list[list[bytes]] = []

    def contents(self) -> int:
        return sum(write.endswith(b"\r\n.\r\n") for writes in self.connections for write in writes)


@contextlib.asynccontextmanager
async def pipelining_server(tmp_path: Path, answer: Callable[[bytes], bytes]) -> AsyncGenerator[tuple[Mailer, Writes]]:
    """A server that answers each command with the lines of `answer`."""
    record = Writes()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writes: list[bytes] = []
        record.connections.append(writes)
        writer.write(b"220 hello\r\n")
        while data := await reader.read(100_000):
            writes.append(data)
            if b"Message-ID" in data:
                writer.write(b"250 taken\r\n")
                continue
            writer.writelines(answer(command) for command in data.splitlines())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        fields: dict[str, Any] = {
            "smtp_host": "127.0.0.1",
            "smtp_port": server.sockets[0].getsockname()[1],
            "smtp_security": "none",
            "mail_from": "tickets@events.example",
        }
        yield mailer_of(Settings(data_dir=tmp_path, **fields)), record  # pyright: ignore[reportCallIssue]


def usual(command: bytes) -> bytes:
    if command.startswith(b"EHLO"):
        return b"250-here\r\n250-PIPELINING\r\n250 8BITMIME\r\n"
    return b"354 go on\r\n" if command == b"DATA" else b"250-yes\r\n250 yes\r\n"


async def test_sender_recipient_and_data_are_one_write_and_the_content_another(tmp_path: Path) -> None:
    async with pipelining_server(tmp_path, usual) as (mailer, record), mailer.carrier() as carrier:
        await carrier.carry(envelope("ann@example.com"), confirm_at_once)
        await carrier.carry(envelope("bob@example.com"), confirm_at_once)

    [[_, *writes, _]] = record.connections
    assert writes[::2] == [
        b"MAIL FROM:<tickets@events.example>\r\nRCPT TO:<ann@example.com>\r\nDATA\r\n",
        b"MAIL FROM:<tickets@events.example>\r\nRCPT TO:<bob@example.com>\r\nDATA\r\n",
    ]
    assert record.contents() == 2


async def test_a_server_that_waits_for_a_mail_to_a_refused_recipient_gets_none(tmp_path: Path) -> None:
    def refuses_bob(command: bytes) -> bytes:
        return b"550 nobody\r\n" if b"<bob@" in command else usual(command)

    async with pipelining_server(tmp_path, refuses_bob) as (mailer, record), mailer.carrier() as carrier:
        with pytest.raises(MailRefusal, match="550 nobody"):
            await carrier.carry(envelope("bob@example.com"), confirm_at_once)
        assert record.contents() == 0
        await carrier.carry(envelope("cy@example.com"), confirm_at_once)

    assert [len(writes) for writes in record.connections] == [2, 4]


async def test_a_mail_whose_data_command_is_refused_is_not_sent(tmp_path: Path) -> None:
    def refuses_data(command: bytes) -> bytes:
        return b"554 no\r\n" if command == b"DATA" else usual(command)

    async with pipelining_server(tmp_path, refuses_data) as (mailer, record), mailer.carrier() as carrier:
        for _ in range(2):
            with pytest.raises(MailRefusal, match="554 no"):
                await carrier.carry(envelope("ann@example.com"), confirm_at_once)

    assert record.contents() == 0
    [[_, _, write, _]] = record.connections
    assert write.startswith(b"RSET\r\nMAIL ")


@pytest.mark.parametrize("answer", [b"what?\r\n", b"250-" + b"x" * 100_000, b"99 low\r\n"])
async def test_a_server_that_does_not_speak_smtp_gets_no_mail(answer: bytes, tmp_path: Path) -> None:
    def strange(command: bytes) -> bytes:
        return answer if command.startswith(b"MAIL") else usual(command)

    async with pipelining_server(tmp_path, strange) as (mailer, record), mailer.carrier() as carrier:
        with pytest.raises(MailServerUnavailable):
            await carrier.carry(envelope("ann@example.com"), confirm_at_once)

    assert record.contents() == 0
