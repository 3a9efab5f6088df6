"""A schema is brought up to date once, in order, or not at all."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import psycopg
import pytest

from holdfast.kit.postgres.schema.lineage import FailedMigration, Migration, MigrationError, read_migrations
from holdfast.kit.postgres.schema.migrations import LOCK, Trial, migrate, pending_migrations, try_migrations
from tests.helpers.data_directories import query_rows, wait_until

FIRST = Migration("0001_shelf.sql", "create table shelf (book text); insert into shelf values ('100% of it');")
SECOND = Migration("0002_more.sql", "alter table shelf add pages int; update shelf set pages = 7;")
BROKEN = Migration("0003_broken.sql", "create table lamp (watts int); insert into lamp values ('bright');")
BASELINE = Migration(
    "0001_baseline.sql",
    f"-- Replaces the migrations up to {SECOND.name}, the last of release 2.0.0.\n"
    "create table shelf (book text, pages int);",
)


def tables(url: str) -> list[str]:
    return [
        name for (name,) in query_rows(url, "select tablename from pg_tables where schemaname = 'public' order by 1")
    ]


def test_files_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ("0010_c.sql", "0002_b.sql", "0001_a.sql", "notes.md"):
        (tmp_path / name).write_text(f"-- {name}, größer", encoding="utf-8")

    assert [(migration.name, migration.sql) for migration in read_migrations(tmp_path)] == [
        (name, f"-- {name}, größer") for name in ("0001_a.sql", "0002_b.sql", "0010_c.sql")
    ]


def test_migrations_are_applied_in_order_and_once(empty_url: str) -> None:
    assert migrate(empty_url, [FIRST, SECOND]) == [FIRST.name, SECOND.name]
    assert migrate(empty_url, [FIRST, SECOND]) == []

    assert query_rows(empty_url, "select book, pages from shelf") == [("100% of it", 7)]
    assert query_rows(empty_url, "select name, checksum from migrations order by name") == [
        (FIRST.name, FIRST.checksum),
        (SECOND.name, SECOND.checksum),
    ]


def test_only_what_is_missing_is_applied(empty_url: str) -> None:
    migrate(empty_url, [FIRST])

    assert migrate(empty_url, [FIRST, SECOND]) == [SECOND.name]
    assert query_rows(empty_url, "select book, pages from shelf") == [("100% of it", 7)]


def test_processes_that_migrate_at_the_same_time_apply_everything_once(empty_url: str) -> None:
    together = Barrier(8)

    def start(_: int) -> list[str]:
        together.wait(timeout=10)
        return migrate(empty_url, [FIRST, SECOND])

    with ThreadPoolExecutor(8) as processes:
        applied = sorted(processes.map(start, range(8)))

    assert applied == [[]] * 7 + [[FIRST.name, SECOND.name]]
    assert query_rows(empty_url, "select book, pages from shelf") == [("100% of it", 7)]


def test_a_file_that_was_edited_after_it_was_applied_is_refused(empty_url: str) -> None:
    migrate(empty_url, [FIRST])
    edited = Migration(FIRST.name, FIRST.sql + " ")

    with pytest.raises(MigrationError, match=r"0001_shelf\.sql was edited"):
        migrate(empty_url, [edited, SECOND])

    assert pending_migrations(empty_url, [FIRST, SECOND]) == [SECOND.name]
    assert query_rows(empty_url, "select * from shelf") == [("100% of it",)]


def test_a_file_that_fails_leaves_nothing_of_itself_behind_and_is_next_when_mended(empty_url: str) -> None:
    message = (
        r"^0003_broken\.sql failed at line 1, in the database \w+ at \S+\. "
        r'PostgreSQL says: invalid input syntax for type integer: "bright"\. '
        r"(This was a trial: nothing|Nothing of it) is stored.* "
        r"Correct in the database what PostgreSQL names, and migrate again\."
    )
    migrate(empty_url, [FIRST])
    with pytest.raises(FailedMigration, match=message):
        try_migrations(empty_url, [FIRST, SECOND, BROKEN])
    assert query_rows(empty_url, "select * from shelf") == [("100% of it",)]

    with pytest.raises(FailedMigration, match=message):
        migrate(empty_url, [FIRST, SECOND, BROKEN])

    assert tables(empty_url) == ["migrations", "shelf"]
    assert pending_migrations(empty_url, [FIRST, SECOND, BROKEN]) == [BROKEN.name]
    mended = Migration(BROKEN.name, "create table lamp (watts int)")
    assert migrate(empty_url, [FIRST, SECOND, mended]) == [BROKEN.name]


def test_the_line_of_a_statement_that_fails_is_named(empty_url: str) -> None:
    no_table = Migration("0001_shelf.sql", "create table shelf (book text);\n\nalter table no_shelf add pages int;")
    no_column = Migration("0001_shelf.sql", "create table shelf (book text);\n\nselect pages\n  from shelf;")

    with pytest.raises(FailedMigration, match=r"^0001_shelf\.sql failed, in .* relation \"no_shelf\" does not exist\."):
        migrate(empty_url, [no_table])
    with pytest.raises(
        FailedMigration, match=r"^0001_shelf\.sql failed at line 3, in .* column \"pages\" does not exist\."
    ):
        migrate(empty_url, [no_column])


def test_a_migration_without_a_right_names_the_grant_that_a_superuser_makes(empty_url: str) -> None:
    reading = Migration("0001_reading.sql", "select pg_read_file('/etc/hostname')")

    with pytest.raises(FailedMigration, match=r"PostgreSQL says: permission denied .* Let a superuser grant the user"):
        migrate(empty_url, [reading])


def test_a_trial_of_migrations_finds_violations_of_deferred_constraints(empty_url: str) -> None:
    shelf = "create table shelf (id int primary key, beside int references shelf deferrable initially deferred);"
    alone = Migration("0002_alone.sql", "insert into shelf values (1, 2)")
    migrate(empty_url, [Migration("0001_shelf.sql", shelf)])

    for attempt in (try_migrations, migrate):
        with pytest.raises(FailedMigration, match=r"^0002_alone\.sql failed, .* violates foreign key constraint"):
            attempt(empty_url, [Migration("0001_shelf.sql", shelf), alone])


def test_a_trial_says_what_would_be_applied_and_stores_nothing(empty_url: str) -> None:
    assert try_migrations(empty_url, [FIRST, SECOND]) == Trial([FIRST.name, SECOND.name])
    assert tables(empty_url) == []


def test_a_trial_says_what_it_could_not_try(empty_url: str) -> None:
    colours = Migration("0001_colours.sql", "create type colour as enum ('red')")
    blue = Migration("0002_blue.sql", "alter type colour add value 'blue'")
    lamp = Migration("0003_lamp.sql", "create table lamp (colour colour default 'blue')")
    slow = Migration("0002_slow.sql", "select pg_sleep(60); select pg_sleep(60)")
    migrate(empty_url, [colours])

    used = try_migrations(empty_url, [colours, blue, lamp])
    assert (used.succeeded, used.untried) == ([blue.name], [lamp.name])
    assert used.reason.startswith("It uses a value of a type that PostgreSQL allows only when")
    late = try_migrations(empty_url, [colours, slow, lamp], seconds=0.1)
    assert (late.succeeded, late.untried) == ([], [slow.name, lamp.name])
    assert late.reason.startswith("A trial ends after 0.1 s, so that the service does not wait for it.")


def test_a_value_added_to_an_enum_can_be_used_by_the_next_file(empty_url: str) -> None:
    colours = Migration("0001_colours.sql", "create type colour as enum ('red')")
    blue = Migration("0002_blue.sql", "alter type colour add value 'blue'")
    lamp = Migration("0003_lamp.sql", "create table lamp (colour colour default 'blue')")

    assert migrate(empty_url, [colours, blue, lamp]) == [colours.name, blue.name, lamp.name]


def test_pending_migrations_are_listed_without_changing_anything(empty_url: str) -> None:
    assert pending_migrations(empty_url, [FIRST, SECOND]) == [FIRST.name, SECOND.name]
    assert tables(empty_url) == []

    migrate(empty_url, [FIRST])
    assert pending_migrations(empty_url, [FIRST, SECOND]) == [SECOND.name]
    assert query_rows(empty_url, "select name from migrations") == [(FIRST.name,)]


def test_a_migrated_database_has_no_pending_migrations(empty_url: str) -> None:
    migrate(empty_url, [FIRST, SECOND])

    assert pending_migrations(empty_url, [FIRST, SECOND]) == []


def test_a_migration_that_waits_too_long_for_another_one_names_its_session(empty_url: str) -> None:
    with psycopg.connect(empty_url, autocommit=True) as another:
        another.execute("select pg_advisory_lock(%s)", [LOCK])
        number = another.info.backend_pid

        with pytest.raises(MigrationError, match=rf"for more than 0\.2 s \(its session .* number {number}\)\. Start"):
            migrate(empty_url, [FIRST], patience=0.2)

    assert migrate(empty_url, [FIRST]) == [FIRST.name]


def test_a_migration_gives_way_to_users_of_its_tables_and_is_applied_after_them(empty_url: str) -> None:
    wider = Migration("0002_wider.sql", "alter table shelf add column wide boolean")
    migrate(empty_url, [FIRST])
    with psycopg.connect(empty_url) as user, ThreadPoolExecutor() as threads:
        user.execute("select from shelf")
        with pytest.raises(
            MigrationError, match=r"^0002_wider\.sql cannot be applied: others have used .* more than 0\.1 s\."
        ):
            migrate(empty_url, [FIRST, wider], patience=0.1)

        applied = threads.submit(migrate, empty_url, [FIRST, wider])
        with psycopg.connect(empty_url, autocommit=True) as reader:
            wait_until(lambda: reader.execute("select from pg_locks where not granted").fetchall() != [])
            reader.execute("set lock_timeout = '5s'")
            reader.execute("select from shelf")
        user.rollback()
        assert applied.result() == [wider.name]


def test_a_process_that_is_stopped_while_it_migrates_holds_up_the_next_one_for_seconds_only(empty_url: str) -> None:
    waiting = Migration("0002_waiting.sql", "select 'a moment' from pg_sleep(1)")
    program = f"import sys; from {__name__} import *; migrate(sys.argv[1], [FIRST, Migration(*sys.argv[2:])])"
    command = [sys.executable, "-c", program, empty_url, waiting.name, waiting.sql]
    with subprocess.Popen(command, cwd=Path(__file__).parents[3]) as stopped:
        wait_until(lambda: "shelf" in tables(empty_url))
        stopped.send_signal(signal.SIGSTOP)
        try:
            assert migrate(empty_url, [FIRST, waiting], patience=30) == [waiting.name]
        finally:
            stopped.kill()


def test_a_migrated_database_lets_no_other_role_make_temporary_tables(empty_url: str) -> None:
    allowed = "select has_database_privilege('public', current_database(), 'temporary')"
    before = query_rows(empty_url, allowed)
    migrate(empty_url, [FIRST])

    assert (before, query_rows(empty_url, allowed)) == ([(True,)], [(False,)])


def test_a_baseline_makes_a_new_database(empty_url: str) -> None:
    assert pending_migrations(empty_url, [BASELINE]) == [BASELINE.name]
    assert migrate(empty_url, [BASELINE]) == [BASELINE.name]
    assert query_rows(empty_url, "select * from shelf") == []


def test_a_database_with_all_that_a_baseline_replaces_goes_on_with_what_follows(empty_url: str) -> None:
    migrate(empty_url, [FIRST, SECOND])
    lamp = Migration("0002_lamp.sql", "create table lamp (watts int)")

    assert pending_migrations(empty_url, [BASELINE, lamp]) == [lamp.name]
    assert migrate(empty_url, [BASELINE, lamp]) == [lamp.name]
    assert migrate(empty_url, [BASELINE, lamp]) == []
    assert query_rows(empty_url, "select book, pages from shelf") == [("100% of it", 7)]


def test_a_program_from_before_a_baseline_finds_its_migrations_applied_after_it(empty_url: str) -> None:
    migrate(empty_url, [FIRST, SECOND])
    migrate(empty_url, [BASELINE])

    assert pending_migrations(empty_url, [FIRST, SECOND]) == []
    assert migrate(empty_url, [FIRST, SECOND]) == []


def test_a_database_with_a_part_of_a_baseline_is_refused_with_the_version_to_start(empty_url: str) -> None:
    migrate(empty_url, [FIRST])
    sentences = (
        r"^The last migration of the database \w+ at \S+ is 0001_shelf\.sql, and this version goes on from "
        r"0002_more\.sql\. Nothing was changed\. Install release 2\.0\.0 and migrate with it, which brings the "
        r"database there\. Then migrate with this version\.$"
    )

    with pytest.raises(MigrationError, match=sentences):
        pending_migrations(empty_url, [BASELINE])
    with pytest.raises(MigrationError, match=sentences):
        migrate(empty_url, [BASELINE])

    assert query_rows(empty_url, "select name from migrations") == [(FIRST.name,)]
    assert migrate(empty_url, [FIRST, SECOND]) == [SECOND.name]
    assert migrate(empty_url, [BASELINE]) == []


def test_a_database_of_an_unknown_lineage_is_refused_and_left_alone(empty_url: str) -> None:
    renumbered = Migration("0002_renumbered.sql", "alter table shelf add pages int")
    migrate(empty_url, [FIRST, renumbered])
    sentences = (
        r"^The database \w+ at \S+ has migrations that this version does not know \(0002_renumbered\.sql\), and lacks "
        r"0002_more\.sql\. It was made by .* Nothing was changed\. .* restore a backup of a release, or use an empty"
    )

    for attempt in (pending_migrations, try_migrations, migrate):
        with pytest.raises(MigrationError, match=sentences):
            attempt(empty_url, [FIRST, SECOND])
    # A newer version has all that this one has.
    assert migrate(empty_url, [FIRST]) == []


def test_a_database_with_our_tables_but_no_record_of_migrations_is_refused(empty_url: str) -> None:
    with psycopg.connect(empty_url) as connection:
        connection.execute("create table shelf (book text)")

    with pytest.raises(MigrationError, match=r"has tables with names of ours \(shelf\), and no record .* restore all"):
        migrate(empty_url, [FIRST])
    assert tables(empty_url) == ["shelf"]


def test_the_table_migrations_of_another_program_is_not_taken_for_ours(empty_url: str) -> None:
    with psycopg.connect(empty_url) as connection:
        connection.execute("create table migrations (id int, migration text, batch int)")

    for attempt in (pending_migrations, try_migrations, migrate):
        with pytest.raises(
            MigrationError, match=r"The table migrations in the database \w+ .* is of another program\."
        ):
            attempt(empty_url, [FIRST])


def test_a_database_of_another_service_is_recognized_by_its_table(empty_url: str) -> None:
    migrate(empty_url, [FIRST])

    with pytest.raises(MigrationError, match=r"^The database \w+ at \S+ is one of Library\. .* correct the address"):
        migrate(
            empty_url, [Migration(FIRST.name, "create table lamp (watts int)")], other_services={"Library": "shelf"}
        )
