"""Migrations: numbered `.sql` files, each applied once, in order, in its own transaction.

An applied file must not be edited; its checksum is stored and compared. A file that fails is rolled back completely,
and is the next one to be applied. `lineage.py` tells which are missing.
"""

import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import errors

from holdfast.kit.postgres.schema.lineage import (
    FailedMigration,
    Migration,
    MigrationError,
    applied_migrations,
    location_of,
    not_applied,
)

LOCK = 0x686F6C64  # "hold": one migration at a time, of all processes

MIGRATION_TIMEOUT_SECONDS = 60
"""Seconds to wait for another process that migrates the same database."""

LOCK_TIMEOUT_SECONDS = 0.1
"""Seconds for which a migration waits for a lock, while other transactions wait behind it; then it lets them run. The
shortest time after which the services refuse to wait for a lock is twice as long. PostgreSQL's `deadlock_timeout` is
longer, so a deadlock ends the migration, and no transaction of the service."""

RETRY_SECONDS = 0.5
"""Seconds for which it lets them run."""

IDLE_TIMEOUT_SECONDS = 5
"""Seconds after which PostgreSQL ends the session of a process that was stopped during a migration."""

TRIAL_SECONDS = 1
"""Seconds for which a trial may hold the locks of the migrations that it has applied."""

TABLE = """
    create table if not exists migrations (
        name text primary key, checksum text not null, applied_at timestamptz not null default now())
"""

NO_SERVICES: Mapping[str, str] = {}


@dataclass(frozen=True)
class Trial:
    """The result of a trial.

    succeeded   the names of the migrations that were applied and rolled back
    untried     the names of those after them that could not be tried
    reason      why not, in a sentence; empty if all were tried
    """

    succeeded: Sequence[str]
    untried: Sequence[str] = ()
    reason: str = ""


def migrate(
    url: str,
    migrations: Sequence[Migration],
    patience: float = MIGRATION_TIMEOUT_SECONDS,
    other_services: Mapping[str, str] = NO_SERVICES,
) -> list[str]:
    """Apply the migrations that are missing. Returns their names.

    The service may be in use. Raises `MigrationError`: at once if the database is not one that this version upgrades;
    after `patience` seconds if another process migrates it, or if transactions use what changes; or `FailedMigration`.

    other_services    see `not_applied`
    """
    with _session(url, patience) as connection:
        baselines, missing_migrations = not_applied(
            connection, applied_migrations(connection), migrations, other_services
        )
        connection.execute(TABLE)
        for baseline in baselines:
            _record(connection, baseline)
        for migration in missing_migrations:

            def apply(migration: Migration = migration) -> None:
                with connection.transaction():
                    _apply(connection, migration)

            _apply_when_unblocked(apply, migration.name, patience)
        _deny_temporary_tables(connection)
        return [migration.name for migration in missing_migrations]


def try_migrations(
    url: str,
    migrations: Sequence[Migration],
    patience: float = MIGRATION_TIMEOUT_SECONDS,
    other_services: Mapping[str, str] = NO_SERVICES,
    seconds: float = TRIAL_SECONDS,
) -> Trial:
    """Apply the migrations that are missing in one transaction, and roll it back. Raises what `migrate` raises.

    The service may be in use: the transaction ends after `seconds`.
    """
    with _session(url, patience) as connection:
        applied = applied_migrations(connection)
        baselines, missing_migrations = not_applied(connection, applied, migrations, other_services)
        seconds = seconds if applied else patience  # no process uses an empty database
        names = [migration.name for migration in missing_migrations]
        succeeded: list[str] = []

        def apply() -> None:
            succeeded.clear()
            with connection.transaction(force_rollback=True), _cancelled_after(seconds, connection):
                connection.execute(TABLE)
                for baseline in baselines:
                    _record(connection, baseline)
                for migration in missing_migrations:
                    _apply(connection, migration, is_trial=True)
                    succeeded.append(migration.name)

        try:
            _apply_when_unblocked(apply, ", ".join(names), patience)
        except FailedMigration as failure:
            match failure.__cause__:
                case errors.QueryCanceled():
                    reason = f"A trial ends after {seconds:g} s, so that the service does not wait for it."
                case errors.UnsafeNewEnumValueUsage():
                    reason = "It uses a value of a type that PostgreSQL allows only when what adds the value is stored."
                case _:
                    raise
        else:
            return Trial(names)
        return Trial(succeeded, names[len(succeeded) :], f"{reason} Try them on a copy of the database.")


