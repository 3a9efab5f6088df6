"""Ten times too much while PostgreSQL is slow, and while one of two processes ends: before, meanwhile, and afterwards.

PostgreSQL is slowed by a synchronous standby that applies each commit late, or by programs that write and flush files
on the disk of the database. The best meanwhile is what as many clients get as saturate the service; then come ten times
as many. Afterwards the fault is over: what as many clients as before get is measured once more.

python -m benchmarks.overload_faults [--help]
"""

import contextlib
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from threading import Timer
from typing import Annotated
from unittest import mock

import psutil
import typer

from benchmarks import probes
from benchmarks.crowd import Crowd, CrowdedService, Kind, Seen, percentile
from benchmarks.overload import raise_file_limit, say
from benchmarks.overload_events import events
from benchmarks.standby import servers
from holdfast.kit.postgres import bundled

FILE_BYTES = 1024 * 1024
"""The bytes that a program writes before it flushes them, as the log of a busy database."""

MAX_FILE_WRITES = 64
"""How often it does so before it begins the file anew."""

WARM_SECONDS = 1
"""Seconds before anything is noted, beside the time to connect."""

TIMES = 10
MAX_CLIENTS = 5_000

HEADINGS = (
    "what",
    "clients",
    "accepted/s",
    "of best",
    "p99 ms",
    "refused/s",
    "told to wait",
    "slowest probe, p99 ms",
    "calm s",
    "other",
)


def main(
    only: Annotated[str, typer.Option(help="Only the fault with this text in its name: standby, disk, process.")] = "",
    kinds: Annotated[str, typer.Option(help="Only kinds with this text in their name, such as by e-mail.")] = "",
    seconds: Annotated[float, typer.Option(help="Seconds of each run.")] = 10,
    clients: Annotated[int, typer.Option(help="Clients that saturate the service; then come ten times as many.")] = 500,
    delay: Annotated[int, typer.Option(help="Milliseconds by which the standby applies each commit late.")] = 1_000,
    writers: Annotated[int, typer.Option(help="Programs that write and flush files on the disk.")] = 4,
) -> None:
    """Measure the events service under overload with faults. The tables are Markdown."""
    raise_file_limit()
    faults: dict[str, Callable[[], list[Sequence[str]]]] = {
        f"a standby {delay} ms late": lambda: _with_standby(delay, kinds, seconds, clients),
        f"a disk with {writers} writers": lambda: _with_saturated_disk(writers, kinds, seconds, clients),
        "one process of two killed": lambda: _with_kill(kinds, seconds, clients),
    }
    for name, measure in faults.items():
        if only in name:
            rows = measure()
            print(f"\n{name}, {seconds:g} s each:\n")
            for row in (HEADINGS, ["---", *["--:"] * (len(HEADINGS) - 1)], *rows):
                print(f"| {' | '.join(row)} |")


def _with_standby(milliseconds: int, only: str, seconds: float, clients: int) -> list[Sequence[str]]:
    with servers() as standby:

        @contextlib.contextmanager
        def late() -> Generator[None]:
            standby.delay(milliseconds)
            try:
                yield
            finally:
                standby.delay(0)

        return _slowed(standby.make("events"), late, only, seconds, clients)


def _with_saturated_disk(writers: int, only: str, seconds: float, clients: int) -> list[Sequence[str]]:
    data_dir = bundled.scratch_directory()
    url = bundled.database_url(data_dir, "events")
    return _slowed(url, lambda: _saturated(data_dir, writers), only, seconds, clients)


@contextlib.contextmanager
def _saturated(directory: Path, writers: int) -> Generator[None]:
    """While the block lasts, programs write files beside the database and flush them to disk."""
    paths = [directory / f"written-{number}" for number in range(writers)]
    processes = [multiprocessing.Process(target=_write, args=[path], daemon=True) for path in paths]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process, path in zip(processes, paths, strict=True):
            process.kill()
            process.join()
            path.unlink(missing_ok=True)


def _write(path: Path) -> None:
    content = os.urandom(FILE_BYTES)
    while True:
        with path.open("wb") as file:
            for _ in range(MAX_FILE_WRITES):
                file.write(content)
                file.flush()
                os.fsync(file.fileno())


