"""Streams that reconnect at once: all connections of a service are gone, and each client comes again as it was told."""

import asyncio
import re
import time
from typing import NamedTuple, cast

import uvloop

from benchmarks.crowd import CrowdedService, address_of_client, percentile
from benchmarks.probes import Probes

OPENING_AT_A_TIME = 100
"""Streams that are opened at a time before the storm."""

DEFAULT_RETRY_SECONDS = 3.0
"""What a stream tells by `retry:` when it tells nothing else."""

MAX_SECONDS = 120


class Storm(NamedTuple):
    """What became of streams that reconnected at once.

    back         seconds from the end of all connections until the last stream was back; infinity: not all came back
    retry        the shortest and the longest time in seconds after which clients were told to open a stream again
    refused      answers with 503 or 429
    closed       connections that were refused or closed without an answer
    p50, p99     seconds from an attempt to the first message of its stream, for those that succeeded
    slowest      the slowest probe meanwhile, and its p99 in seconds
    before       megabytes of the service with the streams open, before and after the storm
    """

    streams: int
    back: float
    retry: tuple[float, float]
    refused: int
    closed: int
    p50: float
    p99: float
    slowest: str
    slowest_p99: float
    before: float
    after: float


class Stream(asyncio.Protocol):
    """A stream held open.

    answered    the status of the answer, when the first message has arrived, or the whole head of a refusal
    retry       the seconds after which a client opens it again, once it has ended or was refused
    """

    def __init__(self) -> None:
        self.answered: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.retry = DEFAULT_RETRY_SECONDS
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def ask(self, request: bytes) -> None:
        assert self._transport
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        if self.answered.done():
            return
        self._received += data
        status = int(self._received[9:12])
        if status == 200 and b"event: " in self._received:
            if match := re.search(rb"retry: (\d+)\n", self._received):
                self.retry = int(match[1]) / 1000
            self._finish(status)
        elif status != 200 and b"\r\n\r\n" in self._received:
            match = re.search(rb"\r\nretry-after: (\d+)", self._received, re.IGNORECASE)
            self.retry = int(match[1]) if match else DEFAULT_RETRY_SECONDS
            self._finish(status)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.answered.done():
            self._finish(0)

    def abort(self) -> None:
        if self._transport:
            self._transport.abort()

    def _finish(self, status: int) -> None:
        self._received = b""
        self.answered.set_result(status)


def storm(service: CrowdedService, streams: int) -> Storm:
    """Open this many streams, end all their connections at once, and let all clients come again."""
    return uvloop.run(_Clients(service, streams).reconnect())


class _Clients:
    def __init__(self, service: CrowdedService, count: int) -> None:
        self._service = service
        self._request = service.stream()
        self._count = count
        self._refused = self._closed = 0
        self._took: list[float] = []

    async def reconnect(self) -> Storm:
        opening = asyncio.Semaphore(OPENING_AT_A_TIME)

        async def open_calmly(number: int) -> Stream:
            async with opening:
                return await self._open(number)

        streams = await asyncio.gather(*map(open_calmly, range(self._count)))
        before, retries = self._megabytes(), [stream.retry for stream in streams]
        self._took.clear()
        probes = Probes(self._service.port, self._service.probes)
        tasks = probes.start()
        probes.note()
        for stream in streams:
            stream.abort()
        ended = time.perf_counter()

        async def come_again(number: int, stream: Stream) -> Stream:
            await asyncio.sleep(stream.retry)
            return await self._open(number)

        try:
            async with asyncio.timeout(MAX_SECONDS):
                streams = await asyncio.gather(*(come_again(*numbered) for numbered in enumerate(streams)))
            back = time.perf_counter() - ended
        except TimeoutError:
            back = float("inf")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        after = self._megabytes()
        for stream in streams:
            stream.abort()
        seconds = {name: sorted(values) for name, values in probes.seconds.items()}
        slowest = max(seconds, key=lambda name: percentile(seconds[name], 0.99))
        took = sorted(self._took)
        return Storm(
            self._count,
            back,
            (min(retries), max(retries)),
            self._refused,
            self._closed,
            percentile(took, 0.5),
            percentile(took, 0.99),
            slowest,
            percentile(seconds[slowest], 0.99),
            before,
            after,
        )

    async def _open(self, number: int) -> Stream:
        """Open a stream, and try again as long as it is refused."""
        loop = asyncio.get_running_loop()
        while True:
            began, stream = time.perf_counter(), None
            try:
                _, stream = await loop.create_connection(
                    Stream, "127.0.0.1", self._service.port, local_addr=(address_of_client(number), 0)
                )
                stream.ask(self._request)
                status = await stream.answered
            except OSError:
                status = 0
            if stream and status == 200:
                self._took.append(time.perf_counter() - began)
                return stream
            if stream:
                stream.abort()
            self._refused += status != 0
            self._closed += status == 0
            await asyncio.sleep(stream.retry if stream else DEFAULT_RETRY_SECONDS)

    def _megabytes(self) -> float:
        return self._service.process.memory_info().rss / 1e6
