"""The primary dies and its standby takes over: nothing that was acknowledged is lost, on either service."""

import asyncio
import os
from collections.abc import Coroutine, Iterator
from itertools import count
from pathlib import Path

import httpx2
import pytest

from holdfast.events.service import EVENTS
from holdfast.events.settings import Settings
from holdfast.inventory.service import INVENTORY
from holdfast.inventory.shops import operations as shops
from holdfast.inventory.stock.ledger_audit import audit
from holdfast.kit.security.http_client import HttpClient
from tests.faults.pair import Pair, pair
from tests.faults.stored_order import (
    assert_answered_before_sent_means_earlier,
    assert_places_went_in_order,
    register_organizer_with_event,
    registrations_in_order,
)
from tests.helpers.data_directories import wait_until
from tests.helpers.events_service import event_fields, eventually, running_events
from tests.helpers.inventory_service import unlimited
from tests.helpers.processes import AnsweredRegistration, Process, outcomes, running_processes
from tests.helpers.serving import PLAIN
from tests.inventory.ledger_agent import POOL_COUNT, LedgerAgent

ROUNDS = 20 if "HOLDFAST_SOAK" in os.environ else 1
SEATS, WAITING = 450, 5_000
BEFORE, AFTER = 400, 200
"""How many registrations are accepted before the primary dies, and by the new one."""

RETRY_SECONDS = 0.05
"""Seconds until who was refused asks again: 32 of them otherwise take the processor from the servers."""

CHANGES = 2_000

MAX_ANSWER_SECONDS = 2.0
"""The most seconds from the promotion to the first 202."""


@pytest.fixture
def servers() -> Iterator[Pair]:
    with pair() as servers:
        yield servers


class PersistentCrowd:
    """People who register from many connections, and ask again until they are accepted or there is no place."""

    def __init__(self, process: Process, key: str, event_id: int) -> None:
        self._process = process
        self._key = key
        self._event_id = event_id
        self._number = count()
        self.accepted: list[AnsweredRegistration] = []
        self.ended = False

    async def come(self, connections: int = 32) -> None:
        await asyncio.gather(*(self._one() for _ in range(connections)))

    async def _one(self) -> None:
        loop = asyncio.get_running_loop()
        async with HttpClient(verify=PLAIN, headers={"X-API-Key": self._key}, timeout=30) as http:
            while not self.ended:
                person = {"event_id": self._event_id, "email": f"new{next(self._number)}@example.com"}
                sent = loop.time()
                while not self.ended:
                    answer = await http.post(f"{self._process.url}/api/registrations", json={"registration": person})
                    if answer.status_code == 202:
                        self.accepted.append(AnsweredRegistration(sent, loop.time(), answer.json()["next"]["url"]))
                        break
                    assert answer.status_code == 503, answer.text
                    await asyncio.sleep(RETRY_SECONDS)

    async def wait_until_accepted(self, count: int) -> None:
        """Wait until a number of people were accepted."""
        await asyncio.to_thread(wait_until, lambda: len(self.accepted) >= count, 60)


@pytest.mark.parametrize("round", range(ROUNDS))
async def test_every_202_has_its_outcome_after_the_failover_and_the_first_new_one_comes_at_once(
    servers: Pair, tmp_path: Path, round: int
) -> None:
    EVENTS.migrate(servers.primary_url)
    with running_processes(servers.url, tmp_path, 1) as [process]:
        key, event_id = await register_organizer_with_event(process, capacity=SEATS, waitinglist_capacity=WAITING)
        crowd = PersistentCrowd(process, key, event_id)
        coming = asyncio.create_task(crowd.come())
        await crowd.wait_until_accepted(100)
        before = await outcomes(process, key, [request.poll for request in crowd.accepted[:50]])
        await crowd.wait_until_accepted(BEFORE)
        await asyncio.to_thread(servers.kill_primary)
        await asyncio.to_thread(servers.promote)
        promoted = asyncio.get_running_loop().time()
        count_before = len(crowd.accepted)
        await crowd.wait_until_accepted(count_before + AFTER)
        crowd.ended = True
        await coming
        answers = await outcomes(process, key, [request.poll for request in crowd.accepted])

    assert all("data" in answer or answer["code"] == "registration_rejected" for answer in answers.values())
    assert {poll: answers[poll] for poll in before} == before
    assert_places_went_in_order(registrations_in_order(servers.url, event_id), SEATS, WAITING)
    assert_answered_before_sent_means_earlier(crowd.accepted, answers)
    assert min(request.answered for request in crowd.accepted[count_before:]) - promoted < MAX_ANSWER_SECONDS