def pending_migrations(
    url: str, migrations: Sequence[Migration], other_services: Mapping[str, str] = NO_SERVICES
) -> list[str]:
    """The names of the migrations that were never applied. Changes nothing. Raises `MigrationError`."""
    with psycopg.connect(url) as connection:
        applied = applied_migrations(connection)
        _, missing_migrations = not_applied(connection, applied, migrations, other_services)
        return [migration.name for migration in missing_migrations if migration.name not in applied]


@contextmanager
def _session(url: str, patience: float) -> Generator[psycopg.Connection[Any]]:
    """A connection that may migrate, while no other one does. Raises `MigrationError`."""
    with psycopg.connect(url, autocommit=True) as connection:
        for setting in ("idle_session_timeout", "idle_in_transaction_session_timeout"):
            connection.execute("select set_config(%s, %s, false)", [setting, f"{IDLE_TIMEOUT_SECONDS}s"])
        connection.execute("select set_config('lock_timeout', %s, false)", [f"{patience * 1000:.0f}ms"])
        try:
            # The session holds the lock, so that it is released when the connection is closed.
            connection.execute("select pg_advisory_lock(%s)", [LOCK])
        except errors.LockNotAvailable as error:
            raise MigrationError(
                f"Another process has been migrating the database for more than {patience:g} s{_holder(connection)}. "
                "Start again when it has finished."
            ) from error
        connection.execute("select set_config('lock_timeout', %s, false)", [f"{LOCK_TIMEOUT_SECONDS * 1000:.0f}ms"])
        yield connection


def _apply(connection: psycopg.Connection[Any], migration: Migration, *, is_trial: bool = False) -> None:
    """Apply a migration in the transaction of the caller, and record it. Raises `FailedMigration`."""
    location = location_of(connection)
    try:
        # First: others wait for the locks of the migration from its first statement to the commit.
        _record(connection, migration)
        migration.apply(connection)
    except (errors.DeadlockDetected, errors.LockNotAvailable):
        raise
    except psycopg.Error as error:
        raise FailedMigration(migration, location, error, is_trial=is_trial) from error


def _apply_when_unblocked(apply: Callable[[], None], names: str, patience: float) -> None:
    """Apply migrations, and retry while other transactions block them. Raises `MigrationError`."""
    until = time.monotonic() + patience
    while True:
        try:
            return apply()
        except (errors.DeadlockDetected, errors.LockNotAvailable) as error:
            time.sleep(RETRY_SECONDS)
            if time.monotonic() > until:
                raise MigrationError(
                    f"{names} cannot be applied: others have used the same tables for more than {patience:g} s. "
                    "Nothing of it is stored. Try again when less is going on, or while the service is stopped."
                ) from error


@contextmanager
def _cancelled_after(seconds: float, connection: psycopg.Connection[Any]) -> Generator[None]:
    """Cancel what a transaction does after some time. No statement of it takes longer, whatever is lost."""
    connection.execute("select set_config('statement_timeout', %s, true)", [f"{seconds * 1000:.0f}ms"])
    timer = threading.Timer(seconds, connection.cancel_safe)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


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


def _record(connection: psycopg.Connection[Any], migration: Migration) -> None:
    """Store that a migration is applied. Functions can be applied again."""
    connection.execute(
        "insert into migrations (name, checksum) values (%s, %s)"
        " on conflict (name) do update set applied_at = excluded.applied_at",
        [migration.name, migration.checksum],
    )


def _holder(connection: psycopg.Connection[Any]) -> str:
    """The holder of the lock, for the error message."""
    holder = connection.execute(
        "select pid from pg_locks join pg_database on pg_database.oid = database"
        " where locktype = 'advisory' and granted and objid = %s and classid = 0 and datname = current_database()",
        [LOCK],
    ).fetchone()
    return f" (its session in PostgreSQL has the number {holder[0]})" if holder else ""
