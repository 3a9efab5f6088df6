"""Event streams: many held open, and the time until each of them has told a change."""

import asyncio
import contextlib
import time

import psutil

from benchmarks import load


def is_listening(process: psutil.Process, port: int) -> bool:
    with contextlib.suppress(psutil.Error):
        return any(
            connection.laddr and connection.laddr.port == port and connection.status == "LISTEN"
            for connection in process.net_connections()
        )
    return False


class Subscriber(asyncio.Protocol):
    """A stream held open, whose first event tells how things are; it notes when each further one arrives."""

    def __init__(self, arrivals: asyncio.Queue[float]) -> None:
        self.arrivals = arrivals
        self.opened = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        for _ in range(data.count(b"event: ")):
            if self.opened.done():
                self.arrivals.put_nowait(time.perf_counter())
            else:
                self.opened.set_result(None)


async def fan_out(
    port: int, path: str, subscribers: int, process: psutil.Process, changes: tuple[bytes, bytes]
) -> tuple[float, int]:
    """Seconds from a change to the last of the streams, and the memory of the server while they are open.

    changes    the requests of a change that no stream tells, and of the one that is waited for
    """
    loop, arrivals = asyncio.get_running_loop(), asyncio.Queue[float]()
    request = load.request("GET", path)
    for start in range(0, subscribers, 100):
        streams: list[Subscriber] = []
        for _ in range(min(100, subscribers - start)):
            transport, stream = await loop.create_connection(lambda: Subscriber(arrivals), "127.0.0.1", port)
            transport.write(request)
            streams.append(stream)
        await asyncio.gather(*(stream.opened for stream in streams))
    memory = process.memory_info().rss
    connection = await load.connect(port)
    await connection.send(changes[0])
    started = time.perf_counter()
    await connection.send(changes[1])
    last = started
    for _ in range(subscribers):
        last = max(last, await asyncio.wait_for(arrivals.get(), 60))
    return last - started, memory
