"""Whether a database is of this service, and what it lacks: its records against the migrations of this version.

A baseline is a migration that has the result of earlier ones, which are deleted. Its first line names the last of them:
a database that has applied that one has the result already, and a database that has applied only some is refused.

Why a database cannot be migrated, in sentences for operators.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


BASELINE = re.compile(
    r"-- Replaces the migrations up to (?P<last>.+), the last of (?:release (?P<release>\S+)|the version .+)\.\n"
)
"""The first line of a baseline: the last migration that it replaces, and the release that has it. The baselines of
release 0.1.0 name a version in development, which was not released."""

FIRST_RELEASE = "0.1.0"
"""The oldest release whose databases are upgraded."""

WITHOUT_FILE = re.compile(r"(procrastinate|functions) ")
"""How the names of records begin that are not of numbered files of ours: those of the job library, and of functions."""

CREATED_TABLE = re.compile(r"^create table (?:if not exists )?(\w+)", re.IGNORECASE | re.MULTILINE)


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

    def is_in(self, applied: Sequence[str]) -> bool:
        """Whether a database has it.

        applied    the names that the database has recorded, in the order in which they were applied
        """
        return self.name in applied


def read_migrations(directory: Path) -> Iterator[Migration]:
    """The migrations in a directory, in the order of their numbers."""
    for path in sorted(directory.glob("*.sql")):
        yield Migration(path.name, path.read_text(encoding="utf-8"))


def applied_migrations(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """The names and checksums that a database has recorded, in the order in which they were applied.

    Raises `UnknownSchema`.
    """
    if connection.execute("select to_regclass('migrations')").fetchone() == (None,):
        return {}
    try:
        return dict(connection.execute("select name, checksum from migrations order by applied_at, name").fetchall())
    except errors.UndefinedColumn as error:
        raise UnknownSchema(
            f"The table migrations in {place_of(connection)} is of another program. Nothing was changed. "
            "Use a database that is only for this service."
        ) from error


def not_applied(
    connection: psycopg.Connection[Any],
    applied: Mapping[str, str],
    migrations: Sequence[Migration],
    other_services: Mapping[str, str],
) -> tuple[Sequence[Migration], Sequence[Migration]]:
    """Of the migrations that are not applied: the baselines whose result is there already, and the others.

    other_services    for the title of each other service, a table that only its databases have

    Raises `UnknownSchema`, `EditedMigration` and `OldSchema`.
    """
    _require_own_database(connection, applied, migrations, other_services)
    for migration in migrations:
        if applied.get(migration.name, migration.checksum) != migration.checksum:
            raise EditedMigration(
                f"{migration.name} was edited after it had been applied to {place_of(connection)}, or a version in "
                "development has applied another text of it. Nothing was changed. Start the version that the database "
                "was made with, or restore a backup of a release. If you have edited the file, undo that, and add a "
                "new migration instead."
            )
    order = list(applied)
    names = {migration.name for migration in migrations}
    unknown = [name for name in order if name not in names and not WITHOUT_FILE.match(name)]
    baselines: list[Migration] = []
    missing: list[Migration] = []
    last_known = -1
    for migration in migrations:
        baseline = BASELINE.match(migration.sql)
        if baseline:
            last_known = max(last_known, _last_index(order, {migration.name, baseline["last"]}))
        if migration.is_in(order):
            continue
        if baseline and baseline["last"] in applied:
            baselines.append(migration)
        elif baseline and unknown:
            raise _old_schema(connection, migration, baseline, unknown)
        else:
            missing.append(migration)
    newer = [name for name in unknown if order.index(name) > last_known]
    lacking = [migration for migration in missing if not WITHOUT_FILE.match(migration.name)]
    if newer and lacking:
        raise _unknown_schema(connection, newer, lacking[0])
    return baselines, missing


def _require_own_database(
    connection: psycopg.Connection[Any],
    applied: Mapping[str, str],
    migrations: Sequence[Migration],
    other_services: Mapping[str, str],
) -> None:
    """Raise `UnknownSchema` for a database of another service, and for tables of ours without records."""
    for title, table in other_services.items():
        if _tables(connection, [table]):
            raise UnknownSchema(
                f"{_place(connection)} is one of {title}. Nothing was changed. Each service has a "
                "database of its own: correct the address of this one in the settings."
            )
    if applied:
        return
    if tables := _tables(
        connection, [name for migration in migrations for name in CREATED_TABLE.findall(migration.sql)]
    ):
        raise UnknownSchema(
            f"{_place(connection)} has tables with names of ours ({_listing(tables)}), and no record of "
            "the migrations that made them. Nothing was changed. If it is a backup that was restored in part, restore "
            "all of it, with the table migrations. If the tables are of another program, use an empty database."
        )


def _last_index(order: Sequence[str], names: Set[str]) -> int:
    """The place of the last of some names; -1 if there is none of them."""
    return max((number for number, name in enumerate(order) if name in names), default=-1)


def _tables(connection: psycopg.Connection[Any], names: Sequence[str]) -> Sequence[str]:
    """Those of some tables that are there."""
    rows = connection.execute(
        "select name from unnest(%s::text[]) as name where to_regclass(name) is not null", [list(names)]
    )
    return [name for (name,) in rows.fetchall()]


def _old_schema(
    connection: psycopg.Connection[Any], migration: Migration, baseline: re.Match[str], unknown: Sequence[str]
) -> OldSchema | UnknownSchema:
    if baseline["release"] is None:
        return _unknown_schema(connection, unknown, migration)
    return OldSchema(
        f"The last migration of {place_of(connection)} is {unknown[-1]}, and this version goes on from "
        f"{baseline['last']}. Nothing was changed. Install release {baseline['release']} and migrate with it, which "
        "brings the database there. Then migrate with this version."
    )


def _unknown_schema(connection: psycopg.Connection[Any], unknown: Sequence[str], lacking: Migration) -> UnknownSchema:
    return UnknownSchema(
        f"{_place(connection)} has migrations that this version does not know ({_listing(unknown)}), and "
        f"lacks {lacking.name}. It was made by a version in development, by a version from before release "
        f"{FIRST_RELEASE}, or by a newer one. Nothing was changed. This version upgrades databases of release "
        f"{FIRST_RELEASE} and later. Start the version that made it, restore a backup of a release, or use an empty "
        "database."
    )


def _place(connection: psycopg.Connection[Any]) -> str:
    """The database at the beginning of a sentence."""
    return place_of(connection).replace("the", "The", 1)


def _listing(names: Sequence[str]) -> str:
    """The last names of a list, in words."""
    return ", ".join(names) if len(names) <= 3 else f"{len(names)}, the last is {names[-1]}"
