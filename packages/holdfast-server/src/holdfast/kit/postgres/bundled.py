"""The bundled PostgreSQL: a real server in the data directory, so that nothing has to be installed.

All processes that use the same data directory share one server. Each of them restarts the server if it stops. It ends
with the last of these processes.
"""

import atexit
import contextlib
import fcntl
import shutil
import tempfile
import time
from collections.abc import Generator
from functools import cache
from pathlib import Path
from threading import Thread
from typing import LiteralString

import psycopg
import structlog
from psycopg import sql

from holdfast.kit.environment.full_disk import full_disk_text, reason_of
from holdfast.kit.postgres.bundled_server import SUPERUSER, CannotRun, Cluster, Progress

log = structlog.get_logger()

ROLE: LiteralString = "holdfast"
"""The role that owns the databases. It may create roles, as migrations do, and is no superuser."""

LOCK_TIMEOUT_SECONDS = 90
"""Seconds that a process waits for another one that starts or stops the server."""

EXIT_LOCK_TIMEOUT_SECONDS = 1
"""Seconds that a process that ends waits for another one that starts or stops the server. After these seconds the
server runs until the next process that uses it has ended."""

RETRY_SECONDS = 0.5
"""Seconds between attempts to reach or to start a server that has stopped."""

CHANGE_OWNER: LiteralString = """
    do $$
    declare statement text;
    begin
        for statement in
            select format('alter table %s owner to holdfast', oid::regclass)
              from pg_class
             where relowner = 'postgres'::regrole and relnamespace = 'public'::regnamespace
               and relkind in ('r', 'p', 'v')
             union all
            select format('alter routine %s owner to holdfast', oid::regprocedure)
              from pg_proc where proowner = 'postgres'::regrole and pronamespace = 'public'::regnamespace
             union all
            select format('alter type %s owner to holdfast', oid::regtype)
              from pg_type
             where typowner = 'postgres'::regrole and typnamespace = 'public'::regnamespace
               and (typtype in ('e', 'd') or typtype = 'c' and exists (
                        select from pg_class where pg_class.oid = typrelid and relkind = 'c'))
             union all
            select format('grant %I to holdfast with admin option', rolname)
              from pg_roles where not rolsuper and not rolcanlogin and rolname not like 'pg\\_%'
        loop
            execute statement;
        end loop;
        execute format('alter database %I owner to holdfast', current_database());
    end $$
"""
"""Changes the owner of a database to `ROLE`. Earlier releases created databases as the superuser."""


def database_url(data_dir: Path, name: str) -> str:
    """Start the server if it does not run, create database `name` if it does not exist, and return its URL.

    From then on, this process restarts the server whenever it stops. Blocks for up to a few seconds on the first start.
    Raises `CannotRun`.
    """
    return _server(data_dir.resolve()).database(name)


def existing_database_url(data_dir: Path, name: str) -> str | None:
    """The URL of database `name`, or None if the data directory has none. Starts the server, and creates nothing."""
    if not (data_dir / "postgres" / "PG_VERSION").exists():
        return None
    server = _server(data_dir.resolve())
    return server.database(name) if server.has(name) else None


def full_disk(error: BaseException) -> str | None:
    """What to do about an error if the disk of a server that this process uses is full; None if it is not."""
    return next((text for server in _servers if (text := server.full_disk(error))), None)


def scratch_directory(parent: Path | None = None) -> Path:
    """A new data directory, which is removed when this process ends, after the server in it has stopped."""
    directory = Path(tempfile.mkdtemp(prefix="holdfast-", dir=parent))
    # If this process runs as root, the server runs as another user.
    directory.chmod(0o755)
    # Registered before the server's exit handlers, so that it runs after them.
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


