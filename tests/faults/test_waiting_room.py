"""A crowd lines up and is let in through two processes, one of which is killed again and again.

No visitor loses a place, no position rises, never more are released in an interval than the rate says, and no visitor
waits longer than was told.
"""

import asyncio
import contextlib
import itertools
import os
import random
import time
from bisect import bisect_left
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from holdfast.kit.security.http_client import HttpClient
from tests.faults.stored_order import stored_tickets
from tests.helpers.events_service import eventually
from tests.helpers.processes import Process, organizer_at, running_processes
from tests.helpers.serving import PLAIN

SOAK = "HOLDFAST_SOAK" in os.environ
VISITORS, RATE, KILLS = (100_000, 1_000, (3_000, 12_000)) if SOAK else (2_000, 200, (200, 600))
"""How many come, how many are released in a second, and how many come or are released between two kills, from and to.

If the clock said when to kill, a busy machine would for minutes kill the process that releases before it released a
visitor.
"""

WATCHERS = 4 if SOAK else 16
"""How many ask where visitors stand. Many, so that a busy machine gives enough answers too."""

PAUSE_SECONDS = 0 if SOAK else 0.2
"""Seconds between two questions of one who watches: without them, only those who ask have the processor."""

LATE = 1
"""The most seconds that a kill may add to what a visitor was told to wait."""


@dataclass
class AnsweredJoin:
    """A visitor who was answered with 202: when it was sent and answered."""

    sent: float
    answered: float


@dataclass
class VisitorStatus:
    """What a visitor was told, and when it was asked for and answered."""

    asked_at: float
    answered: float
    position: int
    wait: int


@dataclass
class VisitorRecords:
    """What the visitors of a queue saw."""

    key: str
    path: str
    joined: dict[str, AnsweredJoin] = field(default_factory=dict[str, AnsweredJoin])
    arrived: list[str] = field(default_factory=list[str])
    statuses: dict[str, list[VisitorStatus]] = field(default_factory=dict[str, list[VisitorStatus]])
    let_in: set[str] = field(default_factory=set[str])


async def ask(
    processes: list[Process], http: httpx2.AsyncClient, method: str, path: str, **options: Any
) -> tuple[float, Any]:
    """The answer of whichever process gives one, and when that one was asked."""
    number = random.randrange(len(processes))
    while True:
        asked_at = time.time()
        with contextlib.suppress(httpx2.TransportError):
            return asked_at, await http.request(method, processes[number % len(processes)].url + path, **options)
        number += 1


async def join_all(
    processes: list[Process], crowd: VisitorRecords, visitors: Iterator[str], connections: int = 32
) -> None:
    """Let visitors join from this many connections, some of them twice."""

    async def one() -> None:
        async with HttpClient(verify=PLAIN, headers={"X-API-Key": crowd.key}, timeout=30) as http:
            for visitor in visitors:
                body = {"visitor_id": visitor}
                for _ in range(1 + (random.random() < 0.1)):
                    # The first try may have got through, though its answer did not.
                    sent, (_, answer) = time.time(), await ask(processes, http, "POST", f"{crowd.path}/join", json=body)
                    assert answer.status_code == 202, answer.text
                    if visitor not in crowd.joined:
                        crowd.joined[visitor] = AnsweredJoin(sent, time.time())
                        crowd.arrived.append(visitor)

    await asyncio.gather(*(one() for _ in range(connections)))


async def watch(processes: list[Process], crowd: VisitorRecords, last: str) -> None:
    """Ask again and again where visitors stand who were answered, until the last of all was let in."""
    async with HttpClient(verify=PLAIN, headers={"X-API-Key": crowd.key}, timeout=30) as http:
        while last not in crowd.let_in:
            visitor = random.choice([random.choice(crowd.arrived), random.choice(crowd.arrived[-3:])])
            asked_at, answer = await ask(processes, http, "GET", f"{crowd.path}/status/{visitor}")
            status = answer.json()
            if status["status"] == "waiting":
                status_seen = VisitorStatus(asked_at, time.time(), status["position"], status["estimated_wait_seconds"])
                crowd.statuses.setdefault(visitor, []).append(status_seen)
            else:
                assert status["reason"] == "released", (visitor, status)
                crowd.let_in.add(visitor)
            await asyncio.sleep(PAUSE_SECONDS)


