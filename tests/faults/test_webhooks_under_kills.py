"""Processes are killed while endpoints of webhooks fail, hang, repeat and go away: each message is acknowledged at
least once, none is lost, and numbers have no gaps.
"""

import asyncio
import os
import random
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from holdfast.kit.security.http_client import HttpClient
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import eventually
from tests.helpers.processes import Process, organizer_at, port_that_stays_free, register_all, running_processes
from tests.helpers.webhook_receiver import ReceivedMessage, ReceiverAnswer, open_receiver

SOAK = "HOLDFAST_SOAK" in os.environ
KILLS = 150 if SOAK else 4
PEOPLE = 20_000 if SOAK else 240
STORED_AT_ONCE = 320_000 if SOAK else 400
"""Further messages, as one cancellation may cause them."""

TIMEOUT_SECONDS = 7_200 if SOAK else 240
MAX_GROWTH_BYTES = 60_000_000
"""How much the memory of a process may grow after the last kill."""

ENDPOINTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "chosen": {"types": ["registration.settled"]},
    "ordered": {"ordered": True},
}


class Deliveries:
    """What receivers got and acknowledged, and how they answer: most messages well."""

    def __init__(self) -> None:
        self.secrets: dict[str, str] = {}
        self.acknowledged: dict[str, dict[str, tuple[str, int]]] = defaultdict(dict)
        self.order: dict[str, list[int]] = defaultdict(list)
        self.bodies: dict[tuple[str, str], int] = {}
        self.copies: Counter[tuple[str, str]] = Counter()
        self.faults: list[str] = []
        self.is_calm = False
        self._chance = random.Random(7)

    def answer(self, message: ReceivedMessage) -> ReceiverAnswer:
        """What a receiver answers."""
        endpoint = message.path.removeprefix("/")
        key = (endpoint, message.id)
        try:
            Webhook(self.secrets[endpoint]).verify(message.body, message.headers)
        except WebhookVerificationError as error:
            self.faults.append(f"{key}: {error}")
        if self.bodies.setdefault(key, hash(message.body)) != hash(message.body):
            self.faults.append(f"{key}: has another body than before")
        self.copies[key] += 1
        chance = 1.0 if self.is_calm else self._chance.random()
        if chance < 0.01:
            return ReceiverAnswer(500)
        if chance < 0.02:
            return ReceiverAnswer(0)
        if chance < 0.022:
            return ReceiverAnswer(-1)
        if chance < 0.03:
            return ReceiverAnswer(429, {"Retry-After": "1"})
        content = message.content
        subject, number = content["subject"], content["number"]
        if endpoint == "ordered" and message.id not in self.acknowledged[endpoint]:
            self.order[subject].append(number)
        self.acknowledged[endpoint][message.id] = subject, number
        return ReceiverAnswer(closes=chance < 0.1)


