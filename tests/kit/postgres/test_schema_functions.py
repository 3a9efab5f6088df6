"""Functions and triggers of files are applied again when their text changes, and only then."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from holdfast.kit.postgres.schema.functions import read_functions
from holdfast.kit.postgres.schema.lineage import FailedMigration, Migration, MigrationError
from holdfast.kit.postgres.schema.migrations import migrate, pending_migrations
from tests.helpers.data_directories import query_rows, wait_until

SHELF = Migration("0001_shelf.sql", "create table shelf (book text, note text)")

NOTE = """-- What is noted about a book.
create or replace function note() returns trigger language plpgsql as $$
begin
    new.note = shout('new');
    return new;
end $$;

create or replace trigger note_added before insert on shelf
    for each row execute function note();
create or replace trigger note_renamed before update of book on shelf
    for each row execute function note();
"""

SHOUT = """create or replace function shout(word text) returns text language sql as $$ select upper(word) $$;
comment on function shout is 'In capitals.';
"""

TRIGGERS = "select tgname from pg_trigger where not tgisinternal order by 1"


def program(directory: Path, version: str = "1.0.0", **files: str) -> list[Migration]:
    """The migrations of a version of a program whose functions are in these files."""
    directory.mkdir()
    for name, text in files.items():
        (directory / f"{name}.sql").write_text(text, encoding="utf-8")
    return [SHELF, read_functions([directory], version)]


def note_of_a_new_book(url: str) -> str:
    with psycopg.connect(url) as connection:
        [note] = connection.execute("insert into shelf values ('Emma') returning note").fetchone() or [""]
        return note


def test_functions_are_applied_after_the_migrations_whichever_calls_which(empty_url: str, tmp_path: Path) -> None:
    migrations = program(tmp_path / "one", note=NOTE, shout=SHOUT)

    assert migrate(empty_url, migrations) == [migration.name for migration in migrations]
    assert migrate(empty_url, migrations) == []

    assert note_of_a_new_book(empty_url) == "NEW"
    assert query_rows(empty_url, TRIGGERS) == [("note_added",), ("note_renamed",)]
    assert query_rows(empty_url, "select obj_description('shout'::regproc)") == [("In capitals.",)]


def test_a_function_is_applied_again_when_its_text_has_changed(empty_url: str, tmp_path: Path) -> None:
    migrate(empty_url, program(tmp_path / "one", note=NOTE, shout=SHOUT))
    changed = program(tmp_path / "two", note=NOTE, shout=SHOUT.replace("upper(word)", "word || '!'"))

    assert pending_migrations(empty_url, changed) == [changed[-1].name]
    assert migrate(empty_url, changed) == [changed[-1].name]

    assert note_of_a_new_book(empty_url) == "new!"


def test_a_new_body_of_a_function_is_applied_without_waiting_for_writers(empty_url: str, tmp_path: Path) -> None:
    migrate(empty_url, program(tmp_path / "one", note=NOTE, shout=SHOUT))
    changed = program(tmp_path / "two", note=NOTE.replace("'new'", "'fresh'"), shout=SHOUT)

    with psycopg.connect(empty_url) as writer:
        writer.execute("insert into shelf values ('Emma')")
        assert migrate(empty_url, changed, patience=0.1) == [changed[-1].name]

    assert note_of_a_new_book(empty_url) == "FRESH"


def test_a_new_trigger_gives_way_to_writers_and_is_applied_after_them(empty_url: str, tmp_path: Path) -> None:
    migrate(empty_url, program(tmp_path / "one", note=NOTE, shout=SHOUT))
    another = NOTE.replace("before insert on", "before insert or update on")
    changed = program(tmp_path / "two", note=another, shout=SHOUT)

    with psycopg.connect(empty_url) as writer, ThreadPoolExecutor() as threads:
        writer.execute("insert into shelf values ('Emma')")
        with pytest.raises(MigrationError, match=f"^{changed[-1].name} cannot be applied"):
            migrate(empty_url, changed, patience=0.1)
        applied = threads.submit(migrate, empty_url, changed)
        with psycopg.connect(empty_url, autocommit=True) as reader:
            wait_until(lambda: reader.execute("select from pg_locks where not granted").fetchall() != [])
        writer.rollback()
        assert applied.result() == [changed[-1].name]


def test_a_function_or_trigger_without_a_file_is_dropped(empty_url: str, tmp_path: Path) -> None:
    migrate(empty_url, program(tmp_path / "one", note=NOTE, shout=SHOUT))
    without_a_trigger = NOTE[: NOTE.index("create or replace trigger note_renamed")].replace("shout('new')", "'quiet'")

    migrate(empty_url, program(tmp_path / "two", note=without_a_trigger))
    assert note_of_a_new_book(empty_url) == "quiet"
    assert query_rows(empty_url, TRIGGERS) == [("note_added",)]
    assert query_rows(empty_url, "select proname from pg_proc where pronamespace = 'public'::regnamespace") == [
        ("note",)
    ]

    migrate(empty_url, program(tmp_path / "three"))
    assert query_rows(empty_url, "select name from functions union all select tgname from pg_trigger") == []


def test_a_statement_moved_to_another_file_or_commented_is_not_applied_again(empty_url: str, tmp_path: Path) -> None:
    before = program(tmp_path / "one", "1.0.0", note=NOTE, shout=SHOUT)
    one_file = f"-- Books.\n\n{SHOUT}\n\n-- What is noted.\n-- In two lines.\n\n-- note ----\n{NOTE}\n-- The end.\n"
    migrate(empty_url, before)

    assert migrate(empty_url, program(tmp_path / "two", "1.1.0", shelf=one_file)) == []
    with_more = program(tmp_path / "three", "1.2.0", shelf=one_file + SHOUT.replace("shout", "cry"))
    versions = (
        "select xmin::text from pg_proc where proname in ('note', 'shout') union all select xmin::text from pg_trigger"
    )
    applied = query_rows(empty_url, versions)
    assert migrate(empty_url, with_more) == [with_more[-1].name]
    assert query_rows(empty_url, versions) == applied


def test_an_older_program_leaves_newer_functions(empty_url: str, tmp_path: Path) -> None:
    before = program(tmp_path / "one", "1.9.0", note=NOTE, shout=SHOUT)
    newer = program(tmp_path / "two", "1.10.0.dev0", note=NOTE.replace("shout('new')", "'newer'"))
    migrate(empty_url, before)
    migrate(empty_url, newer)

    assert pending_migrations(empty_url, before) == []
    assert migrate(empty_url, before) == []
    assert note_of_a_new_book(empty_url) == "newer"


def test_functions_changed_back_to_an_earlier_text_are_applied_again(empty_url: str, tmp_path: Path) -> None:
    another = NOTE.replace("'new'", "'another'")
    first, second, third = (
        program(tmp_path / version, version, note=note, shout=SHOUT)
        for version, note in (("1.0.0", NOTE), ("1.1.0", another), ("1.2.0", NOTE))
    )
    for migrations in (first, second):
        migrate(empty_url, migrations)

    assert pending_migrations(empty_url, third) == migrate(empty_url, third) == [third[-1].name]
    assert note_of_a_new_book(empty_url) == "NEW"
    assert pending_migrations(empty_url, third) == migrate(empty_url, third) == migrate(empty_url, second) == []


def test_development_versions_with_one_number_start_together_and_the_last_migration_wins(
    empty_url: str, tmp_path: Path
) -> None:
    one = program(tmp_path / "one", "1.1.0.dev0", note=NOTE, shout=SHOUT)
    two = program(tmp_path / "two", "1.1.0.dev0", note=NOTE.replace("'new'", "'another'"), shout=SHOUT)
    migrate(empty_url, one)
    migrate(empty_url, two)

    assert pending_migrations(empty_url, one) == []
    assert migrate(empty_url, one) == [one[-1].name]
    assert note_of_a_new_book(empty_url) == "NEW"
    # A release comes after them, and without another change it lacks nothing.
    release = program(tmp_path / "release", "1.1.0", note=NOTE, shout=SHOUT)
    assert migrate(empty_url, release) == []


def test_functions_that_cannot_be_applied_leave_all_as_it_was(empty_url: str, tmp_path: Path) -> None:
    migrate(empty_url, program(tmp_path / "one", note=NOTE, shout=SHOUT))
    no_table = NOTE.replace("on shelf", "on no_shelf")
    broken = program(tmp_path / "two", note=no_table, shout=SHOUT.replace("upper", "lower"))

    failure = r'^functions \w+ of 1\.0\.0 failed at trigger note_added on no_shelf, in .*"no_shelf" does not exist'
    with pytest.raises(FailedMigration, match=failure):
        migrate(empty_url, broken)

    assert pending_migrations(empty_url, broken) == [broken[-1].name]
    assert note_of_a_new_book(empty_url) == "NEW"


def test_triggers_from_before_there_were_files_are_replaced_or_dropped(empty_url: str, tmp_path: Path) -> None:
    made_by_migrations = [
        SHELF,
        Migration("0002_shout.sql", SHOUT),
        Migration("0003_note.sql", NOTE.replace("'new'", "'old'") + NOTE.replace("trigger note_", "trigger gone_")),
    ]
    migrate(empty_url, made_by_migrations)

    migrate(empty_url, [*made_by_migrations, *program(tmp_path / "one", note=NOTE, shout=SHOUT)[1:]])

    assert query_rows(empty_url, TRIGGERS) == [("note_added",), ("note_renamed",)]
    assert note_of_a_new_book(empty_url) == "NEW"
