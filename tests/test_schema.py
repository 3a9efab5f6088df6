"""The schema of each service: `schema.sql` shows it, and files of functions hold each one once."""

import os
import re
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import psycopg
import pytest

from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.postgres.schema_migrations import BASELINE
from holdfast.kit.process.service_process import KIT_FOLDERS
from tests.databases import scratch_database
from tests.schema import MAIL_KIND_FILE, SERVICES, mail_kind_function, schema_file, schema_of

CHECKOUT = Path(__file__).parents[1]

FOLDERS = sorted({*KIT_FOLDERS, *(folder for service in SERVICES.values() for folder in service.schema_folders)})

FILES = [path for folder in FOLDERS for path in sorted(folder.glob("functions/*.sql"))]


@pytest.fixture
def url(service: str, template_url: str, inventory_template: str) -> str:
    return {"events": template_url, "inventory": inventory_template}[service]


@pytest.mark.skipif(
    "HOLDFAST_TEST_DATABASE_URL" in os.environ, reason="another PostgreSQL may write its schema in other words"
)
@pytest.mark.parametrize("service", SERVICES)
def test_schema_sql_is_what_the_migrations_make(service: str, url: str) -> None:
    assert schema_file(service).read_text(encoding="utf-8") == schema_of(service, url), "run python -m tests.schema"


def test_the_function_of_kinds_of_mails_is_what_their_table_says() -> None:
    assert MAIL_KIND_FILE.read_text(encoding="utf-8") == mail_kind_function(), "run python -m tests.schema"


def replaced(service: str) -> list[str]:
    """The last of the migrations that each baseline replaces."""
    baselines = (BASELINE.match(migration.sql) for migration in SERVICES[service].schema())
    return [baseline["last"] for baseline in baselines if baseline]


@contextmanager
def without_a_baseline(template_url: str, service: str, migrations: list[str]) -> Generator[str]:
    """A database that says of itself what one of a version before the baselines says.

    It has what later migrations make, and says so.
    """
    *migrations_of_service, functions = SERVICES[service].schema()
    baselines = [migration.name for migration in migrations_of_service if BASELINE.match(migration.sql)]
    with scratch_database(template_url, "before") as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("drop table functions")
            connection.execute("delete from migrations where name = any(%s)", [[*baselines, functions.name]])
            for name in migrations:
                connection.execute("insert into migrations (name, checksum) values (%s, 'of then')", [name])
        yield url


@pytest.mark.parametrize("service", SERVICES)
def test_a_database_of_the_version_before_the_baseline_goes_on(service: str, url: str) -> None:
    product = SERVICES[service]
    with without_a_baseline(url, service, ["0001_first.sql", *replaced(service)]) as before:
        assert product.pending(before) == [product.schema()[-1].name]
        assert product.migrate(before) == [product.schema()[-1].name]
        assert product.pending(before) == product.migrate(before) == []
        assert schema_of(service, before) == schema_of(service, url)


@pytest.mark.parametrize("service", SERVICES)
def test_an_older_database_is_told_which_version_to_start_first(service: str, url: str) -> None:
    product = SERVICES[service]
    for last in replaced(service):
        before = [name for name in replaced(service) if name != last]
        with without_a_baseline(url, service, [*before, "0001_first.sql"]) as older:
            for attempt in (product.pending, product.migrate):
                with pytest.raises(CannotStart) as refused:
                    attempt(older)
                assert str(refused.value) == (
                    f"The last migration of this database is 0001_first.sql, and this version goes on from {last}. "
                    "Start the version of 2026-11-25 (70cc5f1) once, which brings the database there. "
                    "Then start this version."
                )


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parents[1].name}-{path.stem}")
def test_a_file_of_functions_has_one_function_and_the_triggers_that_call_it(path: Path) -> None:
    text = re.sub(r"^--.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    function, *triggers = re.split(r"^(?=create or replace trigger)", text, flags=re.MULTILINE)

    assert re.findall(r"^create or replace function (\w+)", text, re.MULTILINE) == [path.stem]
    assert function.startswith("create or replace function")
    for trigger in triggers:
        assert re.search(rf"execute function {path.stem}\(\);\s*$", trigger)


@pytest.mark.parametrize("service", SERVICES)
def test_the_body_of_each_function_is_valid(service: str, url: str) -> None:
    """They are applied without a check of their bodies, which may call functions that are applied after them."""
    with psycopg.connect(url) as connection:
        functions = connection.execute(
            """
            select pg_get_functiondef(oid) from pg_proc
             where pronamespace = 'public'::regnamespace and proname not like 'procrastinate%'
            """
        ).fetchall()
        for (definition,) in functions:
            connection.execute(definition)
        connection.rollback()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_functions_never_become_again_what_they_were(folder: Path) -> None:
    """A database takes a program with functions that it had before for an older one, and keeps the newer functions."""
    functions = (folder / "functions").relative_to(CHECKOUT).as_posix()

    def git(*words: str, stdin: str = "") -> list[str]:
        command = ["git", "-C", CHECKOUT, *words]
        try:
            done = subprocess.run(command, input=stdin, capture_output=True, check=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"The history of the repository is not here: {error}")
        return done.stdout.split("\n")[:-1]

    commits = git("log", "--format=%H", "--", functions)
    trees = git(
        "cat-file", "--batch-check=%(objectname)", stdin="".join(f"{commit}:{functions}\n" for commit in commits)
    )
    texts = [tree for tree, _ in groupby(trees)]
    assert len(texts) == len({*texts}), f"change a comment in {functions} too"