async def test_a_registration_is_not_acknowledged_while_the_standby_is_cut_off(servers: Pair, tmp_path: Path) -> None:
    EVENTS.migrate(servers.primary_url)
    with running_processes(servers.url, tmp_path, 1) as [process]:
        key, event_id = await register_organizer_with_event(process)
        body = {"registration": {"event_id": event_id, "email": "ann@example.com"}}
        async with HttpClient(base_url=process.url, headers={"X-API-Key": key}, timeout=30) as http:

            async def ask() -> httpx2.Response:
                return await http.post("/api/registrations", json=body)

            with servers.cut_off():
                asking = asyncio.create_task(ask())

                def refuses() -> bool:
                    # Background work commits too, so the first commit that waits need not be this request's.
                    servers.cancel_waiting()
                    return asking.done()

                await asyncio.to_thread(wait_until, refuses)
                refusal = await asking
                # The row is visible now, and the standby does not have it.
                again = asyncio.create_task(ask())
                await asyncio.to_thread(wait_until, servers.waiting)
                assert not again.done()
            answered = await again
            poll = answered.json()["next"]["url"]
            await outcomes(process, key, [poll])
            await asyncio.to_thread(servers.kill_primary)
            await asyncio.to_thread(servers.promote)
            await asyncio.to_thread(
                wait_until,
                lambda: httpx2.get(f"{process.url}/api/events", headers={"X-API-Key": key}).status_code == 200,
            )
            [outcome] = (await outcomes(process, key, [poll])).values()

    assert (refusal.status_code, refusal.json()["code"]) == (503, "service_unavailable")
    assert "may have been stored" in refusal.json()["error"]
    assert answered.status_code == 202
    assert outcome["data"]["status"] == "registered"


@pytest.mark.parametrize("round", range(ROUNDS))
async def test_every_acknowledged_change_of_stock_is_in_the_ledger_after_the_failover_and_once(
    servers: Pair, tmp_path: Path, round: int
) -> None:
    INVENTORY.migrate(servers.primary_url)
    database = INVENTORY.database(unlimited(servers.url, tmp_path))
    await database.open()
    shop, key = await database.transact(lambda tx: shops.add(tx, "busy.myshopify.com"))
    turns = iter(range(CHANGES))
    with running_processes(servers.url, tmp_path, 1, service="inventory") as processes:
        agents = [LedgerAgent(processes, key, number) for number in range(32)]
        async with HttpClient(verify=PLAIN, timeout=30, headers={"authorization": f"Bearer {key}"}) as http:
            for number in range(POOL_COUNT):
                await agents[0].insist(http, "create_pool", {"name": f"Pool {number}", "quantity": 100})
        working = asyncio.gather(*(agent.work(turns) for agent in agents))
        await asyncio.to_thread(wait_until, lambda: sum(len(agent.acknowledged) for agent in agents) > CHANGES // 4, 60)
        await asyncio.to_thread(servers.kill_primary)
        await asyncio.to_thread(servers.promote)
        await working

    stored: dict[str, list[int]] = {}
    for idempotency_key, id in await database.read(
        lambda tx: tx.tuples("select idempotency_key, id from ledger where idempotency_key is not null order by id")
    ):
        stored.setdefault(idempotency_key, []).append(id)
    differences = await database.read(lambda tx: audit(tx, shop.id))
    await database.close()
    assert {key: ids for agent in agents for key, ids in agent.acknowledged.items() if ids} == stored
    assert differences == []


async def test_a_commit_goes_on_when_its_caller_stops_waiting(servers: Pair, settings: Settings) -> None:
    EVENTS.migrate(servers.primary_url)
    async with running_events(settings.model_copy(update={"database_url": servers.url})) as service:
        with servers.cut_off():
            asking = asyncio.create_task(service.organizer("Ada Events"))
            await asyncio.to_thread(wait_until, servers.waiting)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            waiting = servers.waiting()
            seen = await service.run_sql("select from users")
        await eventually(lambda: service.run_sql("select from users"))

    assert len(waiting) == 1
    assert seen == []


async def test_a_repeated_request_is_answered_only_when_the_standby_has_what_it_confirms(
    servers: Pair, settings: Settings
) -> None:
    EVENTS.migrate(servers.primary_url)
    async with running_events(settings.model_copy(update={"database_url": servers.url})) as service:
        ada = await service.organizer("Ada Events")
        body = {"event": event_fields()}

        def publish() -> Coroutine[None, None, httpx2.Response]:
            return ada.post("/api/events", body, headers={"Idempotency-Key": "K"})

        first = await publish()
        with servers.cut_off():
            again = asyncio.create_task(publish())
            await asyncio.to_thread(wait_until, servers.waiting)
            assert not again.done()
        assert (await again).content == first.content
