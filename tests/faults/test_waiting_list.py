"""People come and go through two processes: no seat is given twice, and none stays free while people wait."""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator
from pathlib import Path

import psycopg

from holdfast.kit.security.http_client import HttpClient
from tests.faults.stored_order import register_organizer_with_event
from tests.helpers.background_loops import run_in_background
from tests.helpers.processes import Process, running_processes
from tests.helpers.serving import PLAIN

CLIENTS = 64
SEATS, WAITING_PLACES = 20, 60

WRONG = """
    select registered_count, waitlisted_count, capacity, reversed
      from events
     cross join lateral (
        -- A guest who waits, though they came before one who has a seat.
        select exists (select from registrations as waiting
                         join registrations as seated using (event_id)
                        where event_id = events.id and waiting.status = 'waitlisted' and seated.status = 'registered'
                          and (waiting.received_at, waiting.arrival) < (seated.received_at, seated.arrival)) as reversed
           ) as line
     where registered_count > capacity or reversed or (registered_count < capacity and waitlisted_count > 0)
"""


@contextlib.asynccontextmanager
async def watch_event(database_url: str) -> AsyncGenerator[list[int]]:
    """Look at the event again and again while the block lasts: what is committed must be right at every moment.

    Gives how many people waited at each look.
    """
    waited: list[int] = []

    async def watch() -> None:
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
            while True:
                rows = await (await connection.execute(WRONG)).fetchall()
                assert rows == []
                counted = await (await connection.execute("select waitlisted_count from events")).fetchall()
                waited.append(counted[0][0])

    async with run_in_background(watch()):
        yield waited


async def comes_and_goes(process: Process, key: str, event_id: int, number: int, times: int) -> None:
    """Register people, and take back one of them every other time, whether it has been settled or not."""
    chance = random.Random(number)
    mine: list[str] = []
    async with HttpClient(verify=PLAIN, base_url=process.url, headers={"X-API-Key": key}, timeout=30) as http:
        for turn in range(times):
            if mine and chance.random() < 0.5:
                gone = await http.delete(mine.pop(chance.randrange(len(mine))))
                # A guest who was rejected has nothing to take back.
                assert gone.status_code == 204 or gone.json()["code"] == "registration_rejected", gone.text
                continue
            person = {"event_id": event_id, "email": f"n{number}t{turn}@example.com"}
            answer = await http.post("/api/registrations", json={"registration": person})
            if answer.status_code == 202:
                mine.append(answer.json()["next"]["url"])
            else:
                assert answer.json()["code"] == "event_full", answer.text


async def adds_seats(process: Process, key: str, event_id: int, times: int) -> None:
    """Raise capacity, a seat at a time."""
    async with HttpClient(verify=PLAIN, base_url=process.url, headers={"X-API-Key": key}, timeout=30) as http:
        for seats in range(SEATS + 1, SEATS + times + 1):
            raised = await http.patch(f"/api/events/{event_id}", json={"event": {"capacity": seats}})
            assert raised.status_code == 200, raised.text


async def test_64_clients_at_once_never_oversell_nor_leave_a_seat_free_nor_change_the_order(
    database_url: str, tmp_path: Path
) -> None:
    with running_processes(database_url, tmp_path, 2) as processes:
        prices = {"pricing_mode": "dynamic", "price": 2500, "min_price": 1000, "max_price": 6000}
        key, event_id = await register_organizer_with_event(
            processes[0], capacity=SEATS, waitinglist_capacity=WAITING_PLACES, **prices
        )
        async with watch_event(database_url) as waited, asyncio.TaskGroup() as group:
            for number in range(CLIENTS):
                group.create_task(comes_and_goes(processes[number % 2], key, event_id, number, 20))
            group.create_task(adds_seats(processes[0], key, event_id, 10))

    with psycopg.connect(database_url) as connection:
        assert connection.execute(WRONG).fetchall() == []
        changes = connection.execute("select original_price, new_price from price_changes order by id").fetchall()
    # The line was worth watching, and the price was told every time it changed.
    assert max(waited) > 10
    assert [original for original, _ in changes[1:]] == [new for _, new in changes[:-1]]
