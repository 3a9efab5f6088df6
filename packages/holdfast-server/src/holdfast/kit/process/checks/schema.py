"""Checks of the schema: its migrations, and what `schema.sql` says beside what the database has."""

import asyncio
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from holdfast.kit.contract.problems import CannotStart
from holdfast.kit.postgres.connection_pool import KEEPALIVE
from holdfast.kit.postgres.database import Reader
from holdfast.kit.postgres.schema.lineage import Migration
from holdfast.kit.process.checks.inspection import Finding, Findings, Inspection, ok, skipped, warning, wrong
from holdfast_verify.terminal import names_text

PENDING_TIMEOUT_SECONDS = 8
"""Seconds in which the applied migrations must be read."""


class SchemaObject(NamedTuple):
    """Something that the schema has.

    kind    such as `index`; the columns of a table and its row security are objects too
    name    its name, with its table where that is a part of it
    sql     the statement that makes it; empty if none alone does
    """

    kind: str
    name: str
    sql: str


STATEMENTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("index", re.compile(r"^CREATE (?:UNIQUE )?INDEX (?P<name>\w+) ON .*;$", re.MULTILINE)),
    ("trigger", re.compile(r"^CREATE TRIGGER (?P<name>\w+) .*? ON (?P<table>\w+) .*;$", re.MULTILINE)),
    ("policy", re.compile(r"^CREATE POLICY (?P<name>\w+) ON (?P<table>\w+) .*;$", re.MULTILINE)),
    ("row security", re.compile(r"^ALTER TABLE (?P<table>\w+) ENABLE ROW LEVEL SECURITY;$", re.MULTILINE)),
    (
        "constraint",
        re.compile(
            r"^ALTER TABLE ONLY (?P<table>\w+)\n    ADD CONSTRAINT (?P<name>\w+) (?!NOT NULL).*;$",
            re.MULTILINE,
        ),
    ),
    ("function", re.compile(r"^CREATE FUNCTION (?P<name>\w+)\(", re.MULTILINE)),
    ("type", re.compile(r"^CREATE TYPE (?P<name>\w+) AS ENUM", re.MULTILINE)),
    ("view", re.compile(r"^CREATE VIEW (?P<name>\w+) ", re.MULTILINE)),
    ("sequence", re.compile(r"^CREATE SEQUENCE (?P<name>\w+)$", re.MULTILINE)),
)
GRANT = re.compile(r"^GRANT (?P<rights>[A-Z,]+) ON TABLE (?P<table>\w+) TO holdfast_shop;$", re.MULTILINE)
"""The rights of the role by which row-level security keeps shops apart."""

WITHOUT_STATEMENT = {"function", "type", "view", "sequence", "table", "column"}
"""Kinds whose statement has several lines."""

TABLE = re.compile(r"^CREATE TABLE (?P<name>\w+) \(\n(?P<body>.*?)^\)", re.MULTILINE | re.DOTALL)
QUOTE = '"'
CONSTRAINT = re.compile(r"CONSTRAINT (?P<name>\w+) (?P<check>CHECK .*)", re.DOTALL)

OBJECTS: LiteralString = """
    select 'table' as kind, relname::text as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
    union all
    select case relkind when 'v' then 'view' else 'sequence' end, relname::text from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('v', 'S')
    union all
    select 'column', relname || '.' || attname from pg_attribute join pg_class on pg_class.oid = attrelid
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and attnum > 0 and not attisdropped
    union all
    select 'index', relname::text from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('i', 'I')
    union all
    select 'constraint', conname || ' of ' || relname from pg_constraint join pg_class on pg_class.oid = conrelid
     where connamespace = 'public'::regnamespace and contype in ('c', 'f', 'p', 'u', 'x')
    union all
    select 'trigger', tgname || ' of ' || relname from pg_trigger join pg_class on pg_class.oid = tgrelid
     where relnamespace = 'public'::regnamespace and not tgisinternal
    union all
    select 'policy', polname || ' of ' || relname from pg_policy join pg_class on pg_class.oid = polrelid
     where relnamespace = 'public'::regnamespace
    union all
    select 'row security', relname::text from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and relrowsecurity
    union all
    select 'right', lower(privilege_type) || ' on ' || relname from pg_class
     cross join lateral aclexplode(relacl) as granted join pg_roles on pg_roles.oid = grantee
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v') and rolname = 'holdfast_shop'
    union all
    select 'function', proname::text from pg_proc where pronamespace = 'public'::regnamespace
    union all
    select 'type', typname::text from pg_type where typnamespace = 'public'::regnamespace and typtype = 'e'
"""
"""All objects of the database that a schema can name. A name without its table is unique in the schema."""

