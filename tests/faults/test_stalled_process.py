"""A process is stopped and continued: the others go on, and what it does afterwards is right.

Everything stays open while it is stopped: its transactions, its locks, its mails. PostgreSQL ends transactions that
are idle for ten seconds, and its session as a leader after three.
"""

import asyncio
import itertools
import os
import random
import time
from bisect import bisect_left
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.inventory.service import INVENTORY
from holdfast.inventory.shops import operations as shops
from holdfast.inventory.stock.ledger_audit import audit
from holdfast.kit.security.http_client import HttpClient
from tests.faults.stored_order import (
    assert_answered_before_sent_means_earlier,
    assert_places_went_in_order,
    register_organizer_with_event,
    registrations_in_order,
    stored_tickets,
)
from tests.helpers.events_service import eventually, queue_fields
from tests.helpers.inventory_service import unlimited
from tests.helpers.processes import (
    AnsweredRegistration,
    Process,
    establish_organizers,
    outcomes,
    register_person,
    running_processes,
    use_mail_server,
)
from tests.helpers.serving import PLAIN
from tests.helpers.smtp import mail_server
from tests.inventory.ledger_agent import POOL_COUNT, LedgerAgent

SOAK = "HOLDFAST_SOAK" in os.environ
STALL, ROUNDS = (20.0, 4) if SOAK else (4.0, 1)
SEATS, WAITING = 400, 100_000
RATE = 100
"""How many visitors are let in in a second."""

PAUSE = 0.1
"""Seconds between two requests of a client: thousands would only be a load."""

LOCKED = 13.0
"""The most seconds for which what the stopped process has locked may keep the others from it."""

CLIENTS = 8
"""How many connections each process has for registering, and as many for joining the queue."""


class MixedCrowd:
    """People who register and visitors who join a queue, each by one process, until the crowd has ended.

    accepted    those who were answered with 202, by the process that answered
    joined      the visitors who have a place, in order
    """

    def __init__(self, processes: list[Process], key: str, event_id: int, queue: str) -> None:
        self.accepted: list[list[AnsweredRegistration]] = [[] for _ in processes]
        self.joined: list[str] = []
        self.mails_expected = 0
        self.ended = False
        self._processes = processes
        self._key = key
        self._event_id = event_id
        self._queue = queue
        self._numbers = itertools.count()

    async def come(self) -> None:
        numbers = range(len(self._processes))
        clients = [work(number) for number in numbers for work in (self._register, self._join) for _ in range(CLIENTS)]
        await asyncio.gather(*clients)

    async def _register(self, process: int) -> None:
        async with self._client(process) as http:
            while not self.ended:
                number = next(self._numbers)
                notify = number % 20 == 0
                person = {"event_id": self._event_id, "email": f"new{number}@example.com", "notify": notify}
                sent = time.time()
                answer = await insist(http, "/api/registrations", {"registration": person})
                assert answer.status_code == 202, answer.text
                self.accepted[process].append(AnsweredRegistration(sent, time.time(), answer.json()["next"]["url"]))
                self.mails_expected += notify
                await asyncio.sleep(PAUSE)

    async def _join(self, process: int) -> None:
        async with self._client(process) as http:
            while not self.ended:
                visitor = f"visitor {next(self._numbers)}"
                answer = await insist(http, f"{self._queue}/join", {"visitor_id": visitor})
                assert answer.status_code == 202, answer.text
                self.joined.append(visitor)
                await asyncio.sleep(PAUSE)

    def _client(self, process: int) -> httpx2.AsyncClient:
        address, headers = self._processes[process].url, {"X-API-Key": self._key}
        return HttpClient(verify=PLAIN, base_url=address, headers=headers, timeout=STALL + 40)


async def insist(http: httpx2.AsyncClient, path: str, body: Any) -> httpx2.Response:
    """The answer, as soon as it is not that the service is unavailable. A process that wakes closes connections."""
    while True:
        with suppress(httpx2.TransportError):
            answer = await http.post(path, json=body)
            if answer.status_code != 503:
                return answer
        await asyncio.sleep(PAUSE)


@asynccontextmanager
async def suspend_until_end(process: Process) -> AsyncGenerator[float]:
    """Stop a process until the block has ended and `STALL` seconds have gone by. Yields when it was stopped."""
    process.suspend()
    began = time.time()
    try:
        yield began
        await asyncio.sleep(max(0.0, began + STALL - time.time()))
    finally:
        process.resume()


async def open_queue(process: Process, key: str) -> str:
    async with HttpClient(base_url=process.url, headers={"X-API-Key": key}, timeout=30) as http:
        made = await http.post("/api/queues", json={"queue_event": queue_fields(release_rate=RATE)})
    return f"/api/queues/{made.json()['data']['id']}"


