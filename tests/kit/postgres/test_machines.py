"""Operators are warned of what several machines on one database would each keep for themselves."""

import psycopg
import pytest
from structlog.testing import capture_logs

from holdfast.events.settings import Settings
from tests.support import eventually, running

ANOTHER = "holdfast events 0badcafe listener"
"""What a process of another machine calls the session by which it listens."""


async def warnings(settings: Settings, *, begins_again: bool = False) -> list[str]:
    """What a process that starts with these settings warns of, until it has looked."""
    with psycopg.connect(settings.database_url) as connection:
        row = connection.execute("select clock_timestamp()").fetchone()
        assert row
    with capture_logs() as logs:
        async with running(settings) as service:

            async def has_looked() -> bool:
                return bool(
                    await service.run_sql(
                        "select from pg_stat_activity where query like '%%distinct (application_name, client_addr)%%'"
                        " and pid <> pg_backend_pid() and state = 'idle' and datname = current_database()"
                        # Sessions are used again, and name the last query of an earlier test.
                        " and query_start > %(begun)s",
                        begun=row[0],
                    )
                )

            await eventually(has_looked)
    return [log["event"] for log in logs if log["log_level"] == "warning"]


async def test_a_second_machine_is_told_what_it_would_keep_for_itself_and_the_setting_for_it(
    settings: Settings,
) -> None:
    with psycopg.connect(settings.database_url, application_name=ANOTHER):
        limits, photos = await warnings(settings)

    assert limits.startswith("several machines use this database, but each counts rate limits by itself")
    assert "RATE_LIMIT_STORAGE_URL" in limits
    assert "S3_BUCKET" in photos


async def test_nobody_is_warned_of_what_machines_share(settings: Settings) -> None:
    shared = settings.model_copy(update={"rate_limit_storage_url": "redis://127.0.0.1:1", "s3_bucket": "photos"})

    assert shared.kept_by_each() == []


@pytest.mark.parametrize("another", ["holdfast inventory 0badcafe listener", "holdfast events jobs", "psql"])
async def test_another_program_of_the_database_is_no_machine(settings: Settings, another: str) -> None:
    with psycopg.connect(settings.database_url, application_name=another):
        async with running(settings):
            assert await warnings(settings) == []
