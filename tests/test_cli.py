"""The command line, as operators' scripts use it."""

import asyncio
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.helpers.command_line import SECRET_SETTINGS, run_holdfast
from tests.helpers.events_service import eventually
from tests.helpers.processes import HOLDFAST, Process, organizer_at, outcomes, register_all, running_processes
from tests.helpers.serving import stop


@pytest.mark.parametrize(
    "command",
    [
        "",
        "up",
        "events",
        "events serve",
        "events worker",
        "events migrate",
        "events key",
        "events key create",
        "events organizer link",
    ],
)
def test_every_command_has_help(command: str) -> None:
    explained = run_holdfast(*command.split(), "--help")

    assert explained.returncode == 0
    assert "Usage" in explained.stdout


@pytest.mark.parametrize("command", ["", "events", "events serve", "inventory serve"])
def test_help_of_a_command_does_not_load_modules_of_pages(command: str) -> None:
    importing = {**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}
    explained = subprocess.run(
        [HOLDFAST, *command.split(), "--help"], env=importing, capture_output=True, text=True, timeout=60, check=False
    )

    assert explained.returncode == 0
    assert "holdfast.cli" in explained.stderr
    assert not re.search(r"\b(babel|jinja2|holdfast\.kit\.pages)\b", explained.stderr)


def test_an_invalid_setting_is_named_in_one_line_without_its_value() -> None:
    refusal = run_holdfast("events", "migrate", PLATFORM_FEE_PERCENT="ninety-one", OAUTH_ISSUER="secret.example")

    assert refusal.returncode == 1
    assert refusal.stdout == ""
    assert "PLATFORM_FEE_PERCENT" in refusal.stderr
    assert "OAUTH_ISSUER" in refusal.stderr
    assert "Traceback" not in refusal.stderr
    assert "ninety-one" not in refusal.stderr
    assert "secret.example" not in refusal.stderr


def test_a_key_is_printed_alone_on_the_last_line_and_works(database_url: str, tmp_path: Path) -> None:
    made = run_holdfast("events", "key", "create", "--admin", "--name", "Scripts", EVENTS_DATABASE_URL=database_url)

    key = made.stdout.splitlines()[-1]
    assert re.fullmatch(r"hf_[\w-]{43}", key)
    with running_processes(database_url, tmp_path, 1) as (process,):
        listed = httpx2.get(f"{process.url}/api/keys", headers={"X-API-Key": key}).json()["data"]
    assert [(key["name"], key["user_id"]) for key in listed] == [("Scripts", None)]


def test_a_key_is_either_an_admins_or_an_organizers(database_url: str) -> None:
    made = run_holdfast("events", "key", "create", "--name", "Whose?", EVENTS_DATABASE_URL=database_url)

    assert made.returncode == 2
    assert "--admin or --organizer" in made.stderr


def test_a_key_for_an_unknown_organizer_is_refused_in_one_line(database_url: str) -> None:
    made = run_holdfast(
        "events", "key", "create", "--organizer", "7", "--name", "Lost", EVENTS_DATABASE_URL=database_url
    )

    assert made.returncode == 1
    assert "no organizer has this id" in made.stderr


def test_a_key_without_a_name_is_refused_in_one_line(database_url: str) -> None:
    made = run_holdfast("events", "key", "create", "--admin", "--name", " ", EVENTS_DATABASE_URL=database_url)

    assert made.returncode == 1
    assert made.stderr.startswith("Not acceptable: name.")


def test_migrate_says_what_it_would_do_and_then_does_it(template_url: str) -> None:
    with psycopg.connect(template_url, autocommit=True) as connection:
        connection.execute("create database not_migrated")
    url = make_conninfo(template_url, dbname="not_migrated")

    dry = run_holdfast("events", "migrate", "--dry-run", EVENTS_DATABASE_URL=url)
    refusal = run_holdfast("events", "serve", "--port", "0", EVENTS_DATABASE_URL=url)
    done = run_holdfast("events", "migrate", EVENTS_DATABASE_URL=url)
    again = run_holdfast("events", "migrate", EVENTS_DATABASE_URL=url)

    assert "would apply 0001_baseline.sql" in dry.stdout
    assert (refusal.returncode, "holdfast events migrate" in refusal.stderr) == (1, True)
    assert "applied 0001_baseline.sql" in done.stdout.replace("would apply", "")
    assert again.stdout == "The schema is up to date.\n"