BROKEN: LiteralString = """
    select 'index', relname::text, '' from pg_index join pg_class on pg_class.oid = indexrelid
     where relnamespace = 'public'::regnamespace and not (indisvalid and indisready)
    union all
    select 'trigger', tgname::text, tgrelid::regclass::text from pg_trigger join pg_class on pg_class.oid = tgrelid
     where relnamespace = 'public'::regnamespace and tgenabled in ('D', 'R')
    union all
    select 'constraint', conname::text, conrelid::regclass::text from pg_constraint
     where connamespace = 'public'::regnamespace and not convalidated
     order by 1, 2
"""
"""Indexes that are not valid, triggers that are disabled, constraints that hold only for new rows."""


def schema_file(product: Any) -> Path:
    """The file that shows the schema of a service."""
    return product.schema_folders[-1] / "schema.sql"


@cache
def read_objects(file: Path) -> tuple[SchemaObject, ...]:
    """What a `schema.sql` names."""
    text = file.read_text(encoding="utf-8")
    objects = [*_of_statements(text), *_of_tables(text)]
    return tuple({(schema_object.kind, schema_object.name): schema_object for schema_object in objects}.values())


def _of_statements(text: str) -> Iterator[SchemaObject]:
    for kind, pattern in STATEMENTS:
        for match in pattern.finditer(text):
            groups = match.groupdict()
            name, table = groups.get("name"), groups.get("table")
            statement = "" if kind in WITHOUT_STATEMENT else " ".join(match[0].split())
            yield SchemaObject(kind, f"{name} of {table}" if name and table else str(name or table), statement)
    for grant in GRANT.finditer(text):
        for right in grant["rights"].lower().split(","):
            yield SchemaObject("right", f"{right} on {grant['table']}", grant[0])


def _of_tables(text: str) -> Iterator[SchemaObject]:
    for table in TABLE.finditer(text):
        name = table["name"]
        yield SchemaObject("table", name, "")
        for part in _parts(table["body"]):
            if constraint := CONSTRAINT.match(part):
                statement = f"ALTER TABLE {name} ADD {part};"
                yield SchemaObject("constraint", f"{constraint['name']} of {name}", statement)
            else:
                yield SchemaObject("column", f"{name}.{part.partition(' ')[0].strip(QUOTE)}", "")


def _parts(body: str) -> Iterator[str]:
    """The columns and the constraints of a table: each ends where no parenthesis is open."""
    part = ""
    for line in body.splitlines():
        part = f"{part} {line.strip()}".strip()
        if part.count("(") == part.count(")"):
            yield part.removesuffix(",")
            part = ""


async def check_migrations(inspection: Inspection[Any], reader: Reader[None]) -> Findings:
    """Whether all migrations are applied, none was edited, and none is newer than this version."""
    if not await reader.value("select to_regclass('migrations') is not null"):
        return [wrong("The database has no tables.", f"Run: holdfast {inspection.name} migrate")]
    applied: dict[str, str] = dict(await reader.tuples("select name, checksum from migrations order by applied_at"))
    migrations = inspection.product.schema()
    edited = [migration.name for migration in migrations if _is_edited(migration, applied)]
    if edited:
        return [
            wrong(
                f"{names_text(edited)}: the file differs from the one that was applied under this name.",
                "Install the released version again (pip install --force-reinstall), which has the original file.",
            )
        ]
    findings = list[Finding]()
    try:
        pending = await _pending(inspection)
    except CannotStart as error:
        # A database that this version cannot upgrade. The message says first why, and then what to do.
        reason, _, remedy = str(error).partition(" Nothing was changed. ")
        return [wrong(reason, remedy)]
    if pending:
        findings.append(wrong(f"The database lacks {names_text(pending)}.", f"Run: holdfast {inspection.name} migrate"))
    if newer := _newer(list(applied), migrations):
        findings.append(
            warning(
                f"The database has {names_text(newer)}, which this version does not know.",
                "Install the version that migrated the database on this machine too: holdfast --version",
            )
        )
    return findings or [ok(f"All {len(migrations)} migrations are applied.")]


