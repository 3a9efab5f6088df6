"""Migrations: numbered `.sql` files, each applied once, in order, in its own transaction.

An applied file must not be edited; its checksum is stored and compared. A file that fails is rolled back completely,
and is the next one to be applied.

A baseline is a migration that has the result of earlier ones, which are deleted. Its first line names the last of them:
a database that has applied that one has the result already, and a database that has applied only some is refused.
"""

import hashlib
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors

LOCK = 0x686F6C64  # "hold": one migration at a time, whichever process starts first

MIGRATION_TIMEOUT_SECONDS = 60
"""Seconds to wait for another process that migrates the same database."""

LOCK_TIMEOUT_SECONDS = 1
"""Seconds for which a migration waits for a lock, while other transactions wait behind it; then it lets them run."""

IDLE_TIMEOUT_SECONDS = 5
"""Seconds after which PostgreSQL ends the session of a process that was stopped during a migration."""

BASELINE = re.compile(r"-- Replaces the migrations up to (?P<last>.+), the last of the (?P<version>version .+)\.\n")
"""The first line of a baseline: the last migration that it replaces, and the version of the program that has it."""


@dataclass(frozen=True)
class Migration:
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()

    def apply(self, connection: psycopg.Connection[Any]) -> None:
        """Make the change, in the transaction of the caller."""
        connection.execute(self.sql.encode())


class EditedMigration(Exception):
    """A migration differs from the one that was applied under its name."""


class OldSchema(Exception):
    """The database has applied only some of the migrations that a baseline replaces."""


class MigrationInProgress(Exception):
    """Another process has been migrating the database for too long."""


class SchemaInUse(Exception):
    """Other transactions have used the tables that a migration changes for too long."""


def read_migrations(directory: Path) -> Iterator[Migration]:
    """The migrations in a directory, in the order of their numbers."""
    for path in sorted(directory.glob("*.sql")):
        yield Migration(path.name, path.read_text(encoding="utf-8"))


def migrate(url: str, migrations: Sequence[Migration], patience: float = MIGRATION_TIMEOUT_SECONDS) -> list[str]:
    """Apply the migrations that are missing. Returns their names.

    The service may be in use. Raises `EditedMigration` and `OldSchema`, and after `patience` seconds
    `MigrationInProgress` and `SchemaInUse`.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        for setting in ("idle_session_timeout", "idle_in_transaction_session_timeout"):
            connection.execute("select set_config(%s, %s, false)", [setting, f"{IDLE_TIMEOUT_SECONDS}s"])
        connection.execute("select set_config('lock_timeout', %s, false)", [f"{patience * 1000:.0f}ms"])
        try:
            # The session holds the lock, so that it is released when the connection is closed.
            connection.execute("select pg_advisory_lock(%s)", [LOCK])
        except errors.LockNotAvailable as error:
            raise MigrationInProgress(
                f"Another process has been migrating the database for more than {patience:g} s{_holder(connection)}. "
                "Start again when it has finished."
            ) from error
        connection.execute("select set_config('lock_timeout', %s, false)", [f"{LOCK_TIMEOUT_SECONDS}s"])
        connection.execute(
            "create table if not exists migrations ("
            "  name text primary key, checksum text not null, applied_at timestamptz not null default now())"
        )
        applied = dict(connection.execute("select name, checksum from migrations order by applied_at").fetchall())
        for migration in migrations:
            if applied.get(migration.name, migration.checksum) != migration.checksum:
                raise EditedMigration(
                    f"{migration.name} was edited after it had been applied; add a new migration instead."
                )
        baselines, missing = _not_applied(list(applied), migrations)
        for baseline in baselines:
            _record(connection, baseline)
        for migration in missing:
            _apply(connection, migration, patience)
        _deny_temporary_tables(connection)
        return [migration.name for migration in missing]


def _not_applied(
    applied: Sequence[str], migrations: Sequence[Migration]
) -> tuple[Sequence[Migration], Sequence[Migration]]:
    """Of the migrations that are not applied: the baselines whose result is there already, and the others.

    Raises `OldSchema`.
    """
    baselines: list[Migration] = []
    missing: list[Migration] = []
    names = {migration.name for migration in migrations}
    replaced = [name for name in applied if name not in names]
    for migration in migrations:
        if migration.name in applied:
            continue
        baseline = BASELINE.match(migration.sql)
        if baseline and baseline["last"] in replaced:
            baselines.append(migration)
        elif baseline and replaced:
            raise OldSchema(
                f"The last migration of this database is {replaced[-1]}, and this version goes on from "
                f"{baseline['last']}. Start the {baseline['version']} once, which brings the database there. "
                "Then start this version."
            )
        else:
            missing.append(migration)
    return baselines, missing


def _deny_temporary_tables(connection: psycopg.Connection[Any]) -> None:
    """Allow only the owner of the database to create temporary tables. PostgreSQL allows it to every role by default.

    This project does not use them, and they hide other tables of the same name. This is not a migration, since a
    database that is restored from a dump gets the default rights again.
    """
    connection.execute(
        """
        do $$ begin
            if has_database_privilege('public', current_database(), 'temporary') then
                execute format('revoke temporary on database %I from public', current_database());
            end if;
        end $$
        """
    )


def _apply(connection: psycopg.Connection[Any], migration: Migration, patience: float) -> None:
    """Apply a migration, and retry while other transactions block it. Raises `SchemaInUse`."""
    until = time.monotonic() + patience
    while True:
        try:
            with connection.transaction():
                migration.apply(connection)
                _record(connection, migration)
        except (errors.DeadlockDetected, errors.LockNotAvailable) as error:
            time.sleep(LOCK_TIMEOUT_SECONDS)
            if time.monotonic() > until:
                raise SchemaInUse(
                    f"{migration.name} cannot be applied: others have used what it changes for more than {patience:g} "
                    "s. Nothing of it is stored. Try again when less is going on, or while the service is stopped."
                ) from error
        else:
            return


def _record(connection: psycopg.Connection[Any], migration: Migration) -> None:
    """Store that a migration is applied."""
    connection.execute("insert into migrations (name, checksum) values (%s, %s)", [migration.name, migration.checksum])


def pending_migrations(url: str, migrations: Sequence[Migration]) -> list[str]:
    """The names of the migrations that are not applied yet. Changes nothing. Raises `OldSchema`."""
    with psycopg.connect(url) as connection:
        exists = connection.execute("select to_regclass('migrations') is not null").fetchone()
        rows = connection.execute("select name from migrations order by applied_at") if exists == (True,) else ()
        _, missing = _not_applied([name for (name,) in rows], migrations)
        return [migration.name for migration in missing]


def _holder(connection: psycopg.Connection[Any]) -> str:
    """The holder of the lock, for the error message."""
    holder = connection.execute(
        "select pid from pg_locks join pg_database on pg_database.oid = database"
        " where locktype = 'advisory' and granted and objid = %s and classid = 0 and datname = current_database()",
        [LOCK],
    ).fetchone()
    return f" (its session in PostgreSQL has the number {holder[0]})" if holder else ""
