"""Serves several services from one process, until a signal stops it."""

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

from holdfast.kit.http.sockets import copies_of_socket

A = TypeVar("A")

EXIT_TIMEOUT_SECONDS = 15
"""Seconds after which a worker process whose parent has ended is killed, if it has not ended by itself."""


class ServedService(NamedTuple):
    """The configuration of a served service, and its socket."""

    config: uvicorn.Config
    listener: socket.socket


def serve(services: Sequence[ServedService]) -> None:
    """Serve services from this process until a signal stops it."""
    servers = [_Server(service.config) for service in services]
    signals: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        for server in servers:
            server.handle_exit(number, frame)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)

    async def run() -> None:
        await asyncio.gather(
            *(
                server.serve(copies_of_socket(service.listener))
                for server, service in zip(servers, services, strict=True)
            )
        )

    with asyncio.Runner(loop_factory=servers[0].config.get_loop_factory()) as runner:
        runner.run(run())
    if any(not server.started for server in servers):
        sys.exit(3)
    if signal.SIGTERM in signals:
        sys.exit(128 + signal.SIGTERM)


class _Server(uvicorn.Server):
    """A server without signal handlers; its caller handles signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def tuned_for_serving(app: A) -> A:
    """Tune the interpreter for a process that only serves this application from now on. Returns the application."""
    gc.freeze()  # Existing objects stay until the end, so the garbage collector skips them.
    # With a thousand requests in progress, each early collection looks at all their objects and finds none to collect.
    gc.set_threshold(100_000, 20)
    # Threads that render texts for pages yield to the event loop ten times as often as by default.
    sys.setswitchinterval(0.0005)
    return app


def end_with_parent() -> None:
    """End this worker process, as by SIGTERM, when its parent process has ended."""
    parent = multiprocessing.parent_process()
    assert parent

    def end() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(EXIT_TIMEOUT_SECONDS)
        os._exit(1)

    Thread(target=end, name="end with parent", daemon=True).start()


def signals_to_stop() -> asyncio.Queue[int]:
    """A queue of the signals that stop this process, for work that ends in order after the first of them.

    A handler that raises would interrupt the running step of the event loop, and leave the rest of it running.
    """
    loop = asyncio.get_running_loop()
    signals = asyncio.Queue[int]()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, signals.put_nowait, number)
    return signals
