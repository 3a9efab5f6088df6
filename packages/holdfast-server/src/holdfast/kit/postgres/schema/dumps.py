"""Copies of a database: written by the bundled `pg_dump`, read into another database by the bundled `psql`.

The bundled programs are of version 18, and so they read servers of every supported version.
"""

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from threading import Thread
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.environment.logs import first_line
from holdfast.kit.postgres.bundled_server import PROGRAMS

CHUNK_BYTES = 1024 * 1024

SESSION_NAME = "holdfast-copy"
"""The name of our sessions. It has no space, so that they are not taken for a service."""

SUPPORTED_VERSIONS = range(15, 19)
"""The major versions of PostgreSQL that Holdfast supports."""

ROLES = {"inventory": "holdfast_shop"}
"""The roles that the database of a service needs. They belong to the server, so that no dump has them."""

ERROR = re.compile(r"^.*?\b(?:error|ERROR|FATAL): +")
"""What stands before the reason in a line of a program of PostgreSQL."""

REMEDIES = {
    "pg_dump": "Nothing was kept. Correct this, and start again.",
    "psql": "The database is as it was. Correct this, and start again.",
    "pg_restore": "Use another backup.",
}
"""What an operator does when a program has failed."""

REMOVE_EVERYTHING = (
    b"drop schema public cascade; create schema public; grant usage on schema public to public;"
    b" comment on schema public is 'standard public schema';\n"
)

TABLES: LiteralString = """
    select nspname, relname from pg_class join pg_namespace on pg_namespace.oid = relnamespace
     where relkind = 'r' and nspname !~ '^pg_' and nspname <> 'information_schema'
     order by 1, 2
"""


@dataclass(frozen=True)
class Snapshot:
    """A moment of a database, which `pg_dump` and our own statements see alike.

    connection    the session that holds it; statements in it see this moment
    name          what PostgreSQL calls it
    created_at    a time of the database's clock: whatever was acknowledged before it is in the snapshot
    """

    connection: psycopg.Connection[Any]
    url: str
    name: str
    created_at: datetime

    def dump(self, form: str) -> Iterator[bytes]:
        """What `pg_dump` writes, in chunks: an archive (`custom`) or a script (`plain`). Raises `CannotStart`."""
        # A migration may have locked a table.
        options = (f"--snapshot={self.name}", "--lock-wait-timeout=60s", f"--format={form}", "--no-owner")
        return run_program("pg_dump", *options, url=self.url)


@contextlib.contextmanager
def open_snapshot(url: str) -> Generator[Snapshot]:
    """Take a snapshot of a database for as long as the block lasts. Raises `CannotStart` for a failing database."""
    with session(url) as connection:
        [[created_at]] = connection.execute("select clock_timestamp()").fetchall()
        connection.execute("begin isolation level repeatable read read only")
        for setting in ("statement_timeout", "idle_in_transaction_session_timeout"):
            connection.execute("select set_config(%s, '0', true)", [setting])
        if connection.info.server_version >= 170000:
            connection.execute("set local transaction_timeout = 0")
        [[name]] = connection.execute("select pg_export_snapshot()").fetchall()
        # A URL may name several servers. The snapshot is in the one that answered.
        server = {"host": connection.info.host, "port": str(connection.info.port)}
        yield Snapshot(connection, make_conninfo(url, **server), name, created_at)


@contextlib.contextmanager
def session(url: str) -> Generator[psycopg.Connection[Any]]:
    """A session in which each statement commits by itself. Raises `CannotStart` if the database fails meanwhile."""
    try:
        with psycopg.connect(url, autocommit=True, application_name=SESSION_NAME, connect_timeout=10) as connection:
            yield connection
    except psycopg.Error as error:
        message = f"The database does not go on: {first_line(error)}. Start this again when it does."
        raise CannotStart(message) from error


def version_text(connection: psycopg.Connection[Any]) -> str:
    """The version of a server, such as `15.20`."""
    major, minor = divmod(connection.info.server_version, 10000)
    return f"{major}.{minor}"


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


def require_stopped(connection: psycopg.Connection[Any], service: str) -> None:
    """Raise `CannotStart` if a service uses a database."""
    statement = "select count(*) from pg_stat_activity where datname = %s and application_name like 'holdfast %%'"
    [[sessions]] = connection.execute(statement, [connection.info.dbname]).fetchall()
    if sessions:
        raise CannotStart(
            f"The {service} service is running: it has {sessions} sessions in the database. Stop it first: press "
            f"Ctrl-C where `holdfast up` or `holdfast {service} serve` runs, or `systemctl stop holdfast-{service}`."
        )


def is_empty(connection: psycopg.Connection[Any]) -> bool:
    """Whether a database has no tables."""
    return not connection.execute(TABLES).fetchall()


