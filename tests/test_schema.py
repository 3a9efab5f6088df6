"""The schema of each service: `schema.sql` shows it, and files of functions hold each one once."""

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.postgres.schema.lineage import BASELINE
from holdfast.kit.process.service_process import KIT_SCHEMA_FOLDERS
from tests.databases import scratch_database
from tests.releases import migrations_of, releases
from tests.schema import MAIL_KIND_FILE, SERVICES, mail_kind_function, schema_file, schema_of

CHECKOUT = Path(__file__).parents[1]

FOLDERS = sorted({*KIT_SCHEMA_FOLDERS, *(folder for service in SERVICES.values() for folder in service.schema_folders)})

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


def replaced_by_baselines(service: str) -> list[str]:
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
    with without_a_baseline(url, service, ["0001_first.sql", *replaced_by_baselines(service)]) as before:
        assert product.pending(before) == [product.schema()[-1].name]
        assert product.migrate(before) == [product.schema()[-1].name]
        assert product.pending(before) == product.migrate(before) == []
        assert schema_of(service, before) == schema_of(service, url)


@pytest.mark.parametrize("service", SERVICES)
def test_an_older_database_is_told_that_it_is_older_than_the_first_release(service: str, url: str) -> None:
    product = SERVICES[service]
    for last in replaced_by_baselines(service):
        before = [name for name in replaced_by_baselines(service) if name != last]
        with without_a_baseline(url, service, [*before, "0001_first.sql"]) as older:
            for attempt in (product.pending, product.migrate):
                with pytest.raises(CannotStart) as refused:
                    attempt(older)
                assert re.search(
                    r"^The database before_\w+ at \S+ has migrations that this version does not know "
                    r"\(.*0001_first\.sql\), and lacks \w+_baseline\.sql\. .* from before release 0\.1\.0, .* "
                    r"Nothing was changed\.",
                    str(refused.value),
                )


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parents[2].name}-{path.stem}")
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


@pytest.mark.parametrize(("service", "other"), [("events", "Holdfast Inventory"), ("inventory", "Holdfast Events")])
def test_a_database_of_the_other_service_is_told_so(
    service: str, other: str, template_url: str, inventory_template: str
) -> None:
    product = SERVICES[service]
    for attempt in (product.pending, product.try_migrations, product.migrate):
        with pytest.raises(CannotStart, match=f"is one of {other}. Nothing was changed"):
            attempt({"events": inventory_template, "inventory": template_url}[service])


@pytest.mark.parametrize("release", releases())
def test_the_migrations_of_a_release_never_change(release: str) -> None:
    """Databases have recorded their names and texts. Only a baseline can replace those before it."""
    source = CHECKOUT / "packages" / "holdfast-server" / "src"
    present = {path.relative_to(source).as_posix(): path for path in source.rglob("migrations/*.sql")}
    replaced = {name for service in SERVICES for name in replaced_by_baselines(service)}
    released = migrations_of(release)

    assert len(released) >= 4
    for path, text in released.items():
        folder, _, name = path.rpartition("/")
        if path in present:
            assert present[path].read_text(encoding="utf-8") == text, f"{path} differs from that of release {release}"
        else:
            assert any(name <= last and f"{folder}/{last}" in released for last in replaced), (
                f"{path} of release {release} is not here, and no baseline replaces it"
            )