def _slowed(
    url: str, slow: Callable[[], contextlib.AbstractContextManager[None]], only: str, seconds: float, clients: int
) -> list[Sequence[str]]:
    """Before, meanwhile with as many clients and with ten times as many, and after what slows PostgreSQL."""
    rows: list[Sequence[str]] = []
    with tempfile.TemporaryDirectory(prefix="holdfast-overload-") as directory, events(directory, url) as service:
        for name, group in _groups(service, only).items():
            before = _run(service, group, clients, seconds)
            # It does not become calm before PostgreSQL is fast again.
            with slow(), mock.patch.object(probes, "MAX_CALM_SECONDS", 1):
                best = _run(service, group, clients, seconds)
                crowded = _run(service, group, min(MAX_CLIENTS, TIMES * clients), seconds)
            after = _run(service, group, clients, seconds)
            rows += [
                _row(f"{name}, before", before, before),
                _row("slow", best, best),
                _row("slow, and ten times as many", crowded, best),
                _row("after", after, before),
            ]
    return rows


def _with_kill(only: str, seconds: float, clients: int) -> list[Sequence[str]]:
    """Ten times as many clients of two processes on one port, one of which is killed; it is started again by itself."""
    rows: list[Sequence[str]] = []
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-overload-") as directory,
        events(directory, "", "--workers", "2") as service,
    ):
        for name, group in _groups(service, only).items():
            many = min(MAX_CLIENTS, TIMES * clients)
            best = _run(service, group, clients, seconds)
            before = _run(service, group, many, seconds)
            killing = Timer(WARM_SECONDS + many / 2_000 + seconds / 2, _kill_worker, [service.process])
            killing.start()
            meanwhile = _run(service, group, many, seconds)
            killing.join()
            after = _run(service, group, many, seconds)
            rows += [
                _row(name, best, best),
                _row("ten times as many, before", before, best),
                _row("a process is killed", meanwhile, best),
                _row("after", after, best),
            ]
    return rows


def _kill_worker(parent: psutil.Process) -> None:
    """Kill the process that has used most of the processor: one of those that answer."""

    def used(process: psutil.Process) -> float:
        return process.cpu_times().user

    max(parent.children(), key=used).kill()


def _groups(service: CrowdedService, only: str) -> dict[str, Sequence[Kind]]:
    """Registrations by e-mail, and all kinds together; or the kinds with a text in their name."""
    together = [kind for kind in service.kinds if kind.status < 400]
    groups = {kind.name: [kind] for kind in service.kinds if (only or "by e-mail") in kind.name}
    return {**groups, **({} if only else {"all together": together})}


def _run(service: CrowdedService, kinds: Sequence[Kind], clients: int, seconds: float) -> Seen:
    crowd = Crowd(service.port, service.process)
    warmed = [kind._replace(warm=max(kind.warm, WARM_SECONDS)) for kind in kinds]
    seen = crowd.run(warmed, clients, service.probes, seconds=seconds)
    say(f"  {clients:,} clients, {seen.accepted:,.0f}/s, {seen.refused:,.0f}/s refused", style="dim")
    return seen


def _row(name: str, seen: Seen, best: Seen) -> Sequence[str]:
    probe, slowest = max(
        ((name, percentile(values, 0.99)) for name, values in seen.probes.items()), key=lambda seen_by: seen_by[1]
    )
    return (
        name,
        f"{seen.clients:,}",
        f"{seen.accepted:,.0f}",
        f"{seen.accepted / best.accepted:.2f}" if best.accepted else "",
        f"{1000 * percentile(seen.latencies, 0.99):,.0f}",
        f"{seen.refused:,.0f}",
        f"{min(seen.pauses)} to {max(seen.pauses)} s" if seen.pauses else "",
        f"{probe} {1000 * slowest:,.0f}",
        f"{seen.calm:.1f}",
        ", ".join(f"{status or 'closed'}: {count}" for status, count in seen.other.items()),
    )


if __name__ == "__main__":
    typer.run(main)