async def _pending(inspection: Inspection[Any]) -> list[str]:
    # This reads in a thread, which nobody can cancel: so PostgreSQL ends what takes long.
    options = f"{conninfo_to_dict(inspection.url).get('options', '')} -c statement_timeout={PENDING_TIMEOUT_SECONDS}s"
    url = make_conninfo(inspection.url, **{**KEEPALIVE, "options": options.strip()})
    return await asyncio.to_thread(inspection.product.pending, url)


def _is_edited(migration: Migration, applied: dict[str, str]) -> bool:
    return applied.get(migration.name, migration.checksum) != migration.checksum


def _newer(applied: list[str], migrations: list[Migration]) -> list[str]:
    """The applied migrations that this version does not know, and that came after all that it knows.

    Those before were replaced by a baseline. Sets of functions are not counted: each version has one of its own.
    """
    known = {migration.name for migration in migrations}
    names = [name for name in applied if not name.startswith("functions ")]
    last = max((place for place, name in enumerate(names) if name in known), default=len(names))
    return [name for name in names[last + 1 :] if name not in known]


async def check_schema(inspection: Inspection[Any], reader: Reader[None]) -> Findings:
    """Whether the database has everything that the migrations make."""
    try:
        pending = await _pending(inspection)
    except CannotStart:
        return [skipped("the migrations are not those of this version")]
    if pending:
        return [skipped("migrations are missing")]
    file = schema_file(inspection.product)
    objects = read_objects(file)
    present = {(kind, name) for kind, name in await reader.tuples(OBJECTS)}
    missing = [schema_object for schema_object in objects if (schema_object.kind, schema_object.name) not in present]
    lost_tables = {schema_object.name for schema_object in missing if schema_object.kind == "table"}
    findings = [
        wrong(_missing_message(schema_object), _remedy(schema_object, file))
        for schema_object in missing
        if schema_object.kind != "column" or schema_object.name.partition(".")[0] not in lost_tables
    ]
    findings += [_broken_finding(*row) for row in await reader.tuples(BROKEN)]
    return findings or [ok(f"The database has all {len(objects)} tables, columns, indexes and other objects.")]


def _missing_message(schema_object: SchemaObject) -> str:
    if schema_object.kind == "row security":
        return f"Row-level security of the table {schema_object.name} is off."
    if schema_object.kind == "right":
        return f"The role holdfast_shop lacks the right {schema_object.name}."
    return f"The {schema_object.kind} {schema_object.name} is missing."


def _remedy(schema_object: SchemaObject, file: Path) -> str:
    if schema_object.kind == "index":
        return f"Run in the database: {schema_object.sql.replace(' INDEX ', ' INDEX CONCURRENTLY ', 1)}"
    if schema_object.sql:
        return f"Run in the database: {schema_object.sql}"
    if schema_object.kind in {"table", "column"}:
        return "Restore the database from a backup: docs/backup.md"
    beginning = f"CREATE {schema_object.kind.upper()} {schema_object.name}"
    return f"Run in the database the statement that begins with {beginning} in {file}"


def _broken_finding(kind: str, name: str, table: str) -> Finding:
    match kind:
        case "index":
            return wrong(
                f"The index {name} is not valid, so it is not used.",
                f"Run in the database: reindex index concurrently {name};",
            )
        case "trigger":
            return wrong(
                f"The trigger {name} of {table} is disabled.",
                f"Run in the database: alter table {table} enable trigger {name};",
            )
        case _:
            return wrong(
                f"The constraint {name} of {table} was not checked for the rows that are there.",
                f"Run in the database: alter table {table} validate constraint {name};",
            )
