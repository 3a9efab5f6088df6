"""Fixtures every test shares: a real PostgreSQL, a database of its own for each test, the service, its clients.

`service` runs in this process without background work, so a test decides itself when registrations are settled
(`await service.settle()`). What crosses processes starts real ones: see `tests/faults`.
"""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from holdfast.events.settings import Settings
from holdfast.kit import embedded
from tests.support import Service, fresh_migrations, running

os.environ.setdefault("COLUMNS", "200")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """A directory for the embedded PostgreSQL of the whole run."""
    # In memory where that is possible: tests kill our processes, never the machine.
    memory = Path("/dev/shm")
    return embedded.scratch_directory(memory if os.access(memory, os.W_OK) else None)


@pytest.fixture(scope="session")
def template_url(data_dir: Path) -> str:
    """A migrated database that tests are cloned from. `HOLDFAST_TEST_DATABASE_URL` names another server for it."""
    server = os.environ.get("HOLDFAST_TEST_DATABASE_URL")
    if server:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute("drop database if exists holdfast_template")
            connection.execute("create database holdfast_template")
        url = make_conninfo(server, dbname="holdfast_template")
    else:
        url = embedded.database_url(data_dir, "holdfast_template")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("alter system set fsync = off")
            connection.execute("select pg_reload_conf()")
    fresh_migrations(url)
    return url


@pytest.fixture
def database_url(template_url: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of this test's own."""
    name = f"test_{os.getpid()}_{abs(hash(request.node.nodeid)):x}"
    admin = make_conninfo(template_url, dbname="postgres")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(sql.SQL("create database {} template holdfast_template").format(sql.Identifier(name)))
    yield make_conninfo(template_url, dbname=name)
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    """The settings a test runs under: the defaults, with limits out of the way."""
    return Settings(
        data_dir=tmp_path,
        database_url=database_url,
        base_url="http://events.test",
        registrations_per_minute=1_000_000,
        organizers_per_hour=1_000_000,
    )  # pyright: ignore[reportCallIssue]


@pytest.fixture
async def service(settings: Settings) -> AsyncIterator[Service]:
    """The events service in this process, over its real HTTP interface."""
    async with running(settings) as service:
        yield service
