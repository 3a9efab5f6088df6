"""Why a database cannot be migrated, in sentences for operators."""

import re

import psycopg
from psycopg import errors

from holdfast.kit.environment.logs import first_line


class MigrationError(Exception):
    """A database cannot be migrated. The message says why, and what to do."""


class EditedMigration(MigrationError):
    """A migration differs from the one that was applied under its name."""


class OldSchema(MigrationError):
    """The database has applied only some of the migrations that a baseline replaces."""


class UnknownSchema(MigrationError):
    """The database was not made by this version, nor by one that it can upgrade."""


class MigrationInProgress(MigrationError):
    """Another process has been migrating the database for too long."""


class SchemaInUse(MigrationError):
    """Other transactions have used the tables that a migration changes for too long."""


STORED = "Nothing of it is stored; the migrations before it are."


class FailedMigration(MigrationError):
    """PostgreSQL has refused a statement of a migration."""

    def __init__(self, name: str, sql: str, place: str, error: psycopg.Error, *, is_trial: bool) -> None:
        stored = "This was a trial: nothing is stored." if is_trial else STORED
        super().__init__(
            f"{name} failed{_part(sql, error)}, in {place}. PostgreSQL says: {first_line(error).rstrip('.')}. "
            f"{stored} The version that has served until now goes on working. {_remedy(error)}"
        )


def _remedy(error: psycopg.Error) -> str:
    if isinstance(error, errors.InsufficientPrivilege):
        return (
            "Let a superuser grant the user of the service what PostgreSQL names, and migrate again. "
            "docs/deploy/one-machine.md has the statements for a new database."
        )
    if isinstance(error, errors.DiskFull):
        return "Make room on the disk of PostgreSQL, and migrate again."
    return (
        "Correct in the database what PostgreSQL names, and migrate again. If you have not caused it, report this "
        "message."
    )


def place_of(connection: psycopg.Connection[object]) -> str:
    """The database of a connection, in words."""
    info = connection.info
    return f"the database {info.dbname} at {info.host or 'this machine'}:{info.port}"


def _part(sql: str, error: psycopg.Error) -> str:
    """The line of a migration at which an error is, or the note of it, in words; empty if neither is known."""
    if notes := getattr(error, "__notes__", ()):
        return f" at {notes[0]}"
    position = error.diag.statement_position
    if position is None or not re.fullmatch(r"\d+", position):
        return ""
    return f" at line {sql[: int(position)].count(chr(10)) + 1}"
