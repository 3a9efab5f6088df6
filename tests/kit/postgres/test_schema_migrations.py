"""A schema is brought up to date once, in order, or not at all."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import psycopg
import pytest

from holdfast.kit.postgres.schema_migrations import (
    LOCK,
    EditedMigration,
    Migration,
    MigrationInProgress,
    OldSchema,
    SchemaInUse,
    migrate,
    pending_migrations,
    read_migrations,
)
from tests.kit.data_directories import until
from tests.kit.postgres.schemas import rows, tables

FIRST = Migration("0001_shelf.sql", "create table shelf (book text); insert into shelf values ('100% of it');")
SECOND = Migration("0002_more.sql", "alter table shelf add pages int; update shelf set pages = 7;")
BROKEN = Migration("0003_broken.sql", "create table lamp (watts int); insert into lamp values ('bright');")
BASELINE = Migration(
    "0001_baseline.sql",
    f"-- Replaces the migrations up to {SECOND.name}, the last of the version of 2026.\n"
    "create table shelf (book text, pages int);",
)


def test_files_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ("0010_c.sql", "0002_b.sql", "0001_a.sql", "notes.md"):
        (tmp_path / name).write_text(f"-- {name}, größer", encoding="utf-8")

    assert [(migration.name, migration.sql) for migration in read_migrations(tmp_path)] == [
        (name, f"-- {name}, größer") for name in ("0001_a.sql", "0002_b.sql", "0010_c.sql")
    ]


def test_migrations_are_applied_in_order_and_once(empty_url: str) -> None:
    assert migrate(empty_url, [FIRST, SECOND]) == [FIRST.name, SECOND.name]
    assert migrate(empty_url, [FIRST, SECOND]) == []

    assert rows(empty_url, "select book, pages from shelf") == [("100% of it", 7)]
    assert rows(empty_url, "select name, checksum from migrations order by name") == [
        (FIRST.name, FIRST.checksum),
        (SECOND.name, SECOND.checksum),
    ]


def test_only_what_is_missing_is_applied(empty_url: str) -> None:
    migrate(empty_url, [FIRST])

    assert migrate(empty_url, [FIRST, SECOND]) == [SECOND.name]
    assert rows(empty_url, "select book, pages from shelf") == [("100% of it", 7)]


def test_processes_that_migrate_at_the_same_time_apply_everything_once(empty_url: str) -> None:
    together = Barrier(8)

    def start(_: int) -> list[str]:
        together.wait(timeout=10)
        return migrate(empty_url, [FIRST, SECOND])

    with ThreadPoolExecutor(8) as processes:
        applied = sorted(processes.map(start, range(8)))

    assert applied == [[]] * 7 + [[FIRST.name, SECOND.name]]
    assert rows(empty_url, "select book, pages from shelf") == [("100% of it", 7)]


def test_a_file_that_was_edited_after_it_was_applied_is_refused(empty_url: str) -> None:
    migrate(empty_url, [FIRST])
    edited = Migration(FIRST.name, FIRST.sql + " ")

    with pytest.raises(EditedMigration, match=r"0001_shelf\.sql was edited"):
        migrate(empty_url, [edited, SECOND])

    assert pending_migrations(empty_url, [FIRST, SECOND]) == [SECOND.name]
    assert rows(empty_url, "select * from shelf") == [("100% of it",)]


def test_a_file_that_fails_leaves_nothing_of_itself_behind_and_is_next_when_mended(empty_url: str) -> None:
    with pytest.raises(psycopg.Error):
        migrate(empty_url, [FIRST, SECOND, BROKEN])

    assert tables(empty_url) == ["migrations", "shelf"]
    assert pending_migrations(empty_url, [FIRST, SECOND, BROKEN]) == [BROKEN.name]
    mended = Migration(BROKEN.name, "create table lamp (watts int)")
    assert migrate(empty_url, [FIRST, SECOND, mended]) == [BROKEN.name]


def test_a_value_added_to_an_enum_can_be_used_by_the_next_file(empty_url: str) -> None:
    colours = Migration("0001_colours.sql", "create type colour as enum ('red')")
    blue = Migration("0002_blue.sql", "alter type colour add value 'blue'")
    lamp = Migration("0003_lamp.sql", "create table lamp (colour colour default 'blue')")

    assert migrate(empty_url, [colours, blue, lamp]) == [colours.name, blue.name, lamp.name]


def test_what_is_pending_is_told_without_changing_anything(empty_url: str) -> None:
    assert pending_migrations(empty_url, [FIRST, SECOND]) == [FIRST.name, SECOND.name]
    assert tables(empty_url) == []

    migrate(empty_url, [FIRST])
    assert pending_migrations(empty_url, [FIRST, SECOND]) == [SECOND.name]
    assert rows(empty_url, "select name from migrations") == [(FIRST.name,)]


def test_nothing_is_pending_in_a_migrated_database(empty_url: str) -> None:
    migrate(empty_url, [FIRST, SECOND])

    assert pending_migrations(empty_url, [FIRST, SECOND]) == []


def test_whoever_waits_too_long_for_another_migration_is_told_so(empty_url: str) -> None:
    with psycopg.connect(empty_url, autocommit=True) as another:
        another.execute("select pg_advisory_lock(%s)", [LOCK])
        number = another.info.backend_pid

        with pytest.raises(
            MigrationInProgress, match=rf"for more than 0\.2 s \(its session .* number {number}\)\. Start"
        ):
            migrate(empty_url, [FIRST], patience=0.2)

    assert migrate(empty_url, [FIRST]) == [FIRST.name]


def test_a_migration_makes_way_for_those_who_use_what_it_changes_and_is_applied_after_them(empty_url: str) -> None:
    wider = Migration("0002_wider.sql", "alter table shelf add column wide boolean")
    migrate(empty_url, [FIRST])
    with psycopg.connect(empty_url) as user, ThreadPoolExecutor() as threads:
        user.execute("select from shelf")
        with pytest.raises(
            SchemaInUse, match=r"^0002_wider\.sql cannot be applied: others have used .* more than 0\.1 s\."
        ):
            migrate(empty_url, [FIRST, wider], patience=0.1)

        applied = threads.submit(migrate, empty_url, [FIRST, wider])
        with psycopg.connect(empty_url, autocommit=True) as reader:
            until(lambda: reader.execute("select from pg_locks where not granted").fetchall() != [])
            reader.execute("set lock_timeout = '5s'")
            reader.execute("select from shelf")
        user.rollback()
        assert applied.result() == [wider.name]


def test_a_process_that_is_stopped_while_it_migrates_holds_up_the_next_one_for_seconds_only(empty_url: str) -> None:
    waiting = Migration("0002_waiting.sql", "select 'a moment' from pg_sleep(1)")
    program = f"import sys; from {__name__} import *; migrate(sys.argv[1], [FIRST, Migration(*sys.argv[2:])])"
    with subprocess.Popen([sys.executable, "-c", program, empty_url, waiting.name, waiting.sql]) as stopped:
        until(lambda: "shelf" in tables(empty_url))
        stopped.send_signal(signal.SIGSTOP)
        try:
            assert migrate(empty_url, [FIRST, waiting], patience=30) == [waiting.name]
        finally:
            stopped.kill()


def test_nobody_else_may_make_temporary_tables_in_a_database_that_was_migrated(empty_url: str) -> None:
    allowed = "select has_database_privilege('public', current_database(), 'temporary')"
    before = rows(empty_url, allowed)
    migrate(empty_url, [FIRST])

    assert (before, rows(empty_url, allowed)) == ([(True,)], [(False,)])


def test_a_baseline_makes_a_new_database(empty_url: str) -> None:
    assert pending_migrations(empty_url, [BASELINE]) == [BASELINE.name]
    assert migrate(empty_url, [BASELINE]) == [BASELINE.name]
    assert rows(empty_url, "select * from shelf") == []


def test_a_database_with_all_that_a_baseline_replaces_goes_on_with_what_follows(empty_url: str) -> None:
    migrate(empty_url, [FIRST, SECOND])
    lamp = Migration("0002_lamp.sql", "create table lamp (watts int)")

    assert pending_migrations(empty_url, [BASELINE, lamp]) == [lamp.name]
    assert migrate(empty_url, [BASELINE, lamp]) == [lamp.name]
    assert migrate(empty_url, [BASELINE, lamp]) == []
    assert rows(empty_url, "select book, pages from shelf") == [("100% of it", 7)]


def test_a_program_from_before_a_baseline_finds_its_migrations_applied_after_it(empty_url: str) -> None:
    migrate(empty_url, [FIRST, SECOND])
    migrate(empty_url, [BASELINE])

    assert pending_migrations(empty_url, [FIRST, SECOND]) == []
    assert migrate(empty_url, [FIRST, SECOND]) == []


def test_a_database_with_some_that_a_baseline_replaces_is_told_which_version_to_start(empty_url: str) -> None:
    migrate(empty_url, [FIRST])
    sentences = (
        r"^The last migration of this database is 0001_shelf\.sql, and this version goes on from 0002_more\.sql\. "
        r"Start the version of 2026 once, which brings the database there\. Then start this version\.$"
    )

    with pytest.raises(OldSchema, match=sentences):
        pending_migrations(empty_url, [BASELINE])
    with pytest.raises(OldSchema, match=sentences):
        migrate(empty_url, [BASELINE])

    assert rows(empty_url, "select name from migrations") == [(FIRST.name,)]
    assert migrate(empty_url, [FIRST, SECOND]) == [SECOND.name]
    assert migrate(empty_url, [BASELINE]) == []
