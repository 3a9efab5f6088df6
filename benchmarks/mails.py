"""Mails a second with one, two and four processes, to a mail server that is fast, slow, or stalls at one address.

Each process is a worker alone (`holdfast events worker`). The mail server is a small one in a thread of this process.
The mails confirm registrations: each has a code, a calendar file and links. The floor is a bare loop in a process of
its own, which sends the same bytes to the same server over one connection, in the fewest writes. Then people register
at a steady rate, and the time from the insertion of each mail to its arrival is measured.

python -m benchmarks.mails [--help]
"""

import asyncio
import multiprocessing
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from threading import Event
from typing import Annotated, NamedTuple, cast

import msgspec
import psutil
import psycopg
import typer
from rich.table import Table

from benchmarks import load
from benchmarks.registrations import event_at, settled
from benchmarks.stage import holdfast, protocol_server, say, server, spending, worker
from holdfast.kit.postgres import bundled

STALLED = "n0@example.com"
"""The address at which the stalling mail server never answers."""

START_SECONDS = 3
"""Seconds until the mails are due, after all workers have started."""

TIMEOUT_SECONDS = 300

STEADY_SECONDS = 10
"""Seconds in which people register at a steady rate."""

CONTENTS: list[bytes] = []
"""Mails of the last run, which the bare loop sends again."""

UNTIL = re.compile(rb"\r\n\.\r\n$")


class Sink:
    """A mail server that takes every mail and keeps none.

    pause       seconds before it answers to a content
    stalls      whether it never answers to `STALLED`
    """

    def __init__(self, pause: float, *, stalls: bool) -> None:
        self.pause, self.stalls = pause, stalls
        self.times: list[float] = []
        self.arrivals: dict[bytes, float] = {}
        """When the first copy of each mail has come, by the clock of the day and the id of the mail."""
        self.ids = set[bytes]()
        self.contents: list[bytes] = []
        """Some of the mails, with the lines that end them."""
        self.connections = 0
        self.changed = Event()

    def take(self, content: bytes) -> None:
        self.times.append(time.perf_counter())
        if match := re.search(rb"^Message-ID: <(.+?)>", content, re.MULTILINE | re.IGNORECASE):
            self.ids.add(match[1])
            self.arrivals.setdefault(match[1], time.time())
        self.contents = [*self.contents[:99], content]
        self.changed.set()

    def serving(self) -> AbstractContextManager[int]:
        """Gives the port."""
        return protocol_server(lambda: _Connection(self))


class _Connection(asyncio.Protocol):
    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._received = b""
        self._in_content = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._sink.connections += 1
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(b"220 sink\r\n")

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._in_content:
            if UNTIL.search(self._received[-5:]):
                content, self._received, self._in_content = self._received, b"", False
                asyncio.get_running_loop().call_later(self._sink.pause, self._accept, content)
            return
        while b"\r\n" in self._received and not self._in_content:
            line, _, self._received = self._received.partition(b"\r\n")
            self._answer(line)

    def _answer(self, line: bytes) -> None:
        command = line[:4].upper()
        if command == b"RCPT" and self._sink.stalls and STALLED.encode() in line:
            return
        self._in_content = command == b"DATA"
        if command == b"EHLO":
            self._transport.write(b"250-sink\r\n250 PIPELINING\r\n")
        else:
            self._transport.write(b"354 go on\r\n" if self._in_content else b"250 yes\r\n")

    def _accept(self, content: bytes) -> None:
        self._sink.take(content)
        self._transport.write(b"250 taken\r\n")


class Floor(NamedTuple):
    """What the bare loop takes. `processor`: seconds of the loop, without the mail server."""

    per_second: float
    processor: float


