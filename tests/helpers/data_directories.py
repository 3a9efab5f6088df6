"""Processes that use the bundled database of a data directory, and the server in it."""

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from functools import cache
from pathlib import Path
from typing import Any, LiteralString

import psycopg

from holdfast.kit.postgres import bundled
from holdfast.kit.postgres.bundled_server import Cluster
from holdfast.kit.process.service_process import ServiceProcess
from tests.helpers import data_directory_watcher
from tests.helpers.events_service import pause_after

MEMORY = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
"""Where data directories of tests are, if that is possible: tests kill our processes, never the machine.

A server on a disk takes seconds longer to make and to migrate, and waits at each commit.
"""

USE = """
import sys
from pathlib import Path
from holdfast.kit.postgres.bundled import database_url
print("ready", flush=True)
sys.stdin.readline()
for name in sys.argv[2:]:
    print(database_url(Path(sys.argv[1]), name), flush=True)
sys.stdin.read()
"""


class DatabaseUser:
    """A process that uses databases of a data directory until it is told to end."""

    def __init__(self, data_dir: Path, *names: str) -> None:
        command = [sys.executable, "-c", USE, str(data_dir), *names]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self.names = names
        self.urls: list[str] = []
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def go(self) -> None:
        """Let it begin."""
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    @property
    def url(self) -> str:
        return self.urls[0]

    @staticmethod
    def start(*users: "DatabaseUser") -> None:
        """Let them start the server, all at the same time."""
        for user in users:
            user.go()
        for user in users:
            user.urls = [user._line() for _ in user.names]

    @staticmethod
    def end(*users: "DatabaseUser") -> None:
        """Let them end by themselves, all at the same time."""
        for user in users:
            assert user.process.stdin
            user.process.stdin.close()
        assert [user.process.wait(timeout=30) for user in users] == [0] * len(users)

    def kill(self) -> None:
        """End it, and what it has started in its session, without a chance to do anything more."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=30)

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe
            pipe.close()


@contextlib.contextmanager
def start_users(data_dir: Path, *names: str) -> Generator[list[DatabaseUser]]:
    """Processes that started together, each with one database."""
    with contextlib.ExitStack() as stack:
        users: list[DatabaseUser] = []
        for name in names:
            users.append(DatabaseUser(data_dir, name))
            stack.callback(users[-1].close)
        DatabaseUser.start(*users)
        yield users


def scratch_directory() -> Path:
    """A data directory that is removed when this process ends in any way, after the server in it has stopped."""
    watcher = _watcher()  # made first: at the end of this process it has the last turn
    return _watch_directory(bundled.scratch_directory(MEMORY), watcher)


def migrated_database(product: ServiceProcess[Any, Any], directory: Path | None = None) -> str:
    """A database of a service, on the server of a data directory, or on a server of its own."""
    url = bundled.database_url(directory or scratch_directory(), product.name)
    product.migrate(url)
    return url


@contextlib.contextmanager
def data_directory() -> Generator[Path]:
    """A data directory whose server is stopped in the end, come what may."""
    # Not pytest's own: the server runs as a user of its own when tests run as root, and must be able to get there.
    with tempfile.TemporaryDirectory(prefix="holdfast-tests-", dir=MEMORY, ignore_cleanup_errors=True) as name:
        directory = _watch_directory(Path(name), _watcher())
        directory.chmod(0o755)
        yield directory
        with contextlib.suppress(OSError, IndexError, ValueError, ProcessLookupError):
            if Path(f"/proc/{postmaster(directory)}/comm").read_text().strip() == "postgres":
                os.kill(postmaster(directory), signal.SIGQUIT)


@cache
def _watcher() -> subprocess.Popen[bytes]:
    """The process that does what this one cannot do if it is killed."""
    command = [sys.executable, "-IS", data_directory_watcher.__file__]
    watcher = subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0, start_new_session=True)
    atexit.register(watcher.communicate)
    return watcher


def _watch_directory(directory: Path, watcher: subprocess.Popen[bytes]) -> Path:
    """The directory, of which the watcher was told."""
    assert watcher.stdin
    watcher.stdin.write(f"{directory}\n".encode())
    return directory


@contextlib.contextmanager
def used_directory() -> Generator[Path]:
    """The same, with the files of a server that has run before: to copy them costs a tenth of making them."""
    with data_directory() as directory:
        subprocess.run(["cp", "--archive", _template_directory() / "postgres", directory], check=True)
        yield directory


@cache
def _template_directory() -> Path:
    directory = scratch_directory()
    cluster = Cluster(directory / "postgres", directory / "postgres.log")
    cluster.make()
    cluster.start()
    cluster.stop()
    return directory


def postmaster(data_dir: Path) -> int:
    """The number of the server's first process."""
    return int((data_dir / "postgres" / "postmaster.pid").read_text().split()[0])


def query_value(url: str, statement: LiteralString) -> Any:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(statement).fetchone()
        return row and row[0]


def query_rows(url: str, statement: LiteralString) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(statement).fetchall()


def server(url: str) -> Any:
    """When the server at an address was started, which tells one from another."""
    return query_value(url, "select pg_postmaster_start_time()")


def wait_until(condition: Callable[[], object], seconds: float = 60) -> None:
    """As soon as the condition holds; fail when it does not in time, also on a busy machine."""
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        assert waited < seconds, "this took too long"
        time.sleep(pause_after(waited))


def can_connect(url: str) -> bool:
    """Whether a database can be reached."""
    with contextlib.suppress(psycopg.OperationalError):
        psycopg.connect(url).close()
        return True
    return False
