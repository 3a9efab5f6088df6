"""Registrations cause mails while processes are killed: none is lost, and none that was confirmed is sent again.

A client that sends anything after a mail was accepted proves that it knew of the confirmation. Until then a process may
have been killed before it could store it, and only then a second copy is allowed.
"""

import asyncio
import os
import random
import re
from collections import Counter
from pathlib import Path

import httpx2
import pytest

from tests.faults.processes import Process, register_all, serving
from tests.smtp import Received, Server, mail_server
from tests.support import event_fields, eventually, running, unlimited

SOAK = "HOLDFAST_SOAK" in os.environ
KILLS = 200 if SOAK else 3
PEOPLE = 20_000 if SOAK else 300
SECONDS = 1_800 if SOAK else 50
ID = re.compile(rb"^Message-ID: <(.+)>", re.MULTILINE | re.IGNORECASE)


async def test_each_mail_arrives_and_none_that_was_confirmed_is_sent_again(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mail_server() as server:
        for name, value in server.settings.items():
            monkeypatch.setenv(name.upper(), str(value))
        with serving(database_url, tmp_path, 2) as processes:
            key, event = await publish(processes[0])
            people = iter([{"event_id": event, "email": f"{number}@example.com"} for number in range(PEOPLE)])
            async with asyncio.timeout(SECONDS):
                _, kills = await asyncio.gather(
                    register_all(processes, key, people, connections=8), kill_now_and_then(processes, server)
                )

                async with running(unlimited(database_url, tmp_path)) as service:

                    async def nothing_waits() -> bool:
                        [(waiting,)] = await service.run_sql(
                            "select (select count(*) from registrations where status = 'pending')"
                            " + (select count(*) from mails where ended_at is null)"
                        )
                        return waiting == 0

                    await arrived(server, PEOPLE)
                    await eventually(nothing_waits, seconds=60)
                    rows = await service.run_sql("select recipient, kind, outcome from mails order by id")
                    statuses = await service.run_sql(
                        "select email, status::text from registrations join users on users.id = user_id"
                    )

    kinds = {"registered": "seat", "waitlisted": "waitlisted", "rejected": "refused"}
    assert len(statuses) == PEOPLE
    assert sorted(rows) == sorted((email, kinds[status], "sent") for email, status in statuses)
    copies = by_id(server)
    assert len(copies) == PEOPLE
    assert {each[0].recipient for each in copies.values()} == {email for email, _ in statuses}
    again = [each for each in copies.values() if len(each) > 1]
    assert not [each for each in again if any(copy.is_proved for copy in each[:-1])]
    print(f"{kills} kills, {PEOPLE} mails, {Counter(len(each) for each in copies.values())} copies, {len(again)} twice")
    assert sum(len(each) - 1 for each in again) <= 4 * kills


async def publish(process: Process) -> tuple[str, int]:
    """An organizer's key and an event with seats for half of the people, and a waiting list for some of the others."""
    organizer = {"name": "Ada Events", "email": "ada@example.com", "slug": "ada-events"}
    fields = event_fields(capacity=PEOPLE // 2, waitinglist_capacity=PEOPLE)
    async with httpx2.AsyncClient(base_url=process.url, timeout=30) as http:
        registered = (await http.post("/api/organizers/register", json={"organizer": organizer})).json()["data"]
        key = registered["api_key"]["key"]
        created = await http.post("/api/events", json={"event": fields}, headers={"X-API-Key": key})
        return key, created.json()["data"]["id"]


async def kill_now_and_then(processes: list[Process], server: Server) -> int:
    """Kill one process or the other whenever some more mails have arrived. Returns how often."""
    between = PEOPLE // (KILLS + 1)
    for number in range(KILLS):
        await arrived(server, number * between + random.randint(1, between))
        process = random.choice(processes)
        process.kill()
        await asyncio.to_thread(process.start)
    return KILLS


async def arrived(server: Server, count: int) -> None:
    """Wait until so many different mails have arrived."""
    loop, more = asyncio.get_running_loop(), asyncio.Event()
    server.arrived = lambda: loop.call_soon_threadsafe(more.set)
    while len(server.received) < count or len(by_id(server)) < count:
        more.clear()
        if len(server.received) < count or len(by_id(server)) < count:
            await more.wait()


def by_id(server: Server) -> dict[bytes, list[Received]]:
    """The copies of each mail, in the order in which they arrived."""
    copies: dict[bytes, list[Received]] = {}
    for each in list(server.received):
        found = ID.search(each.content)
        assert found
        copies.setdefault(found[1], []).append(each)
    return copies
