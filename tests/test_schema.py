"""The schema of each service: `schema.sql` shows it, and a file of triggers shows what a change of its table causes."""

import os
import re
from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import holdfast
from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.postgres.schema.lineage import BASELINE
from holdfast.kit.process.service_process import KIT_SCHEMA_FOLDERS
from tests.helpers.databases import scratch_database
from tests.programs.releases import migrations_of, releases, schema_of_release
from tests.programs.schema import MAIL_KIND_FILE, SERVICES, mail_kind_function, schema_file, schema_of

CHECKOUT = Path(__file__).parents[1]

FOLDERS = sorted({*KIT_SCHEMA_FOLDERS, *(folder for service in SERVICES.values() for folder in service.schema_folders)})

FUNCTION_FILES = [path for folder in FOLDERS for path in sorted(folder.glob("functions/*.sql"))]
TRIGGER_FILES = [path for folder in FOLDERS for path in sorted(folder.glob("triggers/*.sql"))]
FILES = [*FUNCTION_FILES, *TRIGGER_FILES]

FUNCTION = re.compile(r"^create or replace function (\w+)", re.MULTILINE)
TRIGGER = re.compile(
    r"^create or replace trigger (?P<name>\w+)\s+(?P<changes>[^;]*?)\son (?P<table>\w+)"
    r"[^;]*?\sexecute function (?P<function>\w+)\([^()]*\);",
    re.MULTILINE,
)
CALLED_FUNCTION = re.compile(r"^CREATE FUNCTION (\w+\(.*\)) RETURNS (?!trigger$)", re.MULTILINE)
"""A function of `schema.sql` that statements call, with its parameters."""

CHANGE = r"\b(?:insert|update|delete|truncate)\b"


def file_id(path: Path) -> str:
    """The owner of a file and its name, such as `events-registrations`."""
    return f"{path.parents[2].name}-{path.stem}"


def triggers_in(folder: Path) -> list[re.Match[str]]:
    """All triggers of a folder with a part of the schema."""
    texts = [path.read_text(encoding="utf-8") for path in FILES if path.parents[1] == folder]
    return [trigger for text in texts for trigger in TRIGGER.finditer(text)]


@pytest.fixture
def url(service: str, template_url: str, inventory_template: str) -> str:
    return {"events": template_url, "inventory": inventory_template}[service]


@pytest.mark.skipif(
    "HOLDFAST_TEST_DATABASE_URL" in os.environ, reason="another PostgreSQL may write its schema in other words"
)
@pytest.mark.parametrize("service", SERVICES)
def test_schema_sql_is_what_the_migrations_make(service: str, url: str) -> None:
    assert schema_file(service).read_text(encoding="utf-8") == schema_of(service, url), (
        "run python -m tests.programs.schema"
    )


def test_the_function_of_kinds_of_mails_is_what_their_table_says() -> None:
    assert MAIL_KIND_FILE.read_text(encoding="utf-8") == mail_kind_function(), "run python -m tests.programs.schema"


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
def test_a_database_older_than_the_first_release_is_refused_with_that_reason(service: str, url: str) -> None:
    product = SERVICES[service]
    for last in replaced_by_baselines(service):
        before = [name for name in replaced_by_baselines(service) if name != last]
        with without_a_baseline(url, service, [*before, "0001_first.sql"]) as older:
            for attempt in (product.pending, product.migrate):
                with pytest.raises(CannotStart) as refusal:
                    attempt(older)
                assert re.search(
                    r"^The database before_\w+ at \S+ has migrations that this version does not know "
                    r"\(.*0001_first\.sql\), and lacks \w+_baseline\.sql\. .* from before release 0\.1\.0, .* "
                    r"Nothing was changed\.",
                    str(refusal.value),
                )


def test_every_sql_file_of_the_package_is_read_by_the_schema() -> None:
    migrations = [path for folder in FOLDERS for path in folder.glob("migrations/*.sql")]
    read = {*FILES, *migrations, *(schema_file(service) for service in SERVICES)}
    assert {*Path(holdfast.__file__).parent.rglob("*.sql")} - read == set()


@pytest.mark.parametrize("path", FUNCTION_FILES, ids=file_id)
def test_a_file_of_functions_has_one_function_and_no_trigger(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert FUNCTION.findall(text) == [path.stem]
    assert TRIGGER.search(text) is None


@pytest.mark.parametrize("path", TRIGGER_FILES, ids=file_id)
def test_a_file_of_triggers_has_those_of_one_table_after_a_list_of_what_a_change_causes(
    path: Path,
) -> None:
    text = path.read_text(encoding="utf-8")
    triggers = list(TRIGGER.finditer(text))
    head = re.match(r"-- What a change of a row causes:\n--\n((?:-- (?:\* |  )\S.*\n)+)\n", text)
    assert head, "its first line is “-- What a change of a row causes:”, and a list follows"
    listed: dict[str, set[str]] = defaultdict(set)
    for causes in re.split(r"^-- \* ", head[1], flags=re.MULTILINE)[1:]:
        changes = re.match(rf"{CHANGE}(?:(?:, | or ){CHANGE})*", causes)
        assert changes, f"{causes!r} does not begin with insert, update, delete or truncate"
        for change in re.findall(CHANGE, changes[0]):
            listed[change] |= {*re.findall(r"\((\w+)\)", causes)}

    called: dict[str, set[str]] = defaultdict(set)
    for trigger in triggers:
        for change in re.findall(CHANGE, trigger["changes"]):
            called[change].add(trigger["function"])
    assert {trigger["table"] for trigger in triggers} == {path.stem}
    assert listed == called
    users: dict[str, set[str]] = defaultdict(set)
    for trigger in triggers_in(path.parents[1]):
        users[trigger["function"]].add(trigger["table"])
    assert {*FUNCTION.findall(text)} == {function for function, tables in users.items() if tables == {path.stem}}


@pytest.mark.parametrize("path", TRIGGER_FILES, ids=file_id)
def test_a_file_of_triggers_is_in_the_order_refuse_change_log_mail_tell(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    groups = re.findall(r"^-- (\w+) -{50,}$", text, re.MULTILINE)
    assert groups == [group for group in ("refuse", "change", "log", "mail", "tell") if group in groups]
    assert text.index(f"-- {groups[0]} ---") < text.index("create or replace")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_a_function_or_trigger_is_defined_in_one_file_only(folder: Path) -> None:
    texts = [path.read_text(encoding="utf-8") for path in FILES if path.parents[1] == folder]
    names = [" ".join((match["name"], match["table"])) for text in texts for match in TRIGGER.finditer(text)]
    names += [name for text in texts for name in FUNCTION.findall(text)]
    assert sorted({*names}) == sorted(names)


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
def test_a_database_of_the_other_service_is_refused_with_its_name(
    service: str, other: str, template_url: str, inventory_template: str
) -> None:
    product = SERVICES[service]
    for attempt in (product.pending, product.try_migrations, product.migrate):
        with pytest.raises(CannotStart, match=f"is one of {other}. Nothing was changed"):
            attempt({"events": inventory_template, "inventory": template_url}[service])


@pytest.mark.parametrize("service", SERVICES)
def test_functions_of_the_last_release_are_still_there(service: str) -> None:
    """While an upgrade lasts, its processes call them. What has no file any more is dropped when the new one migrates.

    Triggers call the others; a trigger that is dropped takes its function along.
    """
    released = set(CALLED_FUNCTION.findall(schema_of_release(releases()[-1], service)))

    assert len(released) > 5
    assert released - set(CALLED_FUNCTION.findall(schema_file(service).read_text(encoding="utf-8"))) == set()


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
