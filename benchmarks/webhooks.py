"""Webhooks a second that one process delivers, and the time from the cause of a message to its arrival.

The process is a worker alone (`holdfast events worker`). The receiver is a small one in a thread of this process, which
answers at once. The floor is a bare loop in a process of its own, which posts the same bytes to the same receiver over
as many connections as one endpoint has. Then messages are stored at a steady rate, some every 10 ms, and the time from
the moment at which each was stored, before its commit, to its arrival is measured.

python -m benchmarks.webhooks [--help]
"""

import asyncio
import multiprocessing
import os
import re
import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager
from threading import Event
from typing import Annotated, LiteralString, NamedTuple, cast

import httpx2
import psutil
import psycopg
import typer
from rich.table import Table

from benchmarks import load
from benchmarks.registrations import event_at
from benchmarks.stage import holdfast, protocol_server, say, server, spending, worker
from holdfast.kit.postgres import bundled
from holdfast.kit.webhooks.sending import MAX_CONNECTIONS

TIMEOUT_SECONDS = 300

STEADY_SECONDS = 10
"""Seconds in which messages are stored at a steady rate."""

TICK_SECONDS = 0.01
"""Seconds between two transactions that store messages."""

SUBJECTS = 50

REQUESTS: list[bytes] = []
"""Some requests of the last run, which the bare loop sends again."""

ID = re.compile(rb"\r\nwebhook-id: (msg_\d+)\r\n", re.IGNORECASE)
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)

STORE: LiteralString = """
    insert into webhook_messages (tenant_id, type, subject, data)
    select tenant_id, 'registration.settled', 'event ' || 1 + number %% %(subjects)s,
           jsonb_build_object('event_id', 1 + number %% %(subjects)s, 'user_id', 'u7Qk2xYd' || number,
                              'status', 'registered', 'was', 'pending', 'reason', null, 'amount_paid', 0)
      from (select distinct tenant_id from webhook_endpoints) as tenant, generate_series(1, %(messages)s) as number
"""


class Receiver:
    """A program that takes every message and keeps none."""

    def __init__(self) -> None:
        self.arrivals: dict[bytes, float] = {}
        """When the first copy of each message has come, by its id and by the clock of the day."""
        self.copies = 0
        self.bytes = 0
        self.changed = Event()

    def take(self, request: bytes) -> None:
        self.copies += 1
        self.bytes += len(request)
        if match := ID.search(request):
            self.arrivals.setdefault(match[1], time.time())
        if len(REQUESTS) < 1_000:
            REQUESTS.append(request)
        self.changed.set()

    def forget(self) -> None:
        self.arrivals, self.copies, self.bytes = {}, 0, 0

    def wait(self, messages: int) -> None:
        """Wait until this many messages have come."""
        until = time.monotonic() + TIMEOUT_SECONDS
        while len(self.arrivals) < messages:
            self.changed.clear()
            if len(self.arrivals) < messages and not self.changed.wait(until - time.monotonic()):
                raise SystemExit(f"Of {messages} messages {len(self.arrivals)} have arrived.")

    def serving(self) -> AbstractContextManager[int]:
        """Gives the port."""
        return protocol_server(lambda: _Connection(self))


class _Connection(asyncio.Protocol):
    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        length = LENGTH.search(head + b"\r\n") if separator else None
        if length and len(body) >= int(length[1]):
            self._receiver.take(self._received)
            self._received = b""
            self._transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")


class Floor(NamedTuple):
    """What the bare loop takes. `processor`: seconds of the loop, without the receiver."""

    per_second: float
    processor: float


def post_bare(port: int, requests: list[bytes], count: int) -> Floor:
    """Post the requests again and again until this many were sent."""
    spent = time.process_time()
    result = load.run(port, (requests[number % len(requests)] for number in range(count)), MAX_CONNECTIONS)
    return Floor(result.per_second, time.process_time() - spent)