def send_bare(port: int, contents: list[bytes], mails: int) -> Floor:
    """Send the contents again and again until this many mails were sent."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        answers = connection.makefile("rb")

        def say_and_hear(data: bytes, count: int) -> None:
            connection.sendall(data)
            for _ in range(count):
                answers.readline()

        answers.readline()
        say_and_hear(b"EHLO bare\r\n", 2)
        started, spent = time.perf_counter(), time.process_time()
        for number in range(mails):
            say_and_hear(b"MAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.com>\r\nDATA\r\n", 3)
            say_and_hear(contents[number % len(contents)], 1)
        return Floor(mails / (time.perf_counter() - started), time.process_time() - spent)


class Case(NamedTuple):
    """A mail server, and how many processes send to it."""

    server: str
    pause: float
    stalls: bool
    processes: int


class Figures(NamedTuple):
    """What came of a case.

    per_second           mails a second until all but a twentieth have arrived
    seconds              until the last has arrived
    service, database    seconds of processors
    """

    per_second: float
    seconds: float
    service: float
    database: float
    copies: int
    connections: int


def main(
    mails: Annotated[int, typer.Option(help="Mails of each run.")] = 400,
    code: Annotated[str, typer.Option(help="PYTHONPATH of other code to measure.")] = "",
    processes: Annotated[str, typer.Option(help="How many processes, as a list.")] = "1,2,4",
    slow: Annotated[bool, typer.Option(help="Also slow mail servers.")] = True,
    pace: Annotated[int, typer.Option(help="Registrations a second at a steady rate; 0: none.")] = 100,
) -> None:
    """Measure how many mails a second leave."""
    url = bundled.database_url(bundled.scratch_directory(), "events")
    environment = {
        **os.environ,
        "EVENTS_DATABASE_URL": url,
        "EVENTS_SECRET_KEY": "a secret that only benchmarks use",
        "EVENTS_BASE_URL": "https://events.example",
        "API_REGISTRATION_RATE_LIMIT": "1000000000",
        "SMTP_SECURITY": "none",
        "MAIL_FROM": "Holdfast <tickets@events.example>",
        **({"PYTHONPATH": code} if code else {}),
    }
    subprocess.run([holdfast(), "events", "migrate"], env=environment, check=True, capture_output=True)
    _cause_mails(url, environment, mails)
    table = Table(title=f"{mails:,} mails a run")
    for heading in (
        "mail server",
        "processes",
        "mails a second",
        "last after",
        "service",
        "PostgreSQL",
        "copies",
        "connections",
    ):
        table.add_column(heading, justify="left" if heading == "mail server" else "right")
    for name, pause, stalls in (
        ("answers at once", 0.0, False),
        *((("takes 250 ms for a mail", 0.25, False), ("the same, stalls at one address", 0.25, True)) if slow else ()),
    ):
        for count in map(int, processes.split(",")):
            figures = _measure(url, environment, Case(name, pause, stalls, count), mails)
            table.add_row(
                *(name, str(count), f"{figures.per_second:,.0f}", f"{figures.seconds:.1f} s"),
                *(f"{seconds / mails * 1000:.1f} ms" for seconds in (figures.service, figures.database)),
                *(str(figures.copies), str(figures.connections)),
            )
    floor = _floor(mails)
    table.add_row(
        *("a bare loop", "1", f"{floor.per_second:,.0f}", ""),
        *(f"{floor.processor / mails * 1000:.2f} ms", "", "", ""),
    )
    say(table)
    if pace:
        latencies = _steady(url, environment, pace)
        p50, p99 = (latencies[int(len(latencies) * share)] for share in (0.5, 0.99))
        say(f"From the seat to the mail, at {pace} seats a second in one process: p50 {p50:.2f} s, p99 {p99:.2f} s")


def _floor(mails: int) -> Floor:
    """The bare loop with contents of the last run."""
    sink = Sink(0.0, stalls=False)
    with sink.serving() as port, ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(send_bare, port, CONTENTS, mails).result()


def _steady(url: str, environment: dict[str, str], pace: int) -> list[float]:
    """Seconds from the insertion of each mail to its arrival, sorted."""
    sink = Sink(0.0, stalls=False)
    count = STEADY_SECONDS * pace
    with sink.serving() as port:
        environment = {**environment, "SMTP_HOST": "127.0.0.1", "SMTP_PORT": str(port)}
        with server([holdfast(), "events", "serve", "--port", "0"], environment) as ours:
            key, event_id = event_at(ours, count)
            with psycopg.connect(url) as connection:
                connection.execute("update users set proved_at = now() - interval '90 days' where role = 'organizer'")

            def registrations() -> Generator[bytes]:
                for number in range(count):
                    body = {"registration": {"event_id": event_id, "email": f"s{number}@example.com", "notify": True}}
                    yield load.request("POST", "/api/registrations", key, msgspec.json.encode(body))

            def poll(body: bytes) -> bytes:
                return load.request("GET", msgspec.json.decode(body)["next"]["url"], key)

            load.paced(ours, registrations(), pace, poll)
            until = time.monotonic() + TIMEOUT_SECONDS
            while len(sink.ids) < count:
                sink.changed.clear()
                if len(sink.ids) < count and not sink.changed.wait(until - time.monotonic()):
                    raise SystemExit(f"Of {count} mails {len(sink.ids)} have arrived.")
    # A Message-ID names the microsecond in which the mail was inserted.
    return sorted(at - int(id.partition(b".")[2].partition(b"@")[0]) / 1e6 for id, at in sink.arrivals.items())


def _cause_mails(url: str, environment: dict[str, str], mails: int) -> None:
    """Register people, whose mails are not due yet."""
    with server([holdfast(), "events", "serve", "--port", "0", "--no-background"], environment) as port:
        key, event_id = event_at(port, mails)
        with psycopg.connect(url) as connection:
            # Mails of organizers that are new would be few (decision 68).
            connection.execute("update users set proved_at = now() - interval '90 days' where role = 'organizer'")
        bodies = [
            msgspec.json.encode(
                {"registration": {"event_id": event_id, "email": f"n{number}@example.com", "notify": True}}
            )
            for number in range(mails)
        ]
        load.run(port, (load.request("POST", "/api/registrations", key, body) for body in bodies))
    if environment.get("PYTHONPATH"):
        script = "import asyncio, sys; from benchmarks.registrations import settled; asyncio.run(settled(sys.argv[1]))"
        subprocess.run([sys.executable, "-c", script, url], env=environment, check=True, cwd=Path(__file__).parents[1])
    else:
        asyncio.run(settled(url))


def _measure(url: str, environment: dict[str, str], case: Case, mails: int) -> Figures:
    sink = Sink(case.pause, stalls=case.stalls)
    expected = mails - case.stalls
    with ExitStack() as stack, psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "update mails set due_at = now() + interval '1 hour', ended_at = null, outcome = null, attempts = 0"
        )
        port = stack.enter_context(sink.serving())
        workers = [stack.enter_context(worker({**environment, "SMTP_HOST": "127.0.0.1", "SMTP_PORT": str(port)}))]
        workers += [
            stack.enter_context(worker({**environment, "SMTP_HOST": "127.0.0.1", "SMTP_PORT": str(port)}))
            for _ in range(case.processes - 1)
        ]
        while _sessions(connection) < case.processes:
            time.sleep(0.1)
        time.sleep(START_SECONDS)
        connection.execute("vacuum analyze mails")
        postmaster = psutil.Process(connection.info.backend_pid).parent()
        assert postmaster
        spent = spending(workers, postmaster)
        before = spent()
        connection.execute("update mails set due_at = now()")
        connection.execute("select pg_notify('holdfast', 'mails ')")
        until = time.monotonic() + TIMEOUT_SECONDS
        while len(sink.ids) < expected:
            sink.changed.clear()
            if len(sink.ids) < expected and not sink.changed.wait(until - time.monotonic()):
                raise SystemExit(f"Of {expected} mails {len(sink.ids)} have arrived.")
        after = spent()
        CONTENTS[:] = sink.contents
        # Mails to the same 64th of all mailboxes as the one that stalls wait for it.
        most = len(sink.times) * 19 // 20
        return Figures(
            most / (sink.times[most] - sink.times[0]),
            sink.times[-1] - sink.times[0],
            after[0] - before[0],
            after[1] - before[1],
            len(sink.times) - len(sink.ids),
            sink.connections,
        )


def _sessions(connection: psycopg.Connection) -> int:
    """How many workers have started: each has a session for mails."""
    [count] = connection.execute(
        "select count(*) from pg_stat_activity where application_name like '% mails' and datname = current_database()"
    ).fetchone() or [0]
    return count


if __name__ == "__main__":
    typer.run(main)
