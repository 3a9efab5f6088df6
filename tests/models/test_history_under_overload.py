"""A crowd registers, waits in a queue and changes stock while PostgreSQL stalls and processes are killed.

The clients come from many addresses, wait for their answers, and honour Retry-After. Whenever PostgreSQL stands still,
work waits until more is refused, and then a process is killed in the middle of it. The histories explain every answer,
and nothing is there of what was refused.
"""

import asyncio
import contextlib
import itertools
import random
from collections.abc import Awaitable, Callable, Generator, Sequence
from pathlib import Path

import psutil
import psycopg
import pytest

from holdfast.events.service import EVENTS
from holdfast.inventory.service import INVENTORY
from tests.faults.stored_order import stored_tickets
from tests.helpers.data_directories import migrated_database, scratch_directory
from tests.helpers.events_service import eventually
from tests.helpers.inventory_service import unlimited
from tests.helpers.processes import organizer_at, running_processes
from tests.models import queue_history, registration_history, stock_history
from tests.models.crowd_client import AnyClient, CrowdClient
from tests.models.history import History, crash
from tests.models.machine import SEED, SOAK

PROCESSES = 2 if SOAK else 1
"""Processes of each of the two services."""

CLIENTS = [300 * PROCESSES, 300 * PROCESSES, 240 * PROCESSES]
"""Clients that are always there, of each history: enough that each process has 200 requests to do."""

LATE_CLIENTS = 60 * PROCESSES
"""Clients of each that come when the others wait already."""

ANSWERED_IN_SECONDS = 15
ROUNDS = 6 if SOAK else 1

MIN_ANSWERS, MIN_REFUSALS = 200, 20
"""Answers of each history between two faults, and refusals after which a process is killed."""


HistoryOfCrowd = tuple[History, Callable[[AnyClient, int], Awaitable[None]]]
"""A history, and what each of its clients does again and again."""


class HistoryClients:
    """The clients of histories of registrations, a queue and stock, which have one database server."""

    def __init__(self, histories: Sequence[HistoryOfCrowd]) -> None:
        self._histories = histories
        self._chance = random.Random(SEED)
        self._is_full = [asyncio.Event() for _ in histories]

    async def run(self, events_url: str, inventory_url: str) -> None:
        """Let all clients ask until everything has failed in turn, and it works again."""
        numbers = itertools.count()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._fail(events_url, inventory_url))
            for crowd, is_full, clients in zip(self._histories, self._is_full, CLIENTS, strict=True):
                for place in range(clients + LATE_CLIENTS):
                    group.create_task(self._keep_on(*crowd, next(numbers), is_full if place >= clients else None))

    async def _keep_on(
        self,
        history: History,
        client: Callable[[AnyClient, int], Awaitable[None]],
        number: int,
        is_full: asyncio.Event | None,
    ) -> None:
        with contextlib.closing(CrowdClient(number, history.headers, ANSWERED_IN_SECONDS)) as http:
            while not history.ended.is_set():
                if is_full:
                    await is_full.wait()
                await client(http, number)

    async def _fail(self, events_url: str, inventory_url: str) -> None:
        try:
            for _ in range(ROUNDS):
                await self._progress()
                with psycopg.connect(inventory_url) as locking:
                    locking.execute("lock table ledger in exclusive mode")
                    await self._refuse(2)
                    with stall_postgres(events_url):
                        await self._refuse(0, 1)
                        processes = [process for history, _ in self._histories for process in history.processes]
                        killed = self._chance.choice(processes)
                        await asyncio.to_thread(killed.kill)
                await asyncio.to_thread(killed.start)
                await self._progress()
                await asyncio.to_thread(crash, events_url)
            await self._progress()
        finally:
            for (history, _), is_full in zip(self._histories, self._is_full, strict=True):
                history.ended.set()
                is_full.set()

    async def _progress(self) -> None:
        goals = [(history, history.answers + MIN_ANSWERS) for history, _ in self._histories]
        await eventually(lambda: all(history.answers >= goal for history, goal in goals), seconds=60)

    async def _refuse(self, *crowded: int) -> None:
        """Let more clients of histories come when the others have waited for two seconds, until some are refused."""
        goals = [self._histories[number][0].refusals + MIN_REFUSALS for number in crowded]

        def are_refused() -> bool:
            return all(self._histories[number][0].refusals >= goal for number, goal in zip(crowded, goals, strict=True))

        # What waits for two seconds by now will wait for as long again, and four are too long for changes.
        await asyncio.sleep(2)
        for number in crowded:
            self._is_full[number].set()
        await eventually(are_refused, seconds=30)
        for number in crowded:
            self._is_full[number].clear()


@contextlib.contextmanager
def stall_postgres(database_url: str) -> Generator[None]:
    """While the block lasts, PostgreSQL stands still, as with a disk that does not answer."""
    with psycopg.connect(database_url) as connection:
        postmaster = psutil.Process(connection.info.backend_pid).parent()
    assert postmaster
    processes = [postmaster, *postmaster.children(recursive=True)]
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.suspend()
    try:
        yield
    finally:
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()


async def test_the_histories_explain_every_answer_under_overload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUEUE_RELEASE_INTERVAL_SECONDS", "1")
    directory = scratch_directory()
    events_url, inventory_url = (migrated_database(product, directory) for product in (EVENTS, INVENTORY))
    shop_key = await stock_history.create_shop(unlimited(inventory_url, tmp_path))
    with (
        running_processes(events_url, tmp_path, PROCESSES, base_url="http://events.example") as events,
        running_processes(inventory_url, tmp_path, PROCESSES, service="inventory") as inventory,
    ):
        async with organizer_at(events[0].url) as ada:
            ids, path = await registration_history.create_events(ada, 60), await queue_history.create_queue(ada)
        people = registration_history.People(History(events, events_url, ada.headers), ids)
        visitors = queue_history.Visitors(History(events, events_url, ada.headers), path)
        agents = stock_history.Agents(History(inventory, inventory_url, {"authorization": f"Bearer {shop_key}"}))
        ledger = await agents.begin()
        crowd = HistoryClients(
            [(people.history, people.come), (visitors.history, visitors.come), (agents.history, agents.work)]
        )
        await crowd.run(events_url, inventory_url)
        await registration_history.wait_until_settled(events_url)

    registration_history.explain_answers(people.history.exchanges, registration_history.list_registrations(events_url))
    queue_history.explain_answers(visitors.history.exchanges, *stored_tickets(events_url))
    stock_history.explain_answers(agents.history.exchanges, ledger, stock_history.read_versions(inventory_url))