def row_counts(connection: psycopg.Connection[Any]) -> dict[str, int]:
    """The number of rows of each table, by its name with its schema."""
    counts: dict[str, int] = {}
    for schema, table in connection.execute(TABLES).fetchall():
        statement = sql.SQL("select count(*) from {}").format(sql.Identifier(schema, table))
        [[counts[f"{schema}.{table}"]]] = connection.execute(statement).fetchall()
    return counts


def script(archive: Iterable[bytes]) -> Iterator[bytes]:
    """The statements in an archive of `pg_dump`, in chunks. Raises `CannotStart`."""
    return run_program("pg_restore", "--no-owner", "--file=-", input=archive)


def fill(url: str, service: str, statements: Iterable[bytes], rows: Mapping[str, int], *, replace: bool) -> None:
    """Run a script of `pg_dump` in one transaction: a database gets all of it, or nothing. Raises `CannotStart`.

    rows       the number of rows that each table must have then
    replace    whether everything in the database is removed first, in the same transaction
    """

    def transaction() -> Iterator[bytes]:
        chunks = iter(statements)
        yield b"begin;\n" + (REMOVE_EVERYTHING if replace else b"")
        # PostgreSQL 15 and 16 refuse this line at the beginning of every script, and it changes nothing here.
        yield next(chunks, b"").replace(b"SET transaction_timeout = 0;\n", b"", 1)
        yield from chunks
        # Only after all of them: psql takes the end of this process for the end of its input.
        yield b"\ncommit;\n"

    if role := ROLES.get(service):
        with session(url) as connection:
            _ensure_role(connection, role)
    options = ("--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", f"--output={os.devnull}")
    for _ in run_program("psql", *options, url=url, input=transaction()):
        pass
    with session(url) as connection:
        # Until it has figures about the tables, PostgreSQL makes poor plans.
        connection.execute("analyze")
        counts = row_counts(connection)
    for table in sorted(rows.keys() | counts.keys()):
        if counts.get(table, 0) != rows.get(table, 0):
            raise CannotStart(
                f"The copy is not whole: the table {table} has {counts.get(table, 0)} rows instead of "
                f"{rows.get(table, 0)}. Do not use it. Start again with an empty database."
            )


def _ensure_role(connection: psycopg.Connection[Any], role: str) -> None:
    """Let a role exist that cannot log in, and that the present user may become. Raises `CannotStart`."""
    name = sql.Identifier(role)
    try:
        if connection.execute("select from pg_roles where rolname = %s", [role]).fetchone() is None:
            connection.execute(sql.SQL("create role {} nologin").format(name))
        # From PostgreSQL 16 on, a user is a member of each role that it made, and may not become it by that alone.
        right = "set" if connection.info.server_version >= 160000 else "member"
        if connection.execute("select pg_has_role(current_user, %s, %s)", [role, right]).fetchone() == (False,):
            connection.execute(sql.SQL("grant {} to current_user").format(name))
    except psycopg.errors.InsufficientPrivilege as error:
        user = connection.info.user
        raise CannotStart(
            f"The user {user} may not make the role {role}, which the database needs. Let a superuser of the server "
            f"run: create role {role} nologin; grant {role} to {user}"
        ) from error


def run_program(name: str, *options: str, url: str = "", input: Iterable[bytes] = ()) -> Iterator[bytes]:
    """What a program of PostgreSQL writes, in chunks, while it reads an input. Raises `CannotStart` if it fails.

    url    the database that it uses; empty if it uses none
    """
    environment = {**os.environ, "LC_ALL": "C", "PGAPPNAME": SESSION_NAME}
    parts: dict[str, Any] = dict(conninfo_to_dict(url))
    if password := parts.pop("password", None):  # other users of the machine can see the words of a command
        environment["PGPASSWORD"] = str(password)
    command = [PROGRAMS / name, *options, *([f"--dbname={make_conninfo('', **parts)}"] if url else [])]
    failures: list[Exception] = []
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(  # noqa: S603 - the command is ours
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        )
        assert process.stdin
        assert process.stdout
        target = process.stdin

        def feed() -> None:
            try:
                # A program that needs no more, or has failed, closes its input.
                with contextlib.suppress(BrokenPipeError), target:
                    for chunk in input:
                        target.write(chunk)
            except Exception as error:  # it is raised in the thread of the caller
                failures.append(error)

        feeder = Thread(target=feed, daemon=True)
        feeder.start()
        try:
            while chunk := process.stdout.read(CHUNK_BYTES):
                yield chunk
            feeder.join()
            if failures:
                raise failures[0]
        except BaseException:
            process.kill()
            raise
        finally:
            process.stdout.close()
            status = process.wait()
        if status:
            errors.seek(0)
            reason = _reason(errors.read().decode(errors="replace"))
            raise CannotStart(f"{name} did not finish: {reason}. {REMEDIES[name]}")


def _reason(output: str) -> str:
    """What a program said about its failure: the first error, without its context, which may quote rows."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if ERROR.search(line)]
    return ERROR.sub("", next(iter(errors or lines), "it gave no reason"))
