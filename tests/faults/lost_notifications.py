"""Processes whose notifications are lost: the sender is killed, or the listener is cut off."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from tests.helpers.background_loops import run_in_background
from tests.helpers.data_directories import query_value, wait_until
from tests.helpers.events_service import eventually
from tests.helpers.processes import Process, running_processes

SLACK_SECONDS = 1.5
"""What a busy machine may take for the work itself, besides the bound for finding it."""

QUIET_SECONDS = 0.5

# A `pg_notify` that comes before PostgreSQL's own, and never returns.
TRAP = """
create schema trap;
create function trap.pg_notify(channel text, payload text) returns void language sql as 'select pg_sleep(25)'
"""
TRAPPED = """
select count(*)::int from pg_stat_activity
 where wait_event = 'PgSleep' and query like '%pg_notify%' and datname = current_database()
"""
END_TRAPPED = """
select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()
"""

# A `pg_notify` that sends no notice.
MUTE = """
create schema mute;
create function mute.pg_notify(channel text, payload text) returns void language sql as 'select'
"""

CUT_OFF = """
select count(pg_terminate_backend(pid)) from pg_stat_activity
 where right(application_name, 9) = ' listener' and datname = current_database()
"""


@contextlib.contextmanager
def start_dying_process(
    database_url: str, data_dir: Path, *, service: str = "events"
) -> Generator[tuple[Process, Process]]:
    """A process that works, and one whose notices never leave it. At the end of the block that one is killed."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(TRAP)
    trapped = make_conninfo(database_url, options="-csearch_path=trap,public,pg_catalog")
    with (
        running_processes(database_url, data_dir, 1, service=service) as [works],
        running_processes(trapped, data_dir, 1, "--no-background", service=service) as [dies],
    ):
        yield works, dies


def kill_before_its_notice(database_url: str, process: Process) -> None:
    """Kill a process that has committed, and is about to tell it."""
    wait_until(lambda: query_value(database_url, TRAPPED))
    process.kill()
    query_value(database_url, END_TRAPPED)


def mute_notifications(database_url: str) -> str:
    """The address of a database for a service whose notices are lost: as if it was killed before each of them."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(MUTE)
    return make_conninfo(database_url, options="-csearch_path=mute,public,pg_catalog")


async def wait_until_quiet(name: str) -> None:
    """When no task whose name begins so has run for half a second: then its loop has looked for more in vain."""
    loop = asyncio.get_running_loop()
    busy = loop.time()

    async def is_quiet() -> bool:
        nonlocal busy
        if any(task.get_name().startswith(name) for task in asyncio.all_tasks()):
            busy = loop.time()
        return loop.time() > busy + QUIET_SECONDS

    await eventually(is_quiet)


@contextlib.asynccontextmanager
async def cut_off_listener(database_url: str) -> AsyncGenerator[None]:
    """While the block lasts, listening connections are cut off again and again."""

    async def cut() -> None:
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
            while True:
                await connection.execute(CUT_OFF)
                cuts.set()
                await asyncio.sleep(0.1)

    cuts = asyncio.Event()
    async with run_in_background(cut()):
        await cuts.wait()
        yield
