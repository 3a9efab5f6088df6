"""Migrations: numbered `.sql` files, each applied once, in order, in a transaction of its own.

A file that was applied must not be edited; its checksum is stored and compared. A file that fails is rolled back
completely, and is the next to be applied.
"""

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors

LOCK = 0x686F6C64  # "hold": one migration at a time, whichever process starts first

PATIENCE = 60
"""Seconds to wait for another process that migrates the same database."""

LOCK_SECONDS = 1
"""Seconds for which a migration waits for what others use, while they wait behind it; and then makes way for them."""

IDLE_SECONDS = 5
"""Seconds after which PostgreSQL ends the session of a process that was stopped while it migrates."""


@dataclass(frozen=True)
class Migration:
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


class EditedMigration(Exception):
    """A migration differs from what was applied under its name."""


class AnotherMigrates(Exception):
    """Another process has been migrating the database for too long."""


class InUse(Exception):
    """What a migration changes has been used by others for too long."""


def read(directory: Path) -> Iterator[Migration]:
    """The migrations in a directory, in the order of their numbers."""
    for path in sorted(directory.glob("*.sql")):
        yield Migration(path.name, path.read_text(encoding="utf-8"))


def migrate(url: str, migrations: list[Migration], patience: float = PATIENCE) -> list[str]:
    """Apply the migrations that are missing. Returns their names.

    The service may be in use. Raises `EditedMigration`, and after `patience` seconds `AnotherMigrates` and `InUse`.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        for setting in ("idle_session_timeout", "idle_in_transaction_session_timeout"):
            connection.execute("select set_config(%s, %s, false)", [setting, f"{IDLE_SECONDS}s"])
        connection.execute("select set_config('lock_timeout', %s, false)", [f"{patience * 1000:.0f}ms"])
        try:
            # The session holds the lock, so that it is released when the connection is closed.
            connection.execute("select pg_advisory_lock(%s)", [LOCK])
        except errors.LockNotAvailable as error:
            raise AnotherMigrates(
                f"Another process has been migrating the database for more than {patience:g} s{_holder(connection)}. "
                "Start again when it has finished."
            ) from error
        connection.execute("select set_config('lock_timeout', %s, false)", [f"{LOCK_SECONDS}s"])
        connection.execute(
            "create table if not exists migrations ("
            "  name text primary key, checksum text not null, applied_at timestamptz not null default now())"
        )
        applied = dict(connection.execute("select name, checksum from migrations").fetchall())
        for each in migrations:
            if applied.get(each.name, each.checksum) != each.checksum:
                raise EditedMigration(f"{each.name} was edited after it had been applied; add a new migration instead.")
        fresh = [each for each in migrations if each.name not in applied]
        for each in fresh:
            _apply(connection, each, patience)
        return [each.name for each in fresh]


def _apply(connection: psycopg.Connection[Any], migration: Migration, patience: float) -> None:
    """Apply a migration, again after others were in the way. Raises `InUse`."""
    until = time.monotonic() + patience
    while True:
        try:
            with connection.transaction():
                connection.execute(migration.sql.encode())
                connection.execute(
                    "insert into migrations (name, checksum) values (%s, %s)", [migration.name, migration.checksum]
                )
        except (errors.DeadlockDetected, errors.LockNotAvailable) as error:
            time.sleep(LOCK_SECONDS)
            if time.monotonic() > until:
                raise InUse(
                    f"{migration.name} cannot be applied: others have used what it changes for more than {patience:g} "
                    "s. Nothing of it is stored. Try again when less is going on, or while the service is stopped."
                ) from error
        else:
            return


def pending(url: str, migrations: list[Migration]) -> list[str]:
    """The names of migrations that are not applied yet; changes nothing."""
    with psycopg.connect(url) as connection:
        exists = connection.execute("select to_regclass('migrations') is not null").fetchone()
        applied = (
            {row[0] for row in connection.execute("select name from migrations")} if exists == (True,) else set[str]()
        )
        return [each.name for each in migrations if each.name not in applied]


def _holder(connection: psycopg.Connection[Any]) -> str:
    """Who holds the lock, for the message."""
    holder = connection.execute(
        "select pid from pg_locks join pg_database on pg_database.oid = database"
        " where locktype = 'advisory' and granted and objid = %s and classid = 0 and datname = current_database()",
        [LOCK],
    ).fetchone()
    return f" (its session in PostgreSQL has the number {holder[0]})" if holder else ""
