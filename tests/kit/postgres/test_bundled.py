"""Processes that use one data directory share one server, which stops with the last of them."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.helpers.data_directories import DatabaseUser, can_connect, query_value, server, start_users, used_directory

SCRATCH = """
from holdfast.kit.postgres.bundled import database_url, scratch_directory
directory = scratch_directory()
print(directory, flush=True)
print(database_url(directory, "scratch"), flush=True)
"""


def is_running(data_dir: Path, url: str) -> bool:
    running = can_connect(url)
    assert running or not (data_dir / "postgres" / "postmaster.pid").exists()
    return running


@pytest.fixture
def directory() -> Iterator[Path]:
    with used_directory() as directory:
        yield directory


def test_starting_twice_shares_the_server_and_each_name_is_a_database_of_its_own(directory: Path) -> None:
    with contextlib.closing(DatabaseUser(directory, "events", "inventory", "events")) as user:
        DatabaseUser.start(user)
        events, inventory, again = user.urls

        assert server(events) == server(inventory)
        assert again == events
        assert [query_value(url, "select current_database()") for url in (events, inventory)] == ["events", "inventory"]
        with psycopg.connect(events) as connection:
            connection.execute("create table only_here (id int)")
        assert query_value(inventory, "select to_regclass('only_here')") is None

        DatabaseUser.end(user)
        assert not is_running(directory, events)


def test_data_is_there_after_the_next_start_of_the_bundled_server(directory: Path) -> None:
    with start_users(directory, "events") as (first,):
        with psycopg.connect(first.url) as connection:
            connection.execute("create table shelf as select 7 as pages")
        DatabaseUser.end(first)

    with start_users(directory, "events") as (second,):
        assert query_value(second.url, "select pages from shelf") == 7
        DatabaseUser.end(second)


def test_processes_that_start_together_share_a_server_until_the_last_of_them_ends(directory: Path) -> None:
    with start_users(directory, "events", "events", "inventory") as (one, two, three):
        assert one.url == two.url
        assert server(one.url) == server(two.url) == server(three.url)

        DatabaseUser.end(one)
        assert is_running(directory, two.url)
        DatabaseUser.end(three)
        assert is_running(directory, two.url)
        DatabaseUser.end(two)
        assert not is_running(directory, two.url)


def test_a_process_that_was_killed_does_not_keep_the_server_running(directory: Path) -> None:
    with start_users(directory, "events", "events", "events") as (killed, killed_too, last):
        killed.kill()
        killed_too.kill()
        assert is_running(directory, last.url)
        DatabaseUser.end(last)
        assert not is_running(directory, last.url)


def test_a_server_whose_every_user_was_killed_is_taken_over_and_stopped_by_the_next(directory: Path) -> None:
    with start_users(directory, "events") as (killed,):
        before = server(killed.url)
        killed.kill()

    with start_users(directory, "events") as (successor,):
        assert server(successor.url) == before
        DatabaseUser.end(successor)
        assert not is_running(directory, successor.url)


def test_processes_that_start_and_end_at_the_same_time_do_not_lose_count_of_each_other(directory: Path) -> None:
    with start_users(directory, "events") as (resident,):
        for _ in range(3):
            with start_users(directory, *["events"] * 5) as users:
                assert [user.url for user in users] == [resident.url] * 5
                DatabaseUser.end(*users)
            assert is_running(directory, resident.url)
        DatabaseUser.end(resident)
        assert not is_running(directory, resident.url)


def test_a_scratch_directory_is_gone_with_its_server_when_the_process_ends() -> None:
    lines = subprocess.run([sys.executable, "-c", SCRATCH], check=True, capture_output=True, text=True, timeout=60)
    directory, url = lines.stdout.split()

    assert not Path(directory).exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
