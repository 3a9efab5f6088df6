"""What every benchmark needs: server processes, the best of several runs, a row of the table."""

import asyncio
import contextlib
import re
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Generator
from pathlib import Path
from threading import Thread

import httpx2
import psutil
from rich.console import Console
from rich.table import Table

from benchmarks import load
from benchmarks.scale.driving import processor_seconds

say = Console(width=110).print


class Best:
    """The best of several runs; a run with an answer of another status does not count."""

    def __init__(self) -> None:
        self.results: list[load.Result] = []

    def take(self, result: load.Result, status: int) -> None:
        if set(result.statuses) != {status}:
            raise SystemExit(f"Not every answer was {status}: {result.statuses}")
        self.results.append(result)
        say(f"  {result.per_second:,.0f}/s, p50 {result.percentile(0.5) * 1000:.1f} ms", style="dim")

    @property
    def best(self) -> float:
        return max(result.per_second for result in self.results)


def row(table: Table, what: str, ours: Best, floor: Best, goal: str) -> None:
    table.add_row(what, f"{ours.best:,.0f}", f"{floor.best:,.0f}", f"{ours.best / floor.best:.2f}", goal)


def holdfast() -> str:
    return str(Path(sys.executable).with_name("holdfast"))


@contextlib.contextmanager
def server(command: list[str], environment: dict[str, str]) -> Generator[int]:
    """A server process; gives the port it listens on."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    assert process.stdout
    try:
        for line in process.stdout:
            if address := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                port = int(address[1])
                # A server that logs much would stop at a full pipe.
                Thread(target=deque, args=(process.stdout, 0), daemon=True).start()
                # Of a service, this path renders no page: a page loads the data of languages, some megabytes.
                httpx2.get(f"http://127.0.0.1:{port}/healthz", timeout=30)
                yield port
                break
        else:
            raise SystemExit(f"{command[0]} did not start")
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def worker(environment: dict[str, str]) -> Generator[psutil.Process]:
    """A worker of the events service, in a process of its own."""
    process = subprocess.Popen(
        [holdfast(), "events", "worker"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def process_seconds(process_id: int) -> float:
    """The processor seconds that a process has used, to the microsecond. Only Linux tells it of another process."""
    return time.clock_gettime(~process_id << 3 | 2)  # the clock that clock_getcpuclockid(3) names


def spending(workers: list[psutil.Process], postmaster: psutil.Process) -> Callable[[], tuple[float, float]]:
    """A function for the processor seconds of the workers and of PostgreSQL."""

    def spent() -> tuple[float, float]:
        times = postmaster.cpu_times()
        database = times.user + times.system + times.children_user + times.children_system
        database += sum(map(processor_seconds, postmaster.children()))
        parts = [part for worker in workers for part in (worker, *worker.children(recursive=True))]
        return sum(map(processor_seconds, parts)), database

    return spent


@contextlib.contextmanager
def protocol_server(protocol: Callable[[], asyncio.Protocol]) -> Generator[int]:
    """A server in a thread of its own, on a free port, which is given."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    listening = asyncio.run_coroutine_threadsafe(loop.create_server(protocol, "127.0.0.1", 0), loop)
    try:
        yield listening.result().sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
