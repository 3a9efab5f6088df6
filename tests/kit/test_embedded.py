"""Processes that use one data directory share one server, which stops with the last of them."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest

USE = """
import sys
from pathlib import Path
from holdfast.kit.embedded import database_url
print("ready", flush=True)
sys.stdin.readline()
for name in sys.argv[2:]:
    print(database_url(Path(sys.argv[1]), name), flush=True)
sys.stdin.read()
"""

SCRATCH = """
from holdfast.kit.embedded import database_url, scratch_directory
directory = scratch_directory()
print(directory, flush=True)
print(database_url(directory, "scratch"), flush=True)
"""


class User:
    """A process that uses databases of a data directory until it is told to end."""

    def __init__(self, data_dir: Path, *names: str) -> None:
        command = [sys.executable, "-c", USE, str(data_dir), *names]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.names = names
        self.urls: list[str] = []
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def _go(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    @property
    def url(self) -> str:
        return self.urls[0]

    @staticmethod
    def start(*users: "User") -> None:
        """Let them start the server, all at the same time."""
        for each in users:
            each._go()
        for each in users:
            each.urls = [each._line() for _ in each.names]

    @staticmethod
    def end(*users: "User") -> None:
        """Let them end by themselves, all at the same time."""
        for each in users:
            assert each.process.stdin
            each.process.stdin.close()
        assert [each.process.wait(timeout=30) for each in users] == [0] * len(users)

    def kill(self) -> None:
        """End it without a chance to do anything more."""
        self.process.kill()
        self.process.wait(timeout=30)

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe
            pipe.close()


@contextlib.contextmanager
def started(data_dir: Path, *names: str) -> Generator[list[User]]:
    """Processes that started together, each with one database."""
    with contextlib.ExitStack() as stack:
        users: list[User] = []
        for name in names:
            users.append(User(data_dir, name))
            stack.callback(users[-1].close)
        User.start(*users)
        yield users


@pytest.fixture
def directory() -> Iterator[Path]:
    """A data directory whose server is stopped after the test, come what may."""
    # Not pytest's own: the server runs as a user of its own when tests run as root, and must be able to get there.
    with tempfile.TemporaryDirectory(prefix="holdfast-tests-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        directory.chmod(0o755)
        yield directory
        lock = directory / "postgres" / "postmaster.pid"
        if lock.exists():
            os.kill(abs(int(lock.read_text().split()[0])), signal.SIGQUIT)


def ask(url: str, statement: LiteralString) -> Any:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(statement).fetchone()
        return row and row[0]


def server(url: str) -> tuple[Any, Any]:
    """Which server answers at an address: where its data is and when it was started."""
    return ask(url, "select setting from pg_settings where name = 'data_directory'"), ask(
        url, "select pg_postmaster_start_time()"
    )


def is_running(data_dir: Path, url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        assert not (data_dir / "postgres" / "postmaster.pid").exists()
        return False
    return True


def test_starting_twice_shares_the_server_and_each_name_is_a_database_of_its_own(directory: Path) -> None:
    with contextlib.closing(User(directory, "events", "inventory", "events")) as user:
        User.start(user)
        events, inventory, again = user.urls

        assert server(events) == server(inventory)
        assert again == events
        assert [ask(url, "select current_database()") for url in (events, inventory)] == ["events", "inventory"]
        with psycopg.connect(events) as connection:
            connection.execute("create table only_here (id int)")
        assert ask(inventory, "select to_regclass('only_here')") is None

        User.end(user)
        assert not is_running(directory, events)


def test_what_was_stored_is_there_after_the_next_start(directory: Path) -> None:
    with started(directory, "events") as (first,):
        with psycopg.connect(first.url) as connection:
            connection.execute("create table shelf as select 7 as pages")
        User.end(first)

    with started(directory, "events") as (second,):
        assert ask(second.url, "select pages from shelf") == 7
        User.end(second)


def test_processes_that_start_together_share_a_server_until_the_last_of_them_ends(directory: Path) -> None:
    with started(directory, "events", "events", "inventory") as (one, two, three):
        assert one.url == two.url
        assert server(one.url) == server(two.url) == server(three.url)

        User.end(one)
        assert is_running(directory, two.url)
        User.end(three)
        assert is_running(directory, two.url)
        User.end(two)
        assert not is_running(directory, two.url)


def test_a_process_that_was_killed_does_not_keep_the_server_running(directory: Path) -> None:
    with started(directory, "events", "events", "events") as (killed, killed_too, last):
        killed.kill()
        killed_too.kill()
        assert is_running(directory, last.url)
        User.end(last)
        assert not is_running(directory, last.url)


def test_a_server_whose_every_user_was_killed_is_taken_over_and_stopped_by_the_next(directory: Path) -> None:
    with started(directory, "events") as (killed,):
        before = server(killed.url)
        killed.kill()

    with started(directory, "events") as (successor,):
        assert server(successor.url) == before
        User.end(successor)
        assert not is_running(directory, successor.url)


def test_processes_that_start_and_end_at_the_same_time_do_not_lose_count_of_each_other(directory: Path) -> None:
    with started(directory, "events") as (resident,):
        for _ in range(3):
            with started(directory, *["events"] * 5) as users:
                assert [each.url for each in users] == [resident.url] * 5
                User.end(*users)
            assert is_running(directory, resident.url)
        User.end(resident)
        assert not is_running(directory, resident.url)


def test_a_scratch_directory_is_gone_with_its_server_when_the_process_ends() -> None:
    lines = subprocess.run([sys.executable, "-c", SCRATCH], check=True, capture_output=True, text=True, timeout=60)
    directory, url = lines.stdout.split()

    assert not Path(directory).exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
