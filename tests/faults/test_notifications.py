"""A lost notification costs time, and at most the documented time."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2

from holdfast.events.queues import release
from holdfast.events.seats import settlement
from holdfast.events.service import EVENTS
from holdfast.kit.postgres import lookup_cache
from holdfast.kit.security.http_client import HttpClient
from tests.faults.lost_notifications import SLACK_SECONDS, cut_off_listener, kill_before_its_notice, start_dying_process
from tests.faults.pair import pair
from tests.faults.stored_order import register_organizer_with_event
from tests.helpers.data_directories import wait_until
from tests.helpers.events_service import queue_fields, running_events, unlimited
from tests.helpers.processes import Process, outcomes, register_person, running_processes


async def settled_after(process: Process, key: str, poll: str) -> float:
    """Seconds until a registration has a seat."""
    began = time.monotonic()
    [answer] = (await outcomes(process, key, [poll])).values()
    assert answer["data"]["status"] == "registered"
    return time.monotonic() - began


class NotifiedQueue:
    """A waiting room, and the visitors who wait in it."""

    def __init__(self, http: httpx2.AsyncClient, path: str) -> None:
        self._http = http
        self._path = path

    @classmethod
    @contextlib.asynccontextmanager
    async def open_at(cls, process: Process, key: str) -> AsyncGenerator["NotifiedQueue"]:
        async with HttpClient(headers={"X-API-Key": key}, timeout=30) as http:
            made = await http.post(f"{process.url}/api/queues", json={"queue_event": queue_fields()})
            yield cls(http, f"/api/queues/{made.json()['data']['id']}")

    async def join(self, process: Process, visitor: str) -> None:
        joined = await self._http.post(f"{process.url}{self._path}/join", json={"visitor_id": visitor})
        assert joined.status_code == 202, joined.text

    async def released_after(self, process: Process, visitor: str) -> float:
        """Seconds until a visitor is let in."""
        began = time.monotonic()
        while True:
            answer = await self._http.get(f"{process.url}{self._path}/status/{visitor}")
            if answer.json().get("reason") == "released":
                return time.monotonic() - began
            await asyncio.sleep(0.01)


async def test_a_registration_whose_process_died_before_its_notice_is_settled_by_a_poll(
    database_url: str, tmp_path: Path
) -> None:
    with start_dying_process(database_url, tmp_path) as (works, dies):
        key, event_id = await register_organizer_with_event(works)
        await settled_after(works, key, await register_person(works, key, event_id, "ann@example.com"))

        poll = await register_person(dies, key, event_id, "ben@example.com")
        await asyncio.to_thread(kill_before_its_notice, database_url, dies)
        took = await settled_after(works, key, poll)

    assert took < settlement.POLL_SECONDS + SLACK_SECONDS


async def test_a_visitor_whose_process_died_before_its_notice_is_released_by_a_poll(
    database_url: str, tmp_path: Path
) -> None:
    with start_dying_process(database_url, tmp_path) as (works, dies):
        key, _ = await register_organizer_with_event(works)
        async with NotifiedQueue.open_at(works, key) as queue:
            await queue.join(dies, "ann")
            await asyncio.to_thread(kill_before_its_notice, database_url, dies)
            took = await queue.released_after(works, "ann")

    assert took < release.POLL_SECONDS + SLACK_SECONDS


async def test_settlement_and_release_go_on_while_the_listening_connection_is_cut_off(
    database_url: str, tmp_path: Path
) -> None:
    with running_processes(database_url, tmp_path, 2) as (one, two):
        key, event_id = await register_organizer_with_event(one)
        async with NotifiedQueue.open_at(one, key) as queue, cut_off_listener(database_url):
            poll = await register_person(two, key, event_id, "ann@example.com")
            settled = await settled_after(one, key, poll)
            await queue.join(two, "ann")
            released = await queue.released_after(one, "ann")

    assert settled < settlement.POLL_SECONDS + SLACK_SECONDS
    assert released < release.POLL_SECONDS + SLACK_SECONDS


async def test_a_key_ends_everywhere_while_the_listening_connection_is_cut_off(
    database_url: str, tmp_path: Path
) -> None:
    with running_processes(database_url, tmp_path, 2) as (one, two):
        key, _ = await register_organizer_with_event(one)
        async with HttpClient(timeout=30, headers={"X-API-Key": key}) as http:
            made = (await http.post(f"{one.url}/api/keys", json={"api_key": {"name": "Second"}})).json()["data"]
            second = {"X-API-Key": made["key"]}

            async def status() -> int:
                return (await http.get(f"{two.url}/api/events", headers=second)).status_code

            assert await status() == 200
            async with cut_off_listener(database_url):
                revoked = await http.delete(f"{one.url}/api/keys/{made['id']}")
                began = time.monotonic()
                assert revoked.status_code == 204
                while await status() != 401:
                    assert time.monotonic() - began < lookup_cache.TTL_SECONDS + SLACK_SECONDS


async def test_a_commit_that_waits_for_the_standby_does_not_delay_notices_of_others(tmp_path: Path) -> None:
    with pair() as servers:
        EVENTS.migrate(servers.primary_url)
        async with running_events(unlimited(servers.url, tmp_path)) as service:
            ada = await service.organizer()
            event = await ada.create_event()
            with servers.cut_off():
                waiting = asyncio.create_task(ada.register(event["id"], email="ann@example.com"))
                await asyncio.to_thread(wait_until, servers.waiting)
                async with asyncio.timeout(5):
                    await service.wait_for_notices()
                assert not waiting.done()
            await waiting
