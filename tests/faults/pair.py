"""Two PostgreSQL servers: a primary, and a standby without which nothing is committed."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Generator
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg

from holdfast.kit.postgres.bundled_server import PORT, PROGRAMS, SUPERUSER, Cluster
from tests.helpers.data_directories import query_value, used_directory, wait_until


class Pair:
    """The servers in two directories, one beside the other. The second begins as the synchronous standby.

    directory    has the files of the first one
    """

    def __init__(self, directory: Path) -> None:
        self._directories = [directory / "postgres", directory / "two"]
        self.primary, self.standby = (
            Cluster(directory, directory.with_suffix(".log")) for directory in self._directories
        )
        self.primary.start()
        self._copy()
        self.standby.start()
        with psycopg.connect(self.primary_url, autocommit=True) as connection:
            connection.execute("alter system set synchronous_standby_names = '*'")
            connection.execute("select pg_reload_conf()")
        wait_until(lambda: query_value(self.primary_url, "select sync_state from pg_stat_replication") == "sync")

    def _copy(self) -> None:
        one, two = self._directories
        options = ["-D", two, "-h", one, "-p", str(PORT), "-U", SUPERUSER, "-R", "-c", "fast"]
        subprocess.run([PROGRAMS / "pg_basebackup", *options], check=True, capture_output=True)
        owner = one.stat()
        for path in (two, *two.rglob("*")):
            os.chown(path, owner.st_uid, owner.st_gid)

    @property
    def url(self) -> str:
        """The address of whichever of them takes changes."""
        hosts = ",".join(quote(str(directory)) for directory in self._directories)
        return f"postgresql://{SUPERUSER}@/postgres?host={hosts}&port={PORT}&target_session_attrs=read-write"

    @property
    def primary_url(self) -> str:
        return self.primary.url(SUPERUSER, "postgres")

    def kill_primary(self) -> None:
        """SIGKILL to all its processes, as if its machine had failed."""
        self._signal(self._directories[0], signal.SIGKILL)

    def promote(self) -> None:
        """Make the standby the primary. Returns when it takes changes."""
        assert query_value(self.standby.url(SUPERUSER, "postgres"), "select pg_promote()")

    @contextlib.contextmanager
    def cut_off(self) -> Generator[None]:
        """While the block lasts, the standby does not answer."""
        self._signal(self._directories[1], signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(self._directories[1], signal.SIGCONT)

    def waiting(self) -> list[int]:
        """The server processes that wait for the standby to confirm their commit."""
        with psycopg.connect(self.primary_url) as connection:
            rows = connection.execute("select pid from pg_stat_activity where wait_event = 'SyncRep'").fetchall()
            return [pid for (pid,) in rows]

    def cancel_waiting(self) -> None:
        """What an operator does who loses patience: the commits are made visible without the standby."""
        with psycopg.connect(self.primary_url) as connection:
            for pid in self.waiting():
                connection.execute("select pg_cancel_backend(%s)", [pid])

    @staticmethod
    def _signal(directory: Path, number: signal.Signals) -> None:
        postmaster = psutil.Process(int((directory / "postmaster.pid").read_text().split()[0]))
        processes = [postmaster, *postmaster.children(recursive=True)]
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        if number == signal.SIGKILL:
            psutil.wait_procs(processes, 10)

    def close(self) -> None:
        for directory, cluster in zip(self._directories, (self.primary, self.standby), strict=True):
            with contextlib.suppress(OSError, psutil.NoSuchProcess):
                self._signal(directory, signal.SIGKILL)
            cluster.stop()  # waits for what is left


@contextlib.contextmanager
def pair() -> Generator[Pair]:
    with used_directory() as directory:
        servers = Pair(directory)
        try:
            yield servers
        finally:
            servers.close()
