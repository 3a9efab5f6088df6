"""A load generator lean enough to share two cores with what it measures.

Each connection sends one request at a time and sends the next when the answer is complete.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple, cast

import uvloop


class Result(NamedTuple):
    """What one run of load saw; latencies in seconds, sorted."""

    seconds: float
    statuses: Counter[int]
    latencies: list[float]

    @property
    def per_second(self) -> float:
        return len(self.latencies) / self.seconds

    def percentile(self, share: float) -> float:
        return self.latencies[min(len(self.latencies) - 1, int(len(self.latencies) * share))]


class Connection(asyncio.Protocol):
    """One keep-alive HTTP/1.1 connection."""

    def __init__(self) -> None:
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._received = b""
        self._transport: asyncio.Transport | None = None
        self.head = b""
        """The head of the last answer."""
        self.is_open = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    async def send(self, request: bytes) -> tuple[int, bytes]:
        """The status and body of the answer to one request."""
        assert self._transport
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    @property
    def retry_after(self) -> int:
        """The seconds after which the last answer tells to come again; 1 if it does not say."""
        match = re.search(rb"\r\nretry-after: (\d+)", self.head, re.IGNORECASE)
        return int(match[1]) if match else 1

    def close(self) -> None:
        if self._transport:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator or not self._answer or self._answer.done():
            return
        start = head.lower().find(b"content-length: ")
        length = int(head[start + 16 :].split(b"\r\n", 1)[0]) if start >= 0 else 0
        if len(body) >= length:
            self._received = b""
            self.head = head
            self._answer.set_result((int(head[9:12]), body))

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if self._answer and not self._answer.done():
            self._answer.set_exception(exc or ConnectionError("closed"))


async def connect(port: int, address: str = "127.0.0.1") -> Connection:
    """A connection from a local address."""
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(Connection, "127.0.0.1", port, local_addr=(address, 0))
    return connection


def request(method: str, path: str, key: str = "", body: bytes = b"", **headers: str) -> bytes:
    """A request as it travels. Names of headers are written with underscores. A body is JSON if no header says more."""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    head += f"X-API-Key: {key}\r\n" if key else ""
    head += "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head += "Content-Type: application/json\r\n" if body and "Content_Type" not in headers else ""
    head += f"Content-Length: {len(body)}\r\n" if body else ""
    return head.encode() + b"\r\n" + body


def run(port: int, requests: Iterator[bytes], connections: int = 64) -> Result:
    """Send every request over this many connections and time each."""

    async def drive() -> Result:
        statuses: Counter[int] = Counter()
        latencies: list[float] = []

        async def one(connection: Connection) -> None:
            for request in requests:
                sent = time.perf_counter()
                status, _ = await connection.send(request)
                latencies.append(time.perf_counter() - sent)
                statuses[status] += 1

        open_connections = [await connect(port) for _ in range(connections)]
        started = time.perf_counter()
        await asyncio.gather(*(one(connection) for connection in open_connections))
        return Result(time.perf_counter() - started, statuses, sorted(latencies))

    return uvloop.run(drive())


def paced(port: int, pairs: Iterator[bytes], per_second: int, follow: Callable[[bytes], bytes]) -> Result:
    """Send requests at a steady rate; after each 202 poll what it names, every 5 ms, until that is 200.

    The latencies are those from the 202 to the 200.
    """

    async def drive() -> Result:
        statuses: Counter[int] = Counter()
        latencies: list[float] = []
        idle: asyncio.Queue[Connection] = asyncio.Queue()
        for _ in range(256):
            idle.put_nowait(await connect(port))

        async def one(request: bytes) -> None:
            connection = await idle.get()
            status, body = await connection.send(request)
            statuses[status] += 1
            accepted = time.perf_counter()
            poll = follow(body)
            while (await connection.send(poll))[0] != 200:
                statuses[404] += 1
                await asyncio.sleep(0.005)
            latencies.append(time.perf_counter() - accepted)
            idle.put_nowait(connection)

        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number, request in enumerate(pairs):
                due = started + number / per_second
                if (ahead := due - time.perf_counter()) > 0:
                    await asyncio.sleep(ahead)
                group.create_task(one(request))
        return Result(time.perf_counter() - started, statuses, sorted(latencies))

    return uvloop.run(drive())
