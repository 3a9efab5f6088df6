"""The end of a process behind a load balancer (`DRAIN_SECONDS`), seen by clients of real processes."""

import os
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import psycopg
import pytest

from tests.helpers.data_directories import wait_until
from tests.helpers.processes import Process, running_processes
from tests.helpers.serving import PLAIN

LONG = 60
"""Seconds of a drain that nobody waits for."""


def get(process: Process, path: str) -> httpx2.Response:
    """The answer on a new connection. On a busy machine it may get to a worker that is still starting."""
    return httpx2.get(process.url + path, verify=PLAIN, timeout=LONG / 2)


@contextmanager
def ready_to_drain(database_url: str, data_dir: Path, *options: str, seconds: float = LONG) -> Generator[Process]:
    """A process that serves, and will drain."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("DRAIN_SECONDS", str(seconds))
        with running_processes(database_url, data_dir, 1, *options) as (process,):
            assert get(process, "/readyz").status_code == 200
            yield process


def send_sigterm(process: Process) -> None:
    """Send SIGTERM, and return once a request on a new connection hears of it."""
    os.kill(process.id, signal.SIGTERM)
    until = time.monotonic() + 20
    while get(process, "/readyz").status_code != 503:
        assert time.monotonic() < until


def listeners(database_url: str) -> int:
    """The workers that serve: each of them listens."""
    with psycopg.connect(database_url) as connection:
        row = connection.execute(
            "select count(*) from pg_stat_activity where datname = current_database() and application_name like %s",
            ["% listener"],
        ).fetchone()
    assert row
    return int(row[0])


def test_a_process_that_drains_is_not_ready_and_serves_on(database_url: str, tmp_path: Path) -> None:
    with ready_to_drain(database_url, tmp_path) as process:
        send_sigterm(process)
        ready = get(process, "/readyz")
        alive, refusal = (get(process, path) for path in ("/healthz", "/api/events"))

    assert "stopping" in ready.text
    assert (ready.status_code, ready.headers["Retry-After"]) == (503, "1")
    assert (alive.status_code, refusal.status_code) == (200, 401)


@pytest.mark.parametrize("path", ["/api/events", "/llms.txt"])
def test_a_connection_that_is_kept_gets_one_more_answer_which_closes_it(
    database_url: str, tmp_path: Path, path: str
) -> None:
    with (
        ready_to_drain(database_url, tmp_path) as process,
        httpx2.Client(base_url=process.url, verify=PLAIN, timeout=LONG / 2) as open_client,
    ):
        before = open_client.get(path)
        send_sigterm(process)
        after = open_client.get(path)

    assert "Connection" not in before.headers
    assert (after.status_code, after.headers["Connection"]) == (before.status_code, "close")


def test_a_process_ends_in_order_once_it_has_drained(database_url: str, tmp_path: Path) -> None:
    with ready_to_drain(database_url, tmp_path, seconds=1) as process:
        assert process.stop() == 143


def test_a_process_without_the_setting_ends_at_once(database_url: str, tmp_path: Path) -> None:
    with ready_to_drain(database_url, tmp_path, seconds=0) as process:
        assert process.stop() == 143
        assert "draining" not in process.log.read_text()


def test_a_process_stopped_by_ctrl_c_does_not_drain(database_url: str, tmp_path: Path) -> None:
    with ready_to_drain(database_url, tmp_path) as process:
        os.kill(process.id, signal.SIGINT)
        assert process.wait() == 0


def test_ctrl_c_ends_the_drain_and_a_second_sigterm_does_not(database_url: str, tmp_path: Path) -> None:
    with ready_to_drain(database_url, tmp_path) as process:
        send_sigterm(process)
        os.kill(process.id, signal.SIGTERM)
        send_sigterm(process)
        os.kill(process.id, signal.SIGINT)
        assert process.wait() == 0


def test_several_workers_of_a_service_all_drain(database_url: str, tmp_path: Path) -> None:
    with ready_to_drain(database_url, tmp_path, "--workers", "2", seconds=8) as process:
        wait_until(lambda: listeners(database_url) == 2, 30)
        os.kill(process.id, signal.SIGTERM)
        wait_until(lambda: process.log.read_text().count("draining") == 2, 30)
        answers = {get(process, "/readyz").status_code for _ in range(8)}
        assert process.wait() == 0

    assert answers == {503}