def test_a_port_in_use_is_reported_in_one_line(database_url: str) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        refusal = run_holdfast("events", "serve", "--port", port, EVENTS_DATABASE_URL=database_url)

    assert refusal.returncode == 1
    assert refusal.stderr.startswith(f"Cannot listen on 127.0.0.1 port {port}")


async def sell_one_seat(process: Process) -> dict[str, Any]:
    """Register a person for a new event, and wait for the status of the registration."""
    async with organizer_at(process.url) as ada:
        event = await ada.create_event()
    person, key = {"event_id": event["id"], "email": "ann@example.com"}, ada.key or ""
    accepted = await register_all([process], key, iter([person]), connections=1)
    return (await outcomes(process, key, [accepted[0].poll]))[accepted[0].poll]


def test_a_server_without_background_work_is_completed_by_a_worker(database_url: str, tmp_path: Path) -> None:
    worker = subprocess.Popen(
        [HOLDFAST, "events", "worker"],
        env={**os.environ, **SECRET_SETTINGS, "EVENTS_DATABASE_URL": database_url},
        stdout=subprocess.PIPE,
        text=True,
    )
    with running_processes(database_url, tmp_path, 1, "--no-background") as (process,):
        answer = asyncio.run(sell_one_seat(process))
    stop(worker)

    assert answer["data"]["status"] == "registered"
    assert worker.returncode == 128 + signal.SIGTERM


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_ends_in_order_at_any_moment(number: signal.Signals, database_url: str, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        **SECRET_SETTINGS,
        "EVENTS_DATABASE_URL": database_url,
        "HOLDFAST_DATA_DIR": str(tmp_path),
    }
    for _ in range(3):
        worker = subprocess.Popen([HOLDFAST, "events", "worker"], env=environment, stdout=subprocess.PIPE, text=True)
        assert worker.stdout
        assert "works in the background" in worker.stdout.readline()
        stop(worker, number)

        assert worker.returncode == (128 + number if number == signal.SIGTERM else 0)


async def test_workers_share_a_port_and_their_metrics(database_url: str, tmp_path: Path) -> None:
    with running_processes(database_url, tmp_path, 1, "--workers", "2") as (process,):
        answer = await sell_one_seat(process)

        async def share_their_figures() -> bool:
            pages = [httpx2.get(f"{process.url}/metrics").text for _ in range(8)]
            figures = {page.count("holdfast_requests_total{") for page in pages}
            return len(figures) == 1 and figures != {0}

        # A process writes its figures once a second.
        await eventually(share_their_figures)
        assert process.stop() == 0

    assert answer["data"]["status"] == "registered"


@pytest.fixture
def terminal() -> Iterator[None]:
    """Processes are started as in a terminal: those of `nohup` ignore its end, and so does all that they start."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("terminal")
def test_a_terminal_that_is_closed_ends_a_server_with_workers(database_url: str, tmp_path: Path) -> None:
    with running_processes(database_url, tmp_path, 1, "--workers", "2") as (process,):
        assert httpx2.get(f"{process.url}/readyz", timeout=30).status_code == 200
        os.kill(process.id, signal.SIGHUP)
        assert process.wait() == 0


def test_sigterm_ends_a_server_in_order(database_url: str, tmp_path: Path) -> None:
    # Not forked: all that a process does at its end belongs to this.
    with running_processes(database_url, tmp_path, 1, "--workers", "1") as (process,):
        assert httpx2.get(f"{process.url}/readyz", timeout=30).status_code == 200
        assert process.stop() == 143


def test_a_database_that_is_named_without_the_secret_of_its_contents_is_refused(database_url: str) -> None:
    refusal = run_holdfast("events", "serve", "--port", "0", EVENTS_DATABASE_URL=database_url, EVENTS_SECRET_KEY="")

    assert refusal.returncode == 1
    assert "EVENTS_SECRET_KEY" in refusal.stderr
    assert "Traceback" not in refusal.stderr
