"""PostgreSQL crashes and restarts: acknowledged changes stay, and the service continues by itself."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.events.service import EVENTS
from holdfast.kit.security.http_client import HttpClient
from tests.helpers.data_directories import can_connect, data_directory, postmaster, start_users, wait_until
from tests.helpers.events_service import event_fields, eventually
from tests.helpers.processes import AnsweredRegistration, outcomes, running_processes


@pytest.fixture
def postgres() -> Iterator[tuple[Path, str]]:
    """A data directory with a server of this test's own, which another process starts again; and its database."""
    with data_directory() as directory, start_users(directory, "events") as (user,):
        EVENTS.migrate(user.url)
        yield directory, user.url


def crash(data_dir: Path, url: str) -> None:
    """Stop PostgreSQL without letting it finish anything, and wait until it runs again."""
    number = postmaster(data_dir)
    os.kill(number, signal.SIGQUIT)
    wait_until(lambda: not can_connect(url) or postmaster(data_dir) != number)
    wait_until(lambda: can_connect(url))


async def test_no_answered_registration_is_lost_when_postgresql_crashes(
    postgres: tuple[Path, str], tmp_path: Path
) -> None:
    directory, url = postgres
    with running_processes(url, tmp_path, 1) as (process,):
        async with HttpClient(base_url=process.url, timeout=30) as http:
            body = {"organizer": {"name": "Ada Events", "email": "ada@example.com", "slug": "ada-events"}}
            key = (await http.post("/api/organizers/register", json=body)).json()["data"]["api_key"]["key"]
            http.headers["X-API-Key"] = key
            event = (await http.post("/api/events", json={"event": event_fields(capacity=10_000)})).json()["data"]
            accepted: list[AnsweredRegistration] = []
            crashed = asyncio.Event()
            numbers = iter(range(10_000))

            async def keep_registering() -> None:
                after = 0
                for number in numbers:
                    person = {"event_id": event["id"], "email": f"n{number}@example.com"}
                    response = await http.post("/api/registrations", json={"registration": person})
                    assert response.status_code in {202, 503}, response.text
                    if response.status_code == 202:
                        accepted.append(AnsweredRegistration(0, 0, response.json()["next"]["url"]))
                        after += crashed.is_set()
                    if after >= 20:
                        return

            async def crash_in_between() -> None:
                await eventually(lambda: len(accepted) >= 200)
                await asyncio.to_thread(crash, directory, url)
                crashed.set()

            await asyncio.gather(crash_in_between(), *(keep_registering() for _ in range(8)))
        answers = await outcomes(process, key, [request.poll for request in accepted])

    assert len(accepted) >= 200 + 8 * 20
    assert {answer["data"]["status"] for answer in answers.values()} == {"registered"}
