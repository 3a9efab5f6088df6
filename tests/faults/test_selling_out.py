"""An event sells out through two processes: in order, exactly once, under kills."""

import asyncio
import os
import random
from pathlib import Path

import pytest

from holdfast.kit.security.http_client import HttpClient
from tests.faults.stored_order import (
    assert_answered_before_sent_means_earlier,
    assert_places_went_in_order,
    register_organizer_with_event,
    registrations_in_order,
)
from tests.helpers.events_service import event_fields
from tests.helpers.processes import AnsweredRegistration, Process, outcomes, register_all, running_processes

SOAK = "HOLDFAST_SOAK" in os.environ
PART = 10 if SOAK else 3
SEATS, WAITING, ASKERS = 100 * PART, 50 * PART, 500 * PART


async def known_people(process: Process, key: str, count: int) -> list[str]:
    """The public ids of this many people, who are registered for another event already."""
    async with HttpClient(base_url=process.url, timeout=30, headers={"X-API-Key": key}) as http:
        event = await http.post("/api/events", json={"event": event_fields(capacity=count)})
    event_id = event.json()["data"]["id"]
    people = ({"event_id": event_id, "email": f"known{number}@example.com"} for number in range(count))
    accepted = await register_all([process], key, people)
    return [request.poll.rpartition("/")[2] for request in accepted]


async def test_seats_and_waiting_places_go_to_the_first_of_five_times_as_many_people(
    database_url: str, tmp_path: Path
) -> None:
    with running_processes(database_url, tmp_path, 2) as processes:
        key, event_id = await register_organizer_with_event(processes[0], capacity=SEATS, waitinglist_capacity=WAITING)
        people = [{"event_id": event_id, "email": f"new{number}@example.com"} for number in range(ASKERS * 3 // 5)]
        people += [{"event_id": event_id, "user_id": id} for id in await known_people(processes[1], key, ASKERS // 5)]
        people += random.choices(people, k=ASKERS // 5)
        random.shuffle(people)
        accepted = await register_all(processes, key, iter(people))
        answers = await outcomes(processes[1], key, sorted({request.poll for request in accepted}))

    final_rows = registrations_in_order(database_url, event_id)
    assert_places_went_in_order(final_rows, SEATS, WAITING)
    assert [status for status, _ in final_rows].count("registered") == SEATS
    assert [status for status, _ in final_rows].count("waitlisted") == WAITING
    assert len(final_rows) == len(answers)
    assert_answered_before_sent_means_earlier(accepted, answers)


@pytest.mark.parametrize("round", range(20 if SOAK else 1))
async def test_every_202_has_an_outcome_though_a_process_is_killed_ten_times(
    database_url: str, tmp_path: Path, round: int
) -> None:
    chance = random.Random(f"kills {round}")
    with running_processes(database_url, tmp_path, 2) as processes:
        key, event_id = await register_organizer_with_event(processes[0], capacity=SEATS, waitinglist_capacity=WAITING)
        people = [{"event_id": event_id, "email": f"new{number}@example.com"} for number in range(ASKERS * 4 // 5)]
        people += chance.choices(people, k=ASKERS // 5)
        chance.shuffle(people)
        accepted: list[AnsweredRegistration] = []
        # Small waves while there are places, so that the kills fall where they could do harm.
        for size in [20 * PART] * 8 + [170 * PART] * 2:
            wave, people = people[:size], people[size:]
            killed = chance.choice(processes)

            async def kill_and_start_again(process: Process, seconds: float) -> None:
                await asyncio.sleep(seconds)
                await asyncio.to_thread(process.kill)
                await asyncio.to_thread(process.start)

            registered, _ = await asyncio.gather(
                register_all(processes, key, iter(wave)), kill_and_start_again(killed, chance.uniform(0, 0.2))
            )
            accepted += registered
        assert people == []
        answers = await outcomes(processes[0], key, sorted({request.poll for request in accepted}))

    final_rows = registrations_in_order(database_url, event_id)
    assert_places_went_in_order(final_rows, SEATS, WAITING)
    assert [status for status, _ in final_rows].count("registered") == SEATS
    assert [status for status, _ in final_rows].count("waitlisted") == WAITING
    assert len(final_rows) >= len(answers)
    assert_answered_before_sent_means_earlier(accepted, answers)
