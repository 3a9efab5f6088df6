"""A primary and a synchronous standby of the bundled PostgreSQL. The standby applies each commit some milliseconds
late.

A commit at the primary waits until the standby shows the change, as if it were far away.
"""

import contextlib
import os
import subprocess
import time
from collections.abc import Generator
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg import sql

from holdfast.kit.postgres import bundled
from holdfast.kit.postgres.bundled_server import PORT, PROGRAMS, SUPERUSER, Cluster


class Servers:
    """Two servers in a directory, side by side."""

    def __init__(self, directory: Path) -> None:
        one, two = directory / "one", directory / "two"
        self._primary, self._standby = (Cluster(data_dir, data_dir.with_suffix(".log")) for data_dir in (one, two))
        self._primary.make()
        self._primary.start()
        command = [
            PROGRAMS / "pg_basebackup",
            "-D",
            two,
            "-h",
            one,
            "-p",
            str(PORT),
            "-U",
            SUPERUSER,
            "-R",
            "-c",
            "fast",
        ]
        subprocess.run(command, check=True, capture_output=True)
        owner = one.stat()
        for path in (two, *two.rglob("*")):
            os.chown(path, owner.st_uid, owner.st_gid)
        self._standby.start()
        self._tell(self._primary, "synchronous_commit", "remote_apply")
        self._tell(self._primary, "synchronous_standby_names", "*")
        while self._query_value("select sync_state from pg_stat_replication") != "sync":
            time.sleep(0.05)

    def url(self, database: str) -> str:
        """The address of a database at the primary."""
        return self._primary.url(SUPERUSER, database)

    def make(self, database: str) -> str:
        """Make a database; its address."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(database)))
        return self.url(database)

    def delay(self, milliseconds: int) -> None:
        """Let the standby apply each commit so late."""
        self._tell(self._standby, "recovery_min_apply_delay", f"{milliseconds}ms")

    def stop(self) -> None:
        # First the primary: without a standby it could not end what waits for one.
        self._primary.stop()
        self._standby.stop()

    def _tell(self, server: Cluster, name: LiteralString, value: str) -> None:
        with psycopg.connect(server.url(SUPERUSER, "postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL("alter system set {} = {}").format(sql.Identifier(name), value))
            connection.execute("select pg_reload_conf()")

    def _query_value(self, question: LiteralString) -> object:
        with psycopg.connect(self.url("postgres")) as connection:
            row = connection.execute(question).fetchone()
            return row and row[0]


@contextlib.contextmanager
def servers() -> Generator[Servers]:
    made = Servers(bundled.scratch_directory())
    try:
        yield made
    finally:
        made.stop()