def main(
    messages: Annotated[int, typer.Option(help="Messages of each run.")] = 10_000,
    rounds: Annotated[int, typer.Option(help="Runs, of which the best counts.")] = 3,
    paces: Annotated[str, typer.Option(help="Messages a second at a steady rate, as a list.")] = "100,300,1000",
) -> None:
    """Measure how many webhooks a second are delivered, and when."""
    url = bundled.database_url(bundled.scratch_directory(), "events")
    receiver = Receiver()
    with receiver.serving() as port:
        environment = {
            **os.environ,
            "EVENTS_DATABASE_URL": url,
            "EVENTS_SECRET_KEY": "a secret that only benchmarks use",
            "WEBHOOK_TEST_PORT": str(port),
        }
        subprocess.run([holdfast(), "events", "migrate"], env=environment, check=True, capture_output=True)
        _add_endpoint(environment, port)
        with worker(environment) as process, psycopg.connect(url, autocommit=True) as connection:
            _deliver(connection, receiver, 100)  # until then nothing is warm
            table = Table(title=f"{messages:,} messages a run")
            for heading in ("", "a second", "service, each", "PostgreSQL, each", "copies", "bytes, each"):
                table.add_column(heading, justify="right" if heading else "left")
            for _ in range(rounds):
                table.add_row("one process", *_figures(connection, receiver, process, messages))
            for _ in range(rounds):
                floor = _floor(port, messages)
                processor = f"{floor.processor / messages * 1000:.2f} ms"
                table.add_row("a bare loop", f"{floor.per_second:,.0f}", processor, "", "", "")
            say(table)
            for pace in map(int, paces.split(",")):
                seconds = _steady(connection, receiver, pace)
                p50, p99 = (seconds[int(len(seconds) * share)] * 1000 for share in (0.5, 0.99))
                say(f"From the cause to the program, at {pace:,} a second: p50 {p50:.0f} ms, p99 {p99:.0f} ms")


def _add_endpoint(environment: Mapping[str, str], port: int) -> None:
    with server([holdfast(), "events", "serve", "--port", "0", "--no-background"], {**environment}) as ours:
        key, _ = event_at(ours, 10)
        answer = httpx2.post(
            f"http://127.0.0.1:{ours}/api/webhook_endpoints",
            json={"webhook_endpoint": {"url": f"http://127.0.0.1:{port}/"}},
            headers={"X-API-Key": key},
        )
        answer.raise_for_status()


def _figures(
    connection: psycopg.Connection, receiver: Receiver, process: psutil.Process, messages: int
) -> tuple[str, ...]:
    postmaster = psutil.Process(connection.info.backend_pid).parent()
    assert postmaster
    spent = spending([process], postmaster)
    before = spent()
    _deliver(connection, receiver, messages)
    times = sorted(receiver.arrivals.values())
    processor = (f"{(now - then) / messages * 1000:.2f} ms" for now, then in zip(spent(), before, strict=True))
    per_second = f"{len(times) / (times[-1] - times[0]):,.0f}"
    return per_second, *processor, str(receiver.copies - messages), f"{receiver.bytes / receiver.copies:.0f}"


def _deliver(connection: psycopg.Connection, receiver: Receiver, messages: int) -> None:
    """Store messages in one transaction, and wait until they have arrived and this is stored."""
    receiver.forget()
    _store(connection, messages)
    receiver.wait(messages)
    while _counts(connection, "select count(*) from webhook_deliveries where status = 'waiting'"):
        time.sleep(0.05)
    connection.execute("vacuum analyze webhook_messages, webhook_deliveries, webhook_endpoints")


def _store(connection: psycopg.Connection, messages: int) -> None:
    with connection.transaction():
        connection.execute(STORE, {"subjects": SUBJECTS, "messages": messages})
        connection.execute("select pg_notify('holdfast', 'webhook_messages ')")


def _counts(connection: psycopg.Connection, statement: LiteralString) -> int:
    [count] = connection.execute(statement).fetchone() or [0]
    return count


def _floor(port: int, messages: int) -> Floor:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(post_bare, port, REQUESTS, messages).result()


def _steady(connection: psycopg.Connection, receiver: Receiver, pace: int) -> list[float]:
    """Seconds from the storing of each message to its arrival, sorted."""
    receiver.forget()
    first = _counts(connection, "select coalesce(max(id), 0) from webhook_messages")
    started, stored = time.perf_counter(), 0
    while (passed := time.perf_counter() - started) < STEADY_SECONDS:
        if (due := int(passed * pace) - stored) > 0:
            _store(connection, due)
            stored += due
        time.sleep(TICK_SECONDS)
    receiver.wait(stored)
    rows = connection.execute(
        "select 'msg_' || id, extract(epoch from created_at)::float8 from webhook_messages where id > %s", [first]
    ).fetchall()
    return sorted(receiver.arrivals[id.encode()] - at for id, at in rows)


if __name__ == "__main__":
    typer.run(main)
