"""Fixtures every test shares: a real PostgreSQL, a database as if new for each test, the service, its clients.

`service` runs in this process without background work, so a test decides itself when registrations are settled
(`await service.settle()`). What crosses processes starts real ones: see `tests/faults`.
"""

import asyncio
import functools
import gc
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import psycopg
import pytest
import structlog
import typer.testing
import uvloop
from argon2 import PasswordHasher
from psycopg.conninfo import make_conninfo

from holdfast.accounts.signin import operations
from holdfast.events.service import EVENTS
from holdfast.events.settings import Settings
from holdfast.inventory.service import INVENTORY
from holdfast.kit.background import leases
from holdfast.kit.postgres import bundled, lookup_cache
from holdfast.kit.postgres.notifications import Receiver
from tests.helpers.connections import ReusedConnection
from tests.helpers.data_directories import scratch_directory
from tests.helpers.databases import clone, drop_ended, scratch_database, shared_or_own, template_database
from tests.helpers.events_service import Service, empty_service, running_events, unlimited

os.environ.setdefault("COLUMNS", "200")

# What Hypothesis reads out of Unicode and out of our modules takes 4 s. The first worker keeps it for all others.
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(Path(__file__).parents[1] / ".hypothesis"))

# A busy machine is no failure: how long an example takes is not judged.
hypothesis.settings.register_profile("without_deadline", deadline=None)
hypothesis.settings.load_profile("without_deadline")

# What services log is shown when a test fails. To draw the frames of each exception took longer than to raise it.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
)

# The event loop of the services. With the hook that pytest-asyncio has for this, fixtures of a module end too early.
asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())  # pyright: ignore[reportDeprecated]

# The HTTP client tries to import this package at each request. It is not installed: fail at once, without the disk.
sys.modules["sniffio"] = None  # pyright: ignore[reportArgumentType]

# To build a command line takes longer than most commands that tests run in it, some of them hundreds of times.
setattr(typer.testing, "_get_command", functools.cache(typer.main.get_command))  # noqa: B010

# The pools of tests have the same class.
Receiver.connection_class = ReusedConnection

pytest_plugins = ["tests.hangs", "tests.isolation", "tests.long", "tests.refusals", "tests.shared_imports"]

# A password costs 0.1 s of a core and 64 MiB. That is what it is for, and not what hundreds of tests are about.
operations.HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Three workers for two cores: tests also wait, for timers and for connections and processes to start and end.

    With four, all tests took a fifth more of the processor, since its caches are shared. Long tests wait longer.
    """
    cores = os.cpu_count() or 1
    return 2 * cores if config.option.markexpr == "long" else max(2, 3 * cores // 2)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take long: the last one would leave the other workers idle."""
    from tests.long import rank  # a plugin, which pytest has to import first

    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    long = [path for path in files if any(item.get_closest_marker("long") for item in files[path])]
    long.sort(key=rank)
    order = sorted(files.keys() - long, key=lambda path: (-len(files[path]), path))
    # Not with all long tests at once: they wait for one another.
    for number, path in enumerate(long):
        order.insert(4 * number, path)
    items[:] = [item for path in order for item in files[path]]


def pytest_collection_finish() -> None:
    """Look for garbage in what tests make, seldom, and not in the tests themselves: `tests/__init__.py` disabled it."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(50_000, 50)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """A directory for the bundled PostgreSQL of the whole run."""
    return scratch_directory()


@pytest.fixture(scope="session")
def template_url(data_dir: Path) -> Iterator[str]:
    """A migrated database that tests are cloned from. `HOLDFAST_TEST_DATABASE_URL` names another server for it."""
    server = os.environ.get("HOLDFAST_TEST_DATABASE_URL")
    if server is None:
        server = bundled.database_url(data_dir, "postgres")
        with psycopg.connect(make_conninfo(server, user="postgres"), autocommit=True) as connection:
            connection.execute("alter role holdfast createdb")
            connection.execute("grant set on parameter deadlock_timeout to holdfast")
            # A database in which autovacuum works just then could not be dropped otherwise.
            connection.execute("grant pg_signal_backend to holdfast")
            connection.execute("alter system set fsync = off")
            connection.execute("alter system set full_page_writes = off")
            connection.execute("select pg_reload_conf()")
    with template_database(server, "holdfast_template", EVENTS) as url:
        yield url
    with psycopg.connect(make_conninfo(server, dbname="postgres"), autocommit=True) as connection:
        drop_ended(connection)


@pytest.fixture
def database_url(template_url: str) -> Iterator[str]:
    """A database of this test's own."""
    with clone(template_url) as url:
        yield url


@pytest.fixture(scope="session")
def inventory_template(template_url: str) -> Iterator[str]:
    """A migrated database of the inventory service that tests are cloned from, beside the events service's."""
    with template_database(template_url, "inventory_template", INVENTORY) as url:
        yield url


@pytest.fixture
def inventory_url(inventory_template: str) -> Iterator[str]:
    """A database of the inventory service, of this test's own."""
    with clone(inventory_template) as url:
        yield url


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    """The settings a test runs under."""
    return unlimited(database_url, tmp_path)


@pytest.fixture
async def own_service(settings: Settings) -> AsyncIterator[Service]:
    """The events service in this process, over its real HTTP interface, with a database of this test's own."""
    async with running_events(settings) as service:
        yield service


@pytest.fixture
def only_notices_end_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was looked up is kept until a notice ends it, and not ended by time."""
    monkeypatch.setattr(lookup_cache, "TTL_SECONDS", 3600.0)


@pytest.fixture
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases of rows last half a second."""
    monkeypatch.setattr(leases, "LEASE_SECONDS", 0.5)
    monkeypatch.setattr(leases, "RENEW_SECONDS", 0.05)


@pytest.fixture(scope="module")
def module_settings() -> dict[str, Any]:
    """What differs from the defaults in the settings of the service of a module; directories say it."""
    return {}


@pytest.fixture(scope="module")
async def module_service(
    template_url: str, tmp_path_factory: pytest.TempPathFactory, module_settings: dict[str, Any]
) -> AsyncIterator[Service]:
    """The events service of the tests of a module."""
    with clone(template_url) as url:
        settings = unlimited(url, tmp_path_factory.mktemp("data"))
        async with running_events(settings.model_copy(update=module_settings)) as service:
            yield service


@pytest.fixture
async def emptied_service(module_service: Service, template_url: str) -> Service:
    """The service of a module, with a database as if it were new."""
    await empty_service(module_service, template_url)
    return module_service


@pytest.fixture
def new_service(request: pytest.FixtureRequest, template_url: str) -> Service:
    """A service as if it were new: one of the test's own if it names that or its settings, else one of the module."""
    names = ("own_service", "settings", "database_url")
    return shared_or_own(request, template_url, *names, shared="emptied_service", unshared="own_service")


@pytest.fixture
def service(own_service: Service) -> Service:
    """The service that tests of a directory use: one of their own, unless the directory says otherwise."""
    return own_service


@pytest.fixture(scope="session")
async def common_service(template_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """The events service of all tests of a worker that look only at what belongs to organizers of their own."""
    with scratch_database(template_url, "common") as url:
        async with running_events(unlimited(url, tmp_path_factory.mktemp("data"))) as service:
            yield service