class BundledServer:
    """The server of a data directory, for one of the processes that use it.

    Two lock files coordinate the processes; a lock ends when its process ends in any way. A process that starts or
    stops the server holds `postgres.lock`; all processes that use the server share `postgres.users`.
    """

    def __init__(self, data_dir: Path) -> None:
        data_dir.mkdir(parents=True, exist_ok=True)
        self._cluster = Cluster(data_dir / "postgres", data_dir / "postgres.log")
        self._lock = data_dir / "postgres.lock"
        self._left = False
        self._data_dir = data_dir
        self._users = (data_dir / "postgres.users").open("a")
        atexit.register(self._leave)
        try:
            with self._hold_lock(LOCK_TIMEOUT_SECONDS):
                fcntl.flock(self._users, fcntl.LOCK_SH)
                self._cluster.make()
                self._cluster.start()
        except BaseException:  # also of a signal that ends this process
            atexit.unregister(self._leave)
            self._leave()
            raise
        Thread(target=self._keep_running, name="bundled PostgreSQL", daemon=True).start()
        _servers.append(self)

    def has(self, name: str) -> bool:
        """Whether there is a database of this name."""
        with psycopg.connect(self._cluster.url(SUPERUSER, "postgres"), autocommit=True) as connection:
            return connection.execute("select from pg_database where datname = %s", [name]).fetchone() is not None

    def full_disk(self, error: BaseException) -> str | None:
        """What to do about an error if the disk of the data directory is full; None if it is not."""
        # After a PANIC, the error may say only that the connection was lost.
        reason = reason_of(error)
        return full_disk_text(reason, self._data_dir) if reason else self._cluster.full_disk()

    def database(self, name: str) -> str:
        """The URL of a database, which is created if it does not exist. Raises `CannotRun` if the disk is full."""
        try:
            return self._ensure_database(name)
        except psycopg.Error as error:
            if text := self.full_disk(error):
                raise CannotRun(text) from error
            raise

    def _ensure_database(self, name: str) -> str:
        administrator = self._cluster.url(SUPERUSER, "postgres")
        with self._hold_lock(LOCK_TIMEOUT_SECONDS), psycopg.connect(administrator, autocommit=True) as connection:
            if connection.execute("select from pg_roles where rolname = %s", [ROLE]).fetchone() is None:
                connection.execute(sql.SQL("create role {} login createrole").format(sql.Identifier(ROLE)))
            owner = connection.execute(
                "select pg_get_userbyid(datdba) from pg_database where datname = %s", [name]
            ).fetchone()
            if owner is None:
                database, role = sql.Identifier(name), sql.Identifier(ROLE)
                connection.execute(sql.SQL("create database {} owner {}").format(database, role))
            elif owner != (ROLE,):
                with psycopg.connect(self._cluster.url(SUPERUSER, name)) as inside:
                    inside.execute(CHANGE_OWNER)
        return self._cluster.url(ROLE, name)

    @contextlib.contextmanager
    def _hold_lock(self, timeout_seconds: float, *, is_reported: bool = True) -> Generator[None]:
        """Hold the lock for starting or stopping the server. Raises `CannotRun` after `timeout_seconds`.

        is_reported    whether the log says for how long this has waited for another process
        """
        deadline = time.monotonic() + timeout_seconds
        progress = Progress()
        with self._lock.open("a") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError as error:
                    if time.monotonic() > deadline:
                        raise CannotRun(
                            f"Another process has been starting or stopping PostgreSQL in {self._cluster.directory} "
                            f"for {timeout_seconds:g} s. If that process is stalled, end it, and start again."
                        ) from error
                if is_reported:
                    progress.report("another process starts or stops PostgreSQL", directory=str(self._data_dir))
                time.sleep(0.02)
            yield

    def _keep_running(self) -> None:
        """Restart the server whenever it has stopped, for as long as this process uses it."""
        failing = False
        while not self._left:
            with contextlib.suppress(psycopg.OperationalError):
                self._wait_until_lost()
            try:
                self._start_again(is_first=not failing)
                failing = False
            except (CannotRun, OSError) as error:
                if not failing:
                    log.error("PostgreSQL does not start; trying until it does", reason=str(error))
                failing = True
            time.sleep(RETRY_SECONDS)

    def _wait_until_lost(self) -> None:
        """Wait until a connection to the server is lost, without polling. Returns then, or raises."""
        with psycopg.connect(self._cluster.url(ROLE, "postgres"), autocommit=True) as connection:
            for _ in connection.notifies():
                pass

    def _start_again(self, *, is_first: bool) -> None:
        """Start the server if it has stopped. The log says so at the first of several attempts."""
        # At its end, this process itself holds the lock.
        with self._hold_lock(LOCK_TIMEOUT_SECONDS, is_reported=False):
            if self._left or self._cluster.answers:
                return
            if is_first:
                log.warning("PostgreSQL has stopped; starting it again", directory=str(self._cluster.directory))
            self._cluster.start()
            log.warning("PostgreSQL runs again", directory=str(self._cluster.directory))

    def _leave(self) -> None:
        """Stop the server if no other process uses it."""
        self._left = True
        with contextlib.suppress(CannotRun, OSError), self._hold_lock(EXIT_LOCK_TIMEOUT_SECONDS), self._users:
            fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._cluster.stop()


_server = cache(BundledServer)
_servers: list[BundledServer] = []
"""The servers that this process uses."""
