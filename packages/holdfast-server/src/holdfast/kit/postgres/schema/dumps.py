"""Copies of a database: written by the bundled `pg_dump`, read into another database by the bundled `psql`.

The bundled programs are of version 18, and so they read servers of every supported version.

The bundled programs that copy databases: `pg_dump`, `pg_restore` and `psql`, run in pipes.
"""

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from threading import Thread
from typing import IO, Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.postgres.bundled_server import PROGRAMS

CHUNK_BYTES = 1024 * 1024

SESSION_NAME = "holdfast-copy"
"""The name of our sessions. It has no space, so that they are not taken for a service."""

ERROR = re.compile(r"^.*?\b(?:error|ERROR|FATAL): +")
"""What stands before the reason in a line of a program of PostgreSQL."""

REMEDIES = {
    "pg_dump": "Nothing was kept. Correct this, and start again.",
    "psql": "The database is as it was. Correct this, and start again.",
    "pg_restore": "Use another backup.",
}
"""What an operator does when a program has failed."""


@dataclass(frozen=True)
class Program:
    """A running program of PostgreSQL."""

    process: subprocess.Popen[Any]

    @property
    def input(self) -> IO[bytes]:
        assert self.process.stdin
        return self.process.stdin

    @property
    def output(self) -> IO[bytes]:
        assert self.process.stdout
        return self.process.stdout


@contextlib.contextmanager
def run_program(name: str, url: str, *options: str, **pipes: Any) -> Generator[Program]:
    """Run a program of PostgreSQL for as long as the block lasts. Raises `CannotStart` if it fails.

    url    the database that it uses; empty if it uses none
    """
    environment = {**os.environ, "LC_ALL": "C", "PGAPPNAME": SESSION_NAME}
    parts: dict[str, Any] = dict(conninfo_to_dict(url))
    if password := parts.pop("password", None):  # other users of the machine can see the words of a command
        environment["PGPASSWORD"] = str(password)
    place = [f"--dbname={make_conninfo('', **parts)}"] if url else []
    with tempfile.TemporaryFile() as errors:
        command = [PROGRAMS / name, *options, *place]
        process = subprocess.Popen(command, env=environment, stderr=errors, **pipes)  # noqa: S603 - the command is ours
        try:
            yield Program(process)
        except BaseException:
            process.kill()
            raise
        finally:
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
            status = process.wait()
        if status:
            errors.seek(0)
            raise CannotStart(
                f"{name} did not finish: {_reason(errors.read().decode(errors='replace'))}. {REMEDIES[name]}"
            )


