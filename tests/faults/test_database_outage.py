"""PostgreSQL is away for a while: requests are refused at once, and served again as soon as it is back."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psutil
import pytest

from holdfast.events.service import EVENTS
from holdfast.kit.postgres.bundled_server import SUPERUSER, Cluster
from tests.helpers.data_directories import data_directory, used_directory, wait_until
from tests.helpers.processes import Process, running_processes

MAX_ANSWER_SECONDS = 2.0
"""Seconds an answer may take that waits for nothing, on a busy machine. A pool that waits takes five."""

OUTAGE = 8.0
"""Seconds that PostgreSQL is away: longer than the first three pauses that grow by doubling."""

PAUSE_SECONDS = 0.02
"""Seconds between two requests meanwhile, which leave the processor to other tests."""

KEY = "hf_" + 43 * "x"
"""A key that is looked up in the database."""


@pytest.fixture
def postgres() -> Iterator[Cluster]:
    """A server that nobody starts again but the test."""
    with used_directory() as directory:
        cluster = Cluster(directory / "postgres", directory / "postgres.log")
        cluster.start()
        yield cluster
        cluster.stop()


@pytest.fixture
def process(postgres: Cluster, tmp_path: Path) -> Iterator[Process]:
    url = postgres.url(SUPERUSER, "postgres")
    EVENTS.migrate(url)
    with running_processes(url, tmp_path, 1) as (process,):
        yield process


def is_served(http: httpx2.Client) -> bool:
    """Whether a key is looked up."""
    return status_of_key(http) == 401


def status_of_key(http: httpx2.Client) -> int:
    return http.get("/api/events", headers={"X-API-Key": KEY}).status_code


def figure(http: httpx2.Client, name: str) -> str:
    """The value of a figure of `/metrics`; empty: there is none."""
    lines = http.get("/metrics").text.splitlines()
    return next((line.removeprefix(name).strip() for line in lines if line.startswith(f"{name} ")), "")


def test_requests_are_refused_at_once_while_postgresql_is_away_and_served_as_soon_as_it_is_back(
    postgres: Cluster, process: Process
) -> None:
    with httpx2.Client(base_url=process.url, timeout=30) as http:
        wait_until(lambda: is_served(http))
        postgres.stop()
        wait_until(lambda: status_of_key(http) == 503)
        away = time.monotonic()
        slowest = 0.0
        while time.monotonic() < away + OUTAGE:
            began = time.monotonic()
            assert status_of_key(http) == 503
            slowest = max(slowest, time.monotonic() - began)
            time.sleep(PAUSE_SECONDS)
        assert slowest < MAX_ANSWER_SECONDS

        postgres.start()
        wait_until(lambda: is_served(http), seconds=MAX_ANSWER_SECONDS)
        wait_until(lambda: "the database is back" in process.log.read_text())

    lines = process.log.read_text().splitlines()
    assert len([line for line in lines if "the database is away" in line]) == 1
    assert len([line for line in lines if "the database is back" in line]) == 1
    assert len(lines) < 30
    assert [line for line in lines if "Traceback" in line] == []


def test_a_process_without_its_database_stays_ready_counts_what_it_refuses_and_reports_the_outage(
    postgres: Cluster, process: Process
) -> None:
    refusals = 'holdfast_requests_total{operation="list_events",status="503"}'
    up = 'holdfast_database_up{service="events"}'
    with httpx2.Client(base_url=process.url, timeout=30) as http:
        wait_until(lambda: figure(http, up) == "1.0")
        postgres.stop()
        wait_until(lambda: figure(http, up) == "0.0", seconds=30)

        assert http.get("/readyz").status_code == 200
        assert status_of_key(http) == 503
        assert float(figure(http, refusals)) >= 1
        postgres.start()
        wait_until(lambda: figure(http, up) == "1.0", seconds=30)


def test_a_database_that_hangs_counts_as_away_and_holds_up_no_scrape(postgres: Cluster, process: Process) -> None:
    up = 'holdfast_database_up{service="events"}'
    number = int((postgres.directory / "postmaster.pid").read_text().split()[0])
    with httpx2.Client(base_url=process.url, timeout=30) as http:
        wait_until(lambda: figure(http, up) == "1.0")
        postmaster = psutil.Process(number)
        postmaster.suspend()  # from now on it starts no further one
        servers = [postmaster, *postmaster.children()]
        try:
            for server in servers:
                server.suspend()
            wait_until(lambda: figure(http, up) == "0.0", seconds=30)
        finally:
            for server in servers:
                server.resume()
        wait_until(lambda: figure(http, up) == "1.0", seconds=30)


def test_a_connection_lost_while_idle_is_never_given_to_a_request(postgres: Cluster, process: Process) -> None:
    with httpx2.Client(base_url=process.url, timeout=30) as http:
        wait_until(lambda: is_served(http))
        postgres.stop()
        postgres.start()
        wait_until(lambda: "the database is back" in process.log.read_text() or is_served(http))
        wait_until(lambda: is_served(http), seconds=MAX_ANSWER_SECONDS)
        for _ in range(20):
            assert is_served(http)


def test_a_process_whose_postgresql_is_gone_ends_within_ten_seconds(postgres: Cluster, process: Process) -> None:
    with httpx2.Client(base_url=process.url, timeout=30) as http:
        wait_until(lambda: is_served(http))
        postgres.stop()
        wait_until(lambda: status_of_key(http) == 503)

    began = time.monotonic()
    process.stop()
    assert time.monotonic() - began < 10


def test_the_service_goes_on_when_its_bundled_postgresql_was_killed(tmp_path: Path) -> None:
    with data_directory() as directory, running_processes("", directory, 1) as (process,):
        with httpx2.Client(base_url=process.url, timeout=30) as http:
            wait_until(lambda: is_served(http))
            number = int((directory / "postgres" / "postmaster.pid").read_text().split()[0])
            os.kill(number, signal.SIGKILL)
            wait_until(lambda: "PostgreSQL runs again" in process.log.read_text())
            wait_until(lambda: is_served(http), seconds=MAX_ANSWER_SECONDS)
        assert process.stop() == 128 + signal.SIGTERM


def test_a_process_that_serves_reports_how_many_processes_do_the_background_work(
    postgres: Cluster, tmp_path: Path
) -> None:
    working = 'holdfast_background_processes{service="events"}'
    url = postgres.url(SUPERUSER, "postgres")
    EVENTS.migrate(url)
    with (
        running_processes(url, tmp_path, 1, "--no-background") as (process,),
        httpx2.Client(base_url=process.url, timeout=30) as http,
    ):
        wait_until(lambda: figure(http, working) == "0.0")
        with running_processes(url, tmp_path, 1) as (worker,):
            wait_until(lambda: figure(http, working) == "1.0", seconds=30)
            worker.kill()
            wait_until(lambda: figure(http, working) == "0.0", seconds=30)
