"""The clock of the database is set back: people keep their order of arrival, and the audit names it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import psycopg
import pytest
from psycopg import sql

from tests.events.log.log_scene import LogScene, seal_logs
from tests.events.log.verification import rules, verify
from tests.helpers.databases import scratch_database
from tests.helpers.events_service import Client, Service, running_events, unlimited
from tests.verify.formats.verifiers import download

# Functions of this name in another schema stand before those of PostgreSQL.
CLOCK = """
    create schema clock;
    create table clock.ahead as select interval '0' as by;
    create function clock.clock_timestamp() returns timestamptz language sql volatile as
        'select pg_catalog.clock_timestamp() + by from clock.ahead';
"""


@pytest.fixture
async def clock_service(template_url: str, tmp_path: Path) -> AsyncIterator[Service]:
    """A service whose database has a clock that can be set, by `set_clock`."""
    # A new database, since connections that are open already would go on with the right clock.
    with scratch_database(template_url, "clock") as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(CLOCK)
            path = sql.SQL("alter database {} set search_path = clock, pg_catalog, public")
            connection.execute(path.format(sql.Identifier(connection.info.dbname)))
        async with running_events(unlimited(url, tmp_path)) as service:
            yield service


async def set_clock(service: Service, minutes: float) -> None:
    """Let the clock be this many minutes ahead of the right time."""
    await service.run_sql("update clock.ahead set by = make_interval(secs => %(seconds)s)", seconds=60 * minutes)


async def register(ada: Client, event_id: int, name: str) -> None:
    await ada.register(event_id, email=f"{name}@example.com")


async def audit(service: Service, log: LogScene, directory: Path) -> tuple[list[str], set[str]]:
    """The outcomes by number, and the rules that are broken, as `holdfast verify` finds."""
    await seal_logs(service)
    outcomes = [entry["outcome"] for entry in await log.read() if entry["kind"] == "arrival"]
    address = f"http://{log.origin}"
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=service.app), base_url=address) as client:
        await download(client, directory)
        (directory / "key").write_bytes((await client.get("key")).content)
    _, report = await asyncio.to_thread(verify, directory)
    return outcomes, rules(report)


async def test_a_clock_that_is_set_back_changes_no_place_and_the_audit_names_it(
    clock_service: Service, tmp_path: Path
) -> None:
    service = clock_service
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=1)
    log = LogScene(service, 0, f"/log/events/{event['id']}")
    await set_clock(service, 5)
    await register(ada, event["id"], "ann")
    await service.settle()
    assert await audit(service, log, tmp_path) == (["registered"], set())

    # A person who comes later has a later time, although the clock says something else.
    await set_clock(service, 0)
    await register(ada, event["id"], "ben")
    await service.settle()

    assert await audit(service, log, tmp_path) == (["registered", "waitlisted"], {"time", "cut"})


async def test_a_registration_settled_after_the_clock_was_set_back_passes_the_audit(
    clock_service: Service, tmp_path: Path
) -> None:
    service = clock_service
    ada = await service.organizer()
    event = await ada.create_event(capacity=1, waitinglist_capacity=1)
    log = LogScene(service, 0, f"/log/events/{event['id']}")
    await set_clock(service, 5)
    await register(ada, event["id"], "ann")
    await set_clock(service, 0)
    await register(ada, event["id"], "ben")
    assert await service.settle() == 1
    assert await audit(service, log, tmp_path) == (["registered"], set())

    await set_clock(service, 5.1)
    assert await service.settle() == 1
    assert await audit(service, log, tmp_path) == (["registered", "waitlisted"], set())