async def test_webhooks_are_acknowledged_under_kills_and_their_numbers_have_no_gaps(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, deliveries = port_that_stays_free(), Deliveries()
    monkeypatch.setenv("WEBHOOK_TEST_PORT", str(port))
    with running_processes(database_url, tmp_path, 2) as processes:
        key, events = await publish(processes[0])
        await make_endpoints(processes[0], key, port, deliveries)
        people = iter([{"event_id": random.choice(events), "email": f"{n}@example.com"} for n in range(PEOPLE)])
        async with asyncio.timeout(TIMEOUT_SECONDS):
            async with skip_pauses(database_url), coming_and_going(port, deliveries):
                await asyncio.gather(
                    register_all(processes, key, people, connections=8),
                    asyncio.to_thread(store_at_once, database_url),
                    kill_now_and_then(processes),
                )
            deliveries.is_calm = True
            memory = [process.memory() for process in processes]
            async with skip_pauses(database_url), receiver_at(port, deliveries):
                await eventually(lambda: has_ended(database_url), TIMEOUT_SECONDS)
            growth = max(process.memory() - before for process, before in zip(processes, memory, strict=True))

    with psycopg.connect(database_url) as connection:
        stored = connection.execute(
            "select substring(url from '[a-z]+$'), 'msg_' || message_id, subject, number, webhook_deliveries.status"
            "  from webhook_deliveries join webhook_endpoints on webhook_endpoints.id = endpoint_id"
            "  join webhook_messages on webhook_messages.id = message_id"
        ).fetchall()
        settled = connection.execute("select count(*) from registrations where status <> 'pending'").fetchone()
        caused = connection.execute("select count(*) from webhook_messages").fetchone()
    copies = deliveries.copies.total() - len(stored)
    print(f"{KILLS} kills, {len(stored)} deliveries, {copies} further copies; memory grew by {growth / 1e6:.0f} MB")
    assert deliveries.faults == []
    assert settled == (PEOPLE,)
    assert caused == (PEOPLE + STORED_AT_ONCE,)
    assert len(stored) == len(ENDPOINTS) * (PEOPLE + STORED_AT_ONCE)
    assert {status for *_, status in stored} == {"delivered"}
    assert {(endpoint, id): (subject, number) for endpoint, id, subject, number, _ in stored} == {
        (endpoint, id): content
        for endpoint, messages in deliveries.acknowledged.items()
        for id, content in messages.items()
    }
    numbers: dict[tuple[str, str], list[int]] = defaultdict(list)
    for endpoint, _, subject, number, _ in stored:
        numbers[endpoint, subject].append(number)
    assert all(sorted(every) == [*range(1, len(every) + 1)] for every in numbers.values())
    assert all(every == [*range(1, len(every) + 1)] for every in deliveries.order.values())
    assert growth < MAX_GROWTH_BYTES


async def publish(process: Process) -> tuple[str, list[int]]:
    """An organizer's key, and three events with seats for all."""
    async with organizer_at(process.url) as ada:
        return ada.key or "", [(await ada.create_event(capacity=PEOPLE + 1))["id"] for _ in range(3)]


async def make_endpoints(process: Process, key: str, port: int, deliveries: Deliveries) -> None:
    """Have messages sent to the receiver, at a path for each endpoint."""
    async with HttpClient(base_url=process.url, headers={"X-API-Key": key}, timeout=30) as http:
        for name, fields in ENDPOINTS.items():
            endpoint = {"url": f"http://127.0.0.1:{port}/{name}", **fields}
            answer = await http.post("/api/webhook_endpoints", json={"webhook_endpoint": endpoint})
            assert answer.status_code == 201, answer.text
            deliveries.secrets[name] = answer.json()["data"]["secret"]


async def kill_now_and_then(processes: list[Process]) -> None:
    """Kill one process after the other, and start it again."""
    for _ in range(KILLS):
        await asyncio.sleep(random.uniform(1.0, 4.0))
        process = random.choice(processes)
        process.kill()
        await asyncio.to_thread(process.start)


def store_at_once(database_url: str) -> None:
    """Store further messages in one transaction, about twenty subjects."""
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "insert into webhook_messages (tenant_id, type, subject, data)"
            " select tenant_id, 'registration.settled', 'event ' || 1000000 + number %% 20, '{}'"
            "   from (select distinct tenant_id from webhook_endpoints) as tenant, generate_series(1, %s) as number",
            [STORED_AT_ONCE],
        )


async def has_ended(database_url: str) -> bool:
    """Whether nothing waits."""
    with psycopg.connect(database_url) as connection:
        row = connection.execute(
            "select exists (select from registrations where status = 'pending')"
            " or exists (select from webhook_messages where not is_fanned_out)"
            " or exists (select from webhook_deliveries where status = 'waiting')"
        ).fetchone()
    return row == (False,)


@asynccontextmanager
async def receiver_at(port: int, deliveries: Deliveries) -> AsyncGenerator[None]:
    """A receiver that listens while the block runs."""
    async with open_receiver(port) as receiver:
        receiver.answer = deliveries.answer
        yield


@asynccontextmanager
async def coming_and_going(port: int, deliveries: Deliveries) -> AsyncGenerator[None]:
    """A receiver that is there for some seconds, and then away for a while, until the block ends."""

    async def run() -> None:
        while True:
            async with receiver_at(port, deliveries):
                await asyncio.sleep(random.uniform(1.0, 4.0))
            await asyncio.sleep(random.uniform(0.1, 0.5))

    async with run_in_background(run()):
        yield


@asynccontextmanager
async def skip_pauses(database_url: str) -> AsyncGenerator[None]:
    """While the block runs, the pauses after failures end at once."""

    async def run() -> None:
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
            while True:
                await connection.execute("update webhook_deliveries set due_at = now() where due_at > now()")
                await connection.execute(
                    "update webhook_endpoints set leased_until = now(), next_due_at = now()"
                    " where lease_id is null and (leased_until > now() or next_due_at > now())"
                )
                await connection.execute("select pg_notify('holdfast', 'webhook_deliveries ')")
                await asyncio.sleep(0.2)

    async with run_in_background(run()):
        yield