async def begin(processes: list[Process], crowd: VisitorRecords) -> float:
    """Let the queue begin; when it had."""
    async with HttpClient(verify=PLAIN, headers={"X-API-Key": crowd.key}, timeout=30) as http:
        _, answer = await ask(processes, http, "PATCH", crowd.path, json={"queue_event": {"starts_at": None}})
    assert answer.status_code == 200, answer.text
    return time.time()


async def kill_again_and_again(processes: list[Process], crowd: VisitorRecords, database_url: str) -> None:
    async def has_gone_on(goal: int) -> bool:
        return len(crowd.joined) + await asyncio.to_thread(count_released, database_url) >= goal

    goal = 0
    while True:
        goal += random.randint(*KILLS)
        await eventually(partial(has_gone_on, goal), 300)
        killed = random.choice(processes)
        await asyncio.to_thread(killed.kill)
        await asyncio.to_thread(killed.start)


@contextlib.asynccontextmanager
async def queue(process: Process) -> AsyncGenerator[VisitorRecords]:
    async with organizer_at(process.url) as ada:
        made = await ada.create_queue(release_rate=RATE, token_ttl_minutes=60, starts_at="2099-01-01T00:00:00Z")
        yield VisitorRecords(ada.key or "", f"/api/queues/{made['id']}")


def count_released(database_url: str) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("select coalesce(max(last_ticket), 0) from queue_releases").fetchone()
        assert row
        return row[0]


async def test_a_crowd_is_let_in_in_order_and_on_time_though_processes_are_killed(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUEUE_RELEASE_INTERVAL_SECONDS", "1")
    visitors = [f"visitor {number}" for number in range(VISITORS)]
    with running_processes(database_url, tmp_path, 2) as processes:
        async with queue(processes[0]) as crowd:
            killing = asyncio.create_task(kill_again_and_again(processes, crowd, database_url))
            await join_all(processes, crowd, iter(visitors[:-100]))
            watching = [asyncio.create_task(watch(processes, crowd, visitors[-1])) for _ in range(WATCHERS)]
            began = await begin(processes, crowd)
            await join_all(processes, crowd, iter(visitors[-100:]))
            await asyncio.gather(*watching)
            # Others may have come after the last one that is watched.
            await eventually(lambda: len(stored_tickets(database_url)[1]) == VISITORS)
            killing.cancel()
            await asyncio.gather(killing, return_exceptions=True)

    tickets, released = stored_tickets(database_url)
    at = dict(released)

    # No visitor lost a place, or has two.
    assert tickets.keys() == set(visitors)
    assert sorted(tickets.values()) == list(range(1, VISITORS + 1))
    assert [ticket for ticket, _ in released] == list(range(1, len(released) + 1))

    # A visitor who was answered before another one asked is ahead.
    by_answer = sorted(crowd.joined, key=lambda visitor: crowd.joined[visitor].answered)
    answered = [crowd.joined[visitor].answered for visitor in by_answer]
    furthest = list(itertools.accumulate((tickets[visitor] for visitor in by_answer), max))
    for visitor, joined in crowd.joined.items():
        if before := bisect_left(answered, joined.sent):
            assert furthest[before - 1] < tickets[visitor]

    # No position ever rose: what was asked for after an answer is no greater.
    for seen in crowd.statuses.values():
        seen.sort(key=lambda status: status.answered)
        answered = [status.answered for status in seen]
        lowest = list(itertools.accumulate((status.position for status in seen), min))
        for status in seen:
            before = bisect_left(answered, status.asked_at)
            assert not before or status.position <= lowest[before - 1]

    # In no interval were more released than the rate says.
    times = [moment for _, moment in released]
    assert times == sorted(times)
    for first, moment in enumerate(times):
        assert bisect_left(times, moment + 1) - first <= RATE

    # No visitor waited longer than was told. The wait begins when it is told: a busy machine takes long to answer.
    waits = [
        (at[tickets[visitor]] - status.answered, status.wait)
        for visitor, seen in crowd.statuses.items()
        for status in seen
        if status.asked_at > began
    ]
    assert len(waits) > 100
    assert [wait for wait in waits if wait[0] > wait[1] + LATE] == []