def piped(name: str, archive: Iterable[bytes], *options: str) -> Iterator[bytes]:
    """What a program writes while it reads an archive. Raises `CannotStart` if it fails, before the end."""
    failures: list[Exception] = []
    with run_program(name, "", *options, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:

        def feed() -> None:
            try:
                # A program that needs no more, or has failed, closes its input.
                with contextlib.suppress(BrokenPipeError), program.input:
                    for chunk in archive:
                        program.input.write(chunk)
            except Exception as error:  # raised below, in the thread of the caller
                failures.append(error)

        feeder = Thread(target=feed, daemon=True)
        feeder.start()
        yield from chunks_of(program.output)
        feeder.join()
    if failures:
        raise failures[0]


def chunks_of(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        yield chunk


def _reason(output: str) -> str:
    """What a program said about its failure: the first error, without its context, which may quote rows."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if ERROR.search(line)]
    return ERROR.sub("", next(iter(errors or lines), "it gave no reason"))


SUPPORTED_VERSIONS = range(15, 19)
"""The major versions of PostgreSQL that Holdfast supports."""

HEADER_BYTES = 4096
"""The first bytes of a script of `pg_dump`, which have its settings."""

UNKNOWN_SETTING = b"SET transaction_timeout = 0;\n"
"""A line of every script that `pg_dump` writes. PostgreSQL 15 and 16 refuse it, and it changes nothing here."""

LOCK_TIMEOUT = "--lock-wait-timeout=60s"
"""An option of `pg_dump`: how long it waits for a table that a migration has locked."""

EMPTY: LiteralString = (
    "drop schema public cascade; create schema public; grant usage on schema public to public;"
    " comment on schema public is 'standard public schema';\n"
)
"""Statements that remove everything from a database, in the transaction that fills it again."""

TABLES: LiteralString = """
    select nspname, relname from pg_class join pg_namespace on pg_namespace.oid = relnamespace
     where relkind = 'r' and nspname !~ '^pg_' and nspname <> 'information_schema'
     order by 1, 2
"""

SERVICE_SESSIONS: LiteralString = """
    select count(*) from pg_stat_activity
     where datname = current_database() and application_name like 'holdfast %'
"""


@dataclass(frozen=True)
class Snapshot:
    """A moment of a database, which `pg_dump` and our own statements see alike.

    connection    the session that holds it; statements in it see this moment
    name          what PostgreSQL calls it
    taken_at      a time of the database's clock: whatever was acknowledged before it is in the snapshot
    """

    connection: psycopg.Connection[Any]
    url: str
    name: str
    taken_at: datetime

    @property
    def server_version(self) -> str:
        """The version of PostgreSQL, such as `15.20`."""
        return version_text(self.connection)

    def row_counts(self) -> dict[str, int]:
        """The number of rows of each table, by its name with its schema."""
        return row_counts(self.connection)

    def dump(self, *options: str) -> Iterator[bytes]:
        """What `pg_dump` writes, in chunks. Raises `CannotStart` if it fails."""
        with run_program(
            "pg_dump", self.url, f"--snapshot={self.name}", LOCK_TIMEOUT, *options, stdout=subprocess.PIPE
        ) as program:
            yield from chunks_of(program.output)


@contextlib.contextmanager
def open_snapshot(url: str) -> Generator[Snapshot]:
    """Take a snapshot of a database for as long as the block lasts. Raises `CannotStart` for a failing database."""
    with report_database_errors(), connect(url) as connection:
        [taken_at] = _row(connection, "select clock_timestamp()")
        connection.execute("begin isolation level repeatable read read only")
        for setting in ("statement_timeout", "idle_in_transaction_session_timeout"):
            connection.execute("select set_config(%s, '0', true)", [setting])
        if connection.info.server_version >= 170000:
            connection.execute("set local transaction_timeout = 0")
        [name] = _row(connection, "select pg_export_snapshot()")
        # A URL may name several servers. The snapshot is in the one that answered.
        server = {"host": connection.info.host, "port": str(connection.info.port)}
        yield Snapshot(connection, make_conninfo(url, **server), name, taken_at)


def connect(url: str) -> psycopg.Connection[Any]:
    """A session in which each statement commits by itself."""
    return psycopg.connect(url, autocommit=True, application_name=SESSION_NAME, connect_timeout=10)


@contextlib.contextmanager
def report_database_errors() -> Generator[None]:
    """Raise `CannotStart` if the database cannot be used any more."""
    try:
        yield
    except psycopg.Error as error:
        reason = (str(error).strip() or type(error).__name__).split("\n", 1)[0]
        raise CannotStart(f"The database does not go on: {reason}. Start this again when it does.") from error


def version_text(connection: psycopg.Connection[Any]) -> str:
    """The version of a server, such as `15.20`."""
    return f"{connection.info.server_version // 10000}.{connection.info.server_version % 10000}"


def location_text(connection: psycopg.Connection[Any]) -> str:
    """The name of a database and its server, in words."""
    info = connection.info
    return f"the database {info.dbname} on {info.host or 'this machine'}:{info.port}"


def require_supported_version(connection: psycopg.Connection[Any]) -> None:
    """Raise `CannotStart` if the server has a version that Holdfast does not support."""
    if connection.info.server_version // 10000 not in SUPPORTED_VERSIONS:
        raise CannotStart(
            f"This server is PostgreSQL {version_text(connection)}. Holdfast needs a server of version "
            f"{SUPPORTED_VERSIONS.start} to {SUPPORTED_VERSIONS.stop - 1}."
        )


def row_counts(connection: psycopg.Connection[Any]) -> dict[str, int]:
    """The number of rows of each table, by its name with its schema."""
    counts: dict[str, int] = {}
    for schema, table in connection.execute(TABLES).fetchall():
        statement = sql.SQL("select count(*) from {}").format(sql.Identifier(schema, table))
        [counts[f"{schema}.{table}"]] = _row(connection, statement)
    return counts


def is_empty(connection: psycopg.Connection[Any]) -> bool:
    """Whether a database has no tables."""
    return not connection.execute(TABLES).fetchall()


def count_service_sessions(connection: psycopg.Connection[Any]) -> int:
    """The number of sessions in this database that belong to running services."""
    [count] = _row(connection, SERVICE_SESSIONS)
    return count


def ensure_role(connection: psycopg.Connection[Any], role: str) -> None:
    """Let a role exist that cannot log in, and that the present user may become. Raises `CannotStart`."""
    name = sql.Identifier(role)
    try:
        if connection.execute("select from pg_roles where rolname = %s", [role]).fetchone() is None:
            connection.execute(sql.SQL("create role {} nologin").format(name))
        # From PostgreSQL 16 on, a user is a member of each role that it made, and may not become it by that alone.
        right = "set" if connection.info.server_version >= 160000 else "member"
        if _row(connection, "select pg_has_role(current_user, %s, %s)", role, right) == (False,):
            connection.execute(sql.SQL("grant {} to current_user").format(name))
    except psycopg.errors.InsufficientPrivilege as error:
        user = connection.info.user
        raise CannotStart(
            f"The user {user} may not make the role {role}, which the database needs. Let a superuser of the server "
            f"run: create role {role} nologin; grant {role} to {user}"
        ) from error


def script(archive: Iterable[bytes]) -> Iterator[bytes]:
    """The statements in an archive of `pg_dump --format=custom`, in chunks. Raises `CannotStart`."""
    return piped("pg_restore", archive, "--no-owner", "--file=-")


def require_readable(archive: Iterable[bytes]) -> None:
    """Let `pg_restore` read the table of contents of an archive. Raises `CannotStart` if it cannot."""
    for _ in piped("pg_restore", archive, "--list"):
        pass


def load(url: str, statements: Iterable[bytes], *, replace: bool) -> None:
    """Run a script of `pg_dump` in one transaction: a database gets all of it, or nothing. Raises `CannotStart`.

    replace    whether everything in the database is removed first, in the same transaction
    """
    options = ("--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", f"--output={os.devnull}")
    with (
        run_program("psql", url, *options, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as program,
        contextlib.suppress(BrokenPipeError),  # if psql has ended, its own message says why
    ):
        program.input.write(b"begin;\n" + (EMPTY.encode() if replace else b""))
        for chunk in accepted_by_all_versions(statements):
            program.input.write(chunk)
        # Only now: psql reads the end of this process as the end of its input.
        program.input.write(b"\ncommit;\n")
    with report_database_errors(), connect(url) as connection:
        # Until it has figures about the tables, PostgreSQL makes poor plans.
        connection.execute("analyze")


def accepted_by_all_versions(statements: Iterable[bytes]) -> Iterator[bytes]:
    """A script of `pg_dump` without the setting that PostgreSQL 15 and 16 do not know."""
    header = b""
    for chunk in statements:
        if len(header) < HEADER_BYTES:
            header += chunk
            if len(header) >= HEADER_BYTES:
                yield header.replace(UNKNOWN_SETTING, b"", 1)
        else:
            yield chunk
    if len(header) < HEADER_BYTES:
        yield header.replace(UNKNOWN_SETTING, b"", 1)


def _row(connection: psycopg.Connection[Any], statement: Any, *values: Any) -> tuple[Any, ...]:
    row = connection.execute(statement, values or None).fetchone()
    assert row is not None
    return row
