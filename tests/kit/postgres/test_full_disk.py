"""A disk without room is named in one sentence, the server always ends, and the next start works once there is room."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psutil
import psycopg
import pytest

from holdfast.kit.postgres.bundled_server import SUPERUSER, Cluster
from tests.helpers.data_directories import (
    DatabaseUser,
    data_directory,
    postmaster,
    query_value,
    start_users,
    used_directory,
    wait_until,
)
from tests.helpers.forking import forks
from tests.helpers.processes import running_processes
from tests.helpers.small_disks import SmallDisk, small_disk

HOLDFAST = str(Path(sys.executable).with_name("holdfast"))

ENOUGH = "500m"


@pytest.fixture
def empty() -> Iterator[Path]:
    with data_directory() as directory:
        yield directory


@pytest.fixture
def directory() -> Iterator[Path]:
    """Where a server has run before."""
    with used_directory() as directory:
        yield directory


def run(data_dir: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOLDFAST_DATA_DIR": str(data_dir), "EVENTS_SECRET_KEY": ""}
    return forks().run([HOLDFAST, *words], Path.cwd(), environment)


def processes_in(directory: Path) -> list[psutil.Process]:
    """The processes that work in a directory, or below it."""
    processes: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()).is_relative_to(directory):
                processes.append(process)
        except psutil.Error:
            pass
    return processes


def is_progress(line: str) -> bool:
    """Whether a line says what this process waits for."""
    return line.startswith("{") and json.loads(line)["event"] in {
        "PostgreSQL does not stop; ending it at once",
        "PostgreSQL has stopped; starting it again",
    }


def assert_disk_is_named(result: subprocess.CompletedProcess[str], disk: SmallDisk) -> None:
    [line] = [line for line in result.stderr.splitlines() if not is_progress(line)]
    assert result.returncode == 1, result
    assert line.startswith(f"The disk of {disk.directory} is full: "), result.stderr
    assert line.endswith("Make room on it, or set HOLDFAST_DATA_DIR to a directory on another disk, and start again.")


@pytest.mark.parametrize("size", ["4k", "20m", "45m", "60m", "64m"])
def test_a_disk_that_fills_at_the_first_start_is_named_and_the_next_start_works_once_there_is_room(
    size: str, empty: Path
) -> None:
    with small_disk(empty, size) as disk:
        refusal = run(empty, "up", "--port=0")
        assert processes_in(empty) == []
        assert_disk_is_named(refusal, disk)
        assert_disk_is_named(run(empty, "up", "--port=0"), disk)
        assert processes_in(empty) == []

        disk.resize(ENOUGH)

        migrated = run(empty, "events", "migrate")
        assert migrated.returncode == 0, migrated.stderr
        assert migrated.stderr == ""
        listed = run(empty, "events", "organizer", "add", "Ada Events", "--email", "ada@example.com")
        assert listed.returncode == 0, listed.stderr
        assert processes_in(empty) == []


def test_a_service_recovers_from_a_full_disk_without_loss_and_logs_one_line(
    empty: Path,
) -> None:
    with (
        small_disk(empty, "300m"),
        running_processes("", empty, 1) as (process,),
        httpx2.Client(base_url=process.url) as http,
    ):
        assert add_organizer(http, "before").status_code == 201
        filling = empty / "filling"
        with contextlib.suppress(OSError), filling.open("wb", buffering=0) as file:
            while file.write(bytes(2**16)):
                pass
        os.truncate(filling, filling.stat().st_size - 2**20)  # room for lines of logs, and for no segment
        with (
            contextlib.suppress(psycopg.OperationalError),
            psycopg.connect(server_url(empty), autocommit=True) as connection,
        ):
            while connection.execute(
                "select pg_switch_wal(), pg_logical_emit_message(false, '', repeat('x', 1000000))"
            ):
                pass  # until the log of changes needs room
        wait_until(lambda: "PostgreSQL does not start; trying until it does" in process.log.read_text())
        count = attempts(empty)
        refusal = add_organizer(http, "during")
        assert (refusal.status_code, refusal.json()["code"]) == (503, "service_unavailable")
        assert refusal.headers["Retry-After"] == "1"
        wait_until(lambda: attempts(empty) > count + 2)

        filling.unlink()
        wait_until(lambda: "PostgreSQL runs again" in process.log.read_text())
        wait_until(lambda: add_organizer(http, "during").status_code == 201)
        assert add_organizer(http, "before").status_code == 422
        for line in ("PostgreSQL has stopped; starting it again", "PostgreSQL does not start; trying until it does"):
            assert process.log.read_text().count(line) == 1


def add_organizer(http: httpx2.Client, slug: str) -> httpx2.Response:
    organizer = {"name": slug, "email": f"{slug}@example.com", "slug": slug}
    return http.post("/api/organizers/register", json={"organizer": organizer})


def server_url(data_dir: Path) -> str:
    return Cluster(data_dir / "postgres", data_dir / "postgres.log").url(SUPERUSER, "postgres")


def attempts(data_dir: Path) -> int:
    """How many times the server was started."""
    return (data_dir / "postgres.log").read_text(errors="replace").count("starting PostgreSQL")


def _title(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it has just ended
        return ""


def stall_server(data_dir: Path) -> psutil.Process:
    """A server that can no longer stop in order: the process that would write its last checkpoint stands still."""
    server = psutil.Process(postmaster(data_dir))
    [checkpointer] = [child for child in server.children() if "checkpointer" in _title(child)]
    checkpointer.send_signal(signal.SIGSTOP)
    return server


def test_a_server_that_does_not_stop_is_ended_and_has_lost_nothing(directory: Path) -> None:
    with start_users(directory, "events") as (user,):
        query_value(user.url, "select 'shelf' from pg_database limit 1")
        server = stall_server(directory)
        DatabaseUser.end(user)
    assert not server.is_running()
    assert processes_in(directory) == []

    with start_users(directory, "events") as (user,):
        assert query_value(user.url, "select 1") == 1
        DatabaseUser.end(user)


def test_a_server_that_has_been_stopping_for_too_long_is_ended_by_the_next_start(directory: Path) -> None:
    with start_users(directory, "events") as (user,):
        server = stall_server(directory)
        user.kill()
    server.send_signal(signal.SIGINT)
    file = directory / "postgres" / "postmaster.pid"
    wait_until(lambda: "stopping" in file.read_text())

    begun = run(directory, "events", "migrate")

    assert begun.returncode == 0, begun.stderr
    assert not server.is_running()
    assert re.search(r"PostgreSQL .*stopping", begun.stderr)
    assert processes_in(directory) == []


def test_a_start_that_waits_for_another_process_says_so(directory: Path) -> None:
    cluster = Cluster(directory / "postgres", directory / "postgres.log")
    waiting = (
        "import fcntl, sys; file = open(sys.argv[1], 'a'); fcntl.flock(file, fcntl.LOCK_EX); input(input('held\\n'))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", waiting, directory / "postgres.lock"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout
        assert other.stdout.readline() == "held\n"
        second = subprocess.Popen(
            [HOLDFAST, "events", "migrate"],
            env={**os.environ, "HOLDFAST_DATA_DIR": str(directory), "EVENTS_SECRET_KEY": ""},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert second.stderr
        report = second.stderr.readline()
        other.kill()
        assert second.wait(60) == 0
        second.stderr.close()

    assert "another process starts or stops PostgreSQL" in report
    assert not cluster.answers
