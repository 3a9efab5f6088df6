"""`holdfast check` finds a standby that is away: on a PostgreSQL of its own, whose commits wait for it."""

import psycopg
from psycopg.conninfo import make_conninfo

from holdfast.events.checks import CHECKS
from holdfast.events.service import EVENTS
from holdfast.kit.postgres import bundled
from holdfast.kit.process.checks.check_list import run_checks
from holdfast.kit.process.checks.inspection import open_inspection
from tests.helpers.data_directories import scratch_directory
from tests.helpers.events_service import unlimited


async def test_a_standby_that_is_away_is_found_without_waiting_for_it() -> None:
    directory = scratch_directory()
    url = bundled.database_url(directory, "events")
    with psycopg.connect(make_conninfo(url, user="postgres"), autocommit=True) as connection:
        connection.execute("alter system set synchronous_standby_names = 'db2'")
        connection.execute("select pg_reload_conf()")

        inspection = await open_inspection(EVENTS, unlimited(url, directory))
        [finding] = await run_checks(inspection, [check for check in CHECKS if check.point == "standby"])

        connection.execute("alter system reset synchronous_standby_names")
        connection.execute("select pg_reload_conf()")
    assert (finding.status, finding.message) == (
        "wrong",
        "PostgreSQL waits for a standby (db2), and none is connected. Every change waits until one is.",
    )
    assert finding.remedy.startswith("Start the standby. To go on without it, as a superuser run: alter system set ")
