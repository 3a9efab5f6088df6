"""A program that receives webhooks, for tests: it keeps connections open, and answers as a test tells it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

import msgspec

from holdfast.kit.outbound.requests import OutboundClient
from holdfast.kit.postgres.database import Database
from holdfast.kit.webhooks.fan_out import fan_out
from holdfast.kit.webhooks.sending import DeliveryWork
from tests.helpers.row_work import handle_all

LOCAL = "127.0.0.1"


@dataclass
class ReceivedMessage:
    """A message as it came in."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def content(self) -> dict[str, Any]:
        return msgspec.json.decode(self.body)

    @property
    def type(self) -> str:
        return self.content["type"]


@dataclass
class ReceiverAnswer:
    """What the receiver answers.

    status    0: it closes the connection instead; -1: it waits until the sender gives up
    closes    whether it closes the connection afterwards
    """

    status: int = 204
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    closes: bool = False


class Receiver:
    """Receives messages. `answer` is asked what to answer to each."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://{LOCAL}:{port}/hooks"
        self.received: list[ReceivedMessage] = []
        self.connections = 0
        self.broken_off = 0
        self.answer: Callable[[ReceivedMessage], ReceiverAnswer] = lambda _: ReceiverAnswer()

    @property
    def types(self) -> list[str]:
        return [message.type for message in self.received]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:-2])}
                message = ReceivedMessage(
                    head[0].split(" ")[1], headers, await reader.readexactly(int(headers["content-length"]))
                )
                self.received.append(message)
                answer = self.answer(message)
                if answer.status == -1:
                    await reader.read()
                if answer.status <= 0:
                    return
                lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
                lines += [f"{name}: {value}" for name, value in answer.headers.items()]
                if answer.status != 204:
                    lines.append(f"Content-Length: {len(answer.body)}")
                writer.write("\r\n".join([*lines, "", ""]).encode() + answer.body)
                await writer.drain()
                if answer.closes:
                    return
        except ConnectionError:
            self.broken_off += 1  # the sender has not read all that was sent
        except asyncio.IncompleteReadError:
            pass  # the sender has gone
        finally:
            writer.close()


@asynccontextmanager
async def open_receiver(port: int = 0) -> AsyncGenerator[Receiver]:
    """A receiver that listens at a port; 0: at any."""
    receiver: Receiver

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await receiver.serve(reader, writer)

    listening = await asyncio.start_server(serve, LOCAL, port)
    receiver = Receiver(listening.sockets[0].getsockname()[1])
    async with listening:
        yield receiver


async def fan_all_out(database: Database[Any]) -> None:
    """Store the deliveries of all new messages."""
    while (await database.transact(fan_out)).messages:
        pass


async def deliver(database: Database[Any]) -> int:
    """Fan all messages out, and send all that is due now. Returns the number sent, with those that failed."""
    await fan_all_out(database)
    return await handle_all(DeliveryWork(database))


class Receivers:
    """Receivers to whose ports a service may send."""

    def __init__(self, database: Database[Any], stack: AsyncExitStack) -> None:
        self._database = database
        self._stack = stack
        self._ports: list[int] = []

    async def add(self) -> Receiver:
        receiver = await self._stack.enter_async_context(open_receiver())
        self._ports.append(receiver.port)
        client = OutboundClient(exempt=[(LOCAL, port) for port in self._ports], seconds=1)
        self._database.resources = replace(self._database.resources, webhooks=client)
        return receiver


@asynccontextmanager
async def receivers_of(database: Database[Any]) -> AsyncGenerator[Receivers]:
    """Receivers for a service, which may send to no port of this machine afterwards."""
    resources = database.resources
    async with AsyncExitStack() as stack:
        yield Receivers(database, stack)
    database.resources = resources