async def test_registrations_a_queue_and_mails_go_on_and_are_right_when_the_process_wakes(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUEUE_RELEASE_INTERVAL_SECONDS", "1")
    with mail_server() as server:
        use_mail_server(server, monkeypatch)
        monkeypatch.setenv("API_REGISTRATION_NOTIFY", "false")
        with running_processes(database_url, tmp_path, 3) as processes:
            key, event_id = await register_organizer_with_event(
                processes[1], capacity=SEATS, waitinglist_capacity=WAITING
            )
            establish_organizers(database_url)
            queue = await open_queue(processes[1], key)
            crowd = MixedCrowd(processes, key, event_id, queue)
            coming = asyncio.create_task(crowd.come())
            await eventually(lambda: is_truthy(len(crowd.joined) > 100 and server.received))
            # The first has been there longest, and leads.
            for number in [0, *random.choices(range(3), k=ROUNDS - 1)]:
                other = (number + 1) % 3
                async with suspend_until_end(processes[number]) as began:
                    await others_go_on(crowd, number, began)
                    if STALL > LOCKED:
                        await asyncio.sleep(began + LOCKED - time.time())
                        poll = await register_person(processes[other], key, event_id, f"late{began}@example.com")
                        await outcomes(processes[other], key, [poll], seconds=STALL - LOCKED)
                awake = time.time()
                await eventually(lambda number=number, awake=awake: was_answered(crowd.accepted[number], awake), 60)
            crowd.ended = True
            async with asyncio.timeout(STALL + 60):
                await coming
            accepted = [request for requests in crowd.accepted for request in requests]
            answers = await outcomes(processes[1], key, [request.poll for request in accepted], seconds=300)
            await eventually(lambda: is_truthy(len(server.copies) >= crowd.mails_expected), 120)

    final_rows = registrations_in_order(database_url, event_id)
    assert_places_went_in_order(final_rows, SEATS, WAITING)
    assert_answered_before_sent_means_earlier(accepted, answers)
    assert len(server.copies) == crowd.mails_expected
    assert not any(received.is_wrong for received in server.received)
    assert_the_queue_is_right(database_url, crowd)
    print(f"{len(accepted)} registrations, {len(crowd.joined)} visitors, {len(server.received)} mails, {ROUNDS} stops")


async def is_truthy(condition: object) -> bool:
    return bool(condition)


async def was_answered(accepted: list[AnsweredRegistration], since: float) -> bool:
    """Whether a client was answered who asked after that moment."""
    return any(request.sent > since for request in accepted)


async def others_go_on(crowd: MixedCrowd, number: int, began: float) -> None:
    """When the other processes have answered a client who asked since."""
    others = [requests for other, requests in enumerate(crowd.accepted) if other != number]
    visitors = len(crowd.joined)
    for requests in others:
        await eventually(lambda requests=requests: was_answered(requests, began))
    await eventually(lambda: is_truthy(len(crowd.joined) > visitors))


def assert_the_queue_is_right(database_url: str, crowd: MixedCrowd) -> None:
    """Every visitor has one place, the first came first, and in no second more were let in than may be."""
    tickets, released = stored_tickets(database_url)
    assert set(crowd.joined) <= tickets.keys()
    assert sorted(tickets.values()) == list(range(1, len(tickets) + 1))
    assert [ticket for ticket, _ in released] == list(range(1, len(released) + 1))
    times = [moment for _, moment in released]
    assert times == sorted(times)
    for first, moment in enumerate(times):
        assert bisect_left(times, moment + 1) - first <= RATE


async def test_stock_goes_on_and_every_balance_is_the_sum_of_its_entries_when_the_process_wakes(
    inventory_url: str, tmp_path: Path
) -> None:
    database = INVENTORY.database(unlimited(inventory_url, tmp_path))
    await database.open()
    shop, key = await database.transact(lambda tx: shops.add(tx, "busy.myshopify.com"))
    ended = False

    def turns() -> Iterator[int]:
        numbers = itertools.count()
        while not ended:
            yield next(numbers)

    shared = turns()
    with running_processes(inventory_url, tmp_path, 2, service="inventory") as processes:
        stalls, goes_on = (
            [LedgerAgent([process], key, number * CLIENTS + client) for client in range(CLIENTS)]
            for number, process in enumerate(processes)
        )
        agents = [*stalls, *goes_on]
        async with HttpClient(verify=PLAIN, timeout=30, headers={"authorization": f"Bearer {key}"}) as http:
            for number in range(POOL_COUNT):
                fields = {"name": f"Pool {number}", "quantity": 100, "allow_negative": number % 4 == 0}
                await agents[0].insist(http, "create_pool", fields)
        working = asyncio.gather(*(agent.work(shared) for agent in agents))
        for _ in range(ROUNDS):
            await more_changes(stalls)
            async with suspend_until_end(processes[0]):
                await more_changes(goes_on)
        await more_changes(stalls)
        ended = True
        await working

    differences = await database.read(lambda tx: audit(tx, shop.id))
    below_zero = await database.read(
        lambda tx: tx.tuples("select id from pools where on_hand < held and not allow_negative")
    )
    entries = await database.read(
        lambda tx: tx.tuples("select idempotency_key, id from ledger where idempotency_key is not null order by id")
    )
    await database.close()
    stored: dict[str, list[int]] = {}
    for idempotency_key, id in entries:
        stored.setdefault(idempotency_key, []).append(id)
    assert differences == []
    assert below_zero == []
    assert stored == {key: ids for agent in agents for key, ids in agent.acknowledged.items()}


async def more_changes(agents: list[LedgerAgent]) -> None:
    """Wait until the agents know of more changes that are stored."""

    def known() -> int:
        return sum(len(agent.acknowledged) for agent in agents)

    before = known()
    await eventually(lambda: is_truthy(known() > before + 100))
