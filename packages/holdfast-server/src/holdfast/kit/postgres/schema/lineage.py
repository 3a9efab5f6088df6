"""Whether a database is of this service, and what it lacks: its records against the migrations of this version.

A baseline is a migration that has the result of earlier ones, which are deleted. Its first line names the last of them:
a database that has applied that one has the result already, and a database that has applied only some is refused.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors

from holdfast.kit.environment.logs import first_line

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
        """Make the change, in the transaction of the caller.

        What is checked at the commit is checked with the last statement, in the same message: others wait for the locks
        of the migration.
        """
        connection.execute(f"{self.sql}\n; set constraints all immediate".encode())

    def is_in(self, applied: Sequence[str]) -> bool:
        """Whether a database has it.

        applied    the names that the database has recorded, in the order in which they were applied
        """
        return self.name in applied


class MigrationError(Exception):
    """A database cannot be migrated. The message says why, and what to do."""


class FailedMigration(MigrationError):
    """PostgreSQL has refused a statement of a migration."""

    def __init__(self, migration: Migration, location: str, error: psycopg.Error, *, is_trial: bool) -> None:
        notes, position = getattr(error, "__notes__", ()), error.diag.statement_position or ""
        part = f" at {notes[0]}" if notes else ""
        if not notes and position.isdecimal():
            part = f" at line {migration.sql[: int(position)].count(chr(10)) + 1}"
        effect = "Nothing of it is stored; the migrations before it are."
        match error:
            case errors.InsufficientPrivilege():
                remedy = (
                    "Let a superuser grant the user of the service what PostgreSQL names, and migrate again. "
                    "docs/deploy/one-machine.md has the statements for a new database."
                )
            case errors.DiskFull():
                remedy = "Make room on the disk of PostgreSQL, and migrate again."
            case _:
                remedy = (
                    "Correct in the database what PostgreSQL names, and migrate again. If you have not caused it, "
                    "report this message."
                )
        super().__init__(
            f"{migration.name} failed{part}, in {location}. PostgreSQL says: {first_line(error).rstrip('.')}. "
            f"{'This was a trial: nothing is stored.' if is_trial else effect} The version that has served until now "
            f"goes on working. {remedy}"
        )


def read_migrations(directory: Path) -> Iterator[Migration]:
    """The migrations in a directory, in the order of their numbers."""
    for path in sorted(directory.glob("*.sql")):
        yield Migration(path.name, path.read_text(encoding="utf-8"))


def location_of(connection: psycopg.Connection[object]) -> str:
    """The database of a connection, in words."""
    info = connection.info
    return f"the database {info.dbname} at {info.host or 'this machine'}:{info.port}"


def applied_migrations(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """The names and checksums that a database has recorded, in the order in which they were applied.

    Raises `MigrationError`.
    """
    if connection.execute("select to_regclass('migrations')").fetchone() == (None,):
        return {}
    try:
        return dict(connection.execute("select name, checksum from migrations order by applied_at, name").fetchall())
    except errors.UndefinedColumn as error:
        raise MigrationError(
            f"The table migrations in {location_of(connection)} is of another program. Nothing was changed. "
            "Use a database that is only for this service."
        ) from error


def not_applied(
    connection: psycopg.Connection[Any],
    applied: Mapping[str, str],
    migrations: Sequence[Migration],
    other_services: Mapping[str, str],
) -> tuple[Sequence[Migration], Sequence[Migration]]:
    """The migrations that are not applied: the baselines whose result is there already, and the others.

    other_services    for the title of each other service, a table that only its databases have

    Raises `MigrationError`.
    """
    location = location_of(connection)
    _require_own_database(connection, applied, migrations, other_services)
    for migration in migrations:
        if applied.get(migration.name, migration.checksum) != migration.checksum:
            raise MigrationError(
                f"{migration.name} was edited after it had been applied to {location}, or a version in development has "
                "applied another text of it. Nothing was changed. Start the version that the database was made with, "
                "or restore a backup of a release. If you have edited the file, undo that, and add a new migration "
                "instead."
            )
    recorded = list(applied)
    order = {name: number for number, name in enumerate(recorded)}
    names = {migration.name for migration in migrations}
    unknown = [name for name in recorded if name not in names and not WITHOUT_FILE.match(name)]
    baselines: list[Migration] = []
    missing_migrations: list[Migration] = []
    newest_position = -1
    for migration in migrations:
        baseline = BASELINE.match(migration.sql)
        if baseline:
            newest_position = max(newest_position, order.get(migration.name, -1), order.get(baseline["last"], -1))
        if migration.is_in(recorded):
            continue
        if baseline and baseline["last"] in order:
            baselines.append(migration)
        elif baseline and unknown and baseline["release"]:
            raise MigrationError(
                f"The last migration of {location} is {unknown[-1]}, and this version goes on from {baseline['last']}. "
                f"Nothing was changed. Install release {baseline['release']} and migrate with it, which brings the "
                "database there. Then migrate with this version."
            )
        elif baseline and unknown:
            raise _unknown_lineage(location, unknown, migration)
        else:
            missing_migrations.append(migration)
    newer = [name for name in unknown if order[name] > newest_position]
    lacking = [migration for migration in missing_migrations if not WITHOUT_FILE.match(migration.name)]
    if newer and lacking:
        raise _unknown_lineage(location, newer, lacking[0])
    return baselines, missing_migrations


def _require_own_database(
    connection: psycopg.Connection[Any],
    applied: Mapping[str, str],
    migrations: Sequence[Migration],
    other_services: Mapping[str, str],
) -> None:
    """Raise `MigrationError` for a database of another service, and for tables of ours without records."""
    location = location_of(connection).replace("the", "The", 1)
    # A database with records may have all tables of ours.
    created = [] if applied else [name for migration in migrations for name in CREATED_TABLE.findall(migration.sql)]
    names = [*created, *other_services.values()]
    rows = connection.execute(
        "select name from unnest(%s::text[]) as name where to_regclass(name) is not null", [names]
    )
    existing = {name for (name,) in rows.fetchall()}
    for title, table in other_services.items():
        if table in existing:
            raise MigrationError(
                f"{location} is one of {title}. Nothing was changed. Each service has a database of its own: correct "
                "the address of this one in the settings."
            )
    if tables := [name for name in created if name in existing]:
        raise MigrationError(
            f"{location} has tables with names of ours ({_listing(tables)}), and no record of the migrations that made "
            "them. Nothing was changed. If it is a backup that was restored in part, restore all of it, with the table "
            "migrations. If the tables are of another program, use an empty database."
        )


def _unknown_lineage(location: str, unknown: Sequence[str], lacking: Migration) -> MigrationError:
    return MigrationError(
        f"{location.replace('the', 'The', 1)} has migrations that this version does not know ({_listing(unknown)}), "
        f"and lacks {lacking.name}. It was made by a version in development, by a version from before release "
        f"{FIRST_RELEASE}, or by a newer one. Nothing was changed. This version upgrades databases of release "
        f"{FIRST_RELEASE} and later. Start the version that made it, restore a backup of a release, or use an empty "
        "database."
    )


def _listing(names: Sequence[str]) -> str:
    """The last names of a list, in words."""
    return ", ".join(names) if len(names) <= 3 else f"{len(names)}, the last is {names[-1]}"
