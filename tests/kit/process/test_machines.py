"""Operators are warned of state that several machines on one database do not share."""

import psycopg
import pytest
from structlog.testing import capture_logs

from holdfast.events.settings import Settings
from holdfast.kit.process.service import count_machines
from tests.helpers.events_service import Service, eventually, running_events

ANOTHER = "holdfast events 0badcafe listener"
"""What a process of another machine calls the session by which it listens."""


async def is_listening(service: Service) -> bool:
    return await count_machines(service.database) == 1


async def listeners(service: Service, count: int) -> bool:
    """Whether this many processes listen."""
    statement = """
        select from pg_stat_activity where datname = current_database() and application_name like '%% listener'
    """
    return len(await service.run_sql(statement)) == count


async def test_a_second_machine_is_warned_of_unshared_state_with_the_setting_for_it(
    settings: Settings,
) -> None:
    with psycopg.connect(settings.database_url, application_name=ANOTHER), capture_logs() as logs:

        def warnings() -> list[str]:
            return [log["event"] for log in logs if log["log_level"] == "warning"]

        async with running_events(settings):
            await eventually(lambda: len(warnings()) == 2)

    limits, photos = warnings()
    assert limits.startswith("several machines use this database, but each counts rate limits by itself")
    assert "RATE_LIMIT_STORAGE_URL" in limits
    assert "S3_BUCKET" in photos


async def test_state_that_machines_share_causes_no_warning(settings: Settings) -> None:
    shared = settings.model_copy(update={"rate_limit_storage_url": "redis://127.0.0.1:1", "s3_bucket": "photos"})

    assert shared.per_machine_state() == []


async def test_a_process_that_has_ended_is_not_counted(settings: Settings, own_service: Service) -> None:
    at_own_database = settings.model_copy(update={"database_url": own_service.database.url})
    for _ in range(2):
        async with running_events(at_own_database) as service:
            await eventually(lambda: listeners(service, 2))

        await eventually(lambda: listeners(own_service, 1))


@pytest.mark.parametrize("another", ["holdfast inventory 0badcafe listener", "holdfast events jobs", "psql"])
async def test_a_connection_of_another_program_does_not_count_as_a_machine(own_service: Service, another: str) -> None:
    await eventually(lambda: is_listening(own_service))

    with psycopg.connect(own_service.database.url, application_name=another):
        assert await count_machines(own_service.database) == 1
    with psycopg.connect(own_service.database.url, application_name=ANOTHER):
        assert await count_machines(own_service.database) == 2
