"""Serving several services from one process, until a signal stops it."""

import asyncio
import contextlib
import gc
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Generator, Sequence
from threading import Thread
from types import FrameType
from typing import NamedTuple, TypeVar

import uvicorn

A = TypeVar("A")

END_SECONDS = 15
"""Seconds until a worker process without a parent is ended if it has not ended by itself."""


class Served(NamedTuple):
    """How a service is served, and the socket that it is served on."""

    config: uvicorn.Config
    listener: socket.socket


def serve(services: Sequence[Served]) -> None:
    """Serve services from this process until a signal stops it."""
    servers = [_Server(each.config) for each in services]
    signals: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        for server in servers:
            server.handle_exit(number, frame)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)

    async def run() -> None:
        await asyncio.gather(*(server.serve([each.listener]) for server, each in zip(servers, services, strict=True)))

    with asyncio.Runner(loop_factory=servers[0].config.get_loop_factory()) as runner:
        runner.run(run())
    if any(not server.started for server in servers):
        sys.exit(3)
    if signal.SIGTERM in signals:
        sys.exit(128 + signal.SIGTERM)


class _Server(uvicorn.Server):
    """A server that does not handle signals; its caller does."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def only_serving(app: A) -> A:
    """Suit the interpreter to a process that serves this application, and does nothing else from now on."""
    gc.freeze()  # What was made until now stays until the end: the garbage collector leaves it out.
    gc.set_threshold(10_000, 20)
    # Threads that render texts for pages give way to the loop ten times as soon as they do by default.
    sys.setswitchinterval(0.0005)
    return app


def end_with_parent() -> None:
    """End this worker process, as by a signal, when the process that started it has ended."""
    parent = multiprocessing.parent_process()
    assert parent

    def end() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(END_SECONDS)
        os._exit(1)

    Thread(target=end, name="end with parent", daemon=True).start()


def signals_to_stop() -> asyncio.Queue[int]:
    """The signals that stop this process, from now on, for work that ends in order after the first of them.

    A handler that raised would interrupt whatever the loop does at that moment, and leave the rest of it running.
    """
    loop = asyncio.get_running_loop()
    signals = asyncio.Queue[int]()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, signals.put_nowait, number)
    return signals


def end_like_ctrl_c() -> None:
    # Without this, SIGTERM ends the process without its exit handlers, and the embedded server goes on running.
    def end(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)
