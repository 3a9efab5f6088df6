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
from holdfast.kit.postgres.schema.lineage import Migration
from holdfast.kit.process.checks.check_list import CheckList
from holdfast.kit.process.checks.inspection import Inspection
from holdfast_verify.terminal import names_text

CHECKS = CheckList()

PENDING_TIMEOUT_SECONDS = 8
"""Seconds in which the applied migrations must be read."""


class SchemaObject(NamedTuple):
    """Something that the schema has.

    kind    such as `index`; the columns of a table and its row security are objects too
    name    its name, with its table where that is a part of it
    sql     the statement that makes it; empty if it has several lines, or if none alone makes it
    """

    kind: str
    name: str
    sql: str


@CHECKS.point("migrations")
async def check_migrations(inspection: Inspection[Any]) -> None:
    """Whether all migrations are applied, none was edited, and none is newer than this version."""
    migrate = f"Run: holdfast {inspection.name} migrate"
    if not await inspection.database.value("select to_regclass('migrations') is not null"):
        inspection.wrong("The database has no tables.", migrate)
        return
    applied: dict[str, str] = dict(
        await inspection.database.tuples("select name, checksum from migrations order by applied_at")
    )
    migrations = inspection.process.schema()
    edited = [
        migration.name
        for migration in migrations
        if applied.get(migration.name, migration.checksum) != migration.checksum
    ]
    if edited:
        inspection.wrong(
            f"{names_text(edited)}: the file differs from the one that was applied under this name.",
            "Install the released version again (pip install --force-reinstall), which has the original file.",
        )
        return
    try:
        pending = await _pending(inspection)
    except CannotStart as error:
        # A database that this version cannot upgrade. The message says first why, and then what to do.
        reason, _, remedy = str(error).partition(" Nothing was changed. ")
        inspection.wrong(reason, remedy)
        return
    if pending:
        inspection.wrong(f"The database lacks {names_text(pending)}.", migrate)
    if newer := _newer(list(applied), migrations):
        inspection.warning(
            f"The database has {names_text(newer)}, which this version does not know.",
            "Install the version that migrated the database on this machine too: holdfast --version",
        )
    inspection.ok(f"All {len(migrations)} migrations are applied.")


async def _pending(inspection: Inspection[Any]) -> list[str]:
    # This reads in a thread, which cannot be cancelled: so PostgreSQL ends what takes long.
    options = f"{conninfo_to_dict(inspection.url).get('options', '')} -c statement_timeout={PENDING_TIMEOUT_SECONDS}s"
    url = make_conninfo(inspection.url, **{**KEEPALIVE, "options": options.strip()})
    return await asyncio.to_thread(inspection.process.pending, url)


def _newer(applied: list[str], migrations: list[Migration]) -> list[str]:
    """The applied migrations that this version does not know, and that came after all that it knows.

    Those before were replaced by a baseline. Sets of functions are not counted: each version has one of its own.
    """
    names_of_this_version = {migration.name for migration in migrations}
    names = [name for name in applied if not name.startswith("functions ")]
    last = max((position for position, name in enumerate(names) if name in names_of_this_version), default=len(names))
    return [name for name in names[last + 1 :] if name not in names_of_this_version]


@CHECKS.point("schema")
async def check_schema(inspection: Inspection[Any]) -> None:
    """Whether the database has everything that the migrations make."""
    present = {(kind, name) for kind, name in await inspection.database.tuples(OBJECTS)}
    try:
        is_current = not await _pending(inspection)
    except CannotStart:
        is_current = False
    if not is_current:
        inspection.skipped("the migrations are not those of this version")
        return
    file = schema_file(inspection.process)
    objects = read_objects(file)
    for schema_object in objects:
        is_of_lost_table = (
            schema_object.kind == "column" and ("table", schema_object.name.partition(".")[0]) not in present
        )
        if schema_object[:2] not in present and not is_of_lost_table:
            inspection.wrong(_message(schema_object), _remedy(schema_object, file))
    for message, statement in await inspection.database.tuples(BROKEN_OBJECTS):
        inspection.wrong(message, f"Run in the database: {statement}")
    inspection.ok(f"The database has all {len(objects)} tables, columns, indexes and other objects.")


def _message(lack: SchemaObject) -> str:
    match lack.kind:
        case "row security":
            return f"Row-level security of the table {lack.name} is off."
        case "right":
            return f"The role holdfast_shop lacks the right {lack.name}."
        case kind:
            return f"The {kind} {lack.name} is missing."


def _remedy(lack: SchemaObject, file: Path) -> str:
    if lack.kind == "index":
        return f"Run in the database: {lack.sql.replace(' INDEX ', ' INDEX CONCURRENTLY ', 1)}"
    if lack.sql:
        return f"Run in the database: {lack.sql}"
    if lack.kind in {"table", "column"}:
        return "Restore the database from a backup: docs/backup.md"
    return f"Run in the database the statement that begins with CREATE {lack.kind.upper()} {lack.name} in {file}"


CREATE = re.compile(
    r"^CREATE (?:UNIQUE )?(?P<kind>INDEX|TRIGGER|POLICY|FUNCTION|TYPE|VIEW|SEQUENCE|TABLE) (?P<name>\w+)"
    r"(?:.*? ON (?P<table>\w+))?.*$",
    re.MULTILINE,
)
ROW_SECURITY = re.compile(r"^ALTER TABLE (?P<table>\w+) ENABLE ROW LEVEL SECURITY;$", re.MULTILINE)
CONSTRAINT = re.compile(
    r"^ALTER TABLE ONLY (?P<table>\w+)\n    ADD CONSTRAINT (?P<name>\w+) (?!NOT NULL).*;$", re.MULTILINE
)
GRANT = re.compile(r"^GRANT (?P<rights>[A-Z,]+) ON TABLE (?P<table>\w+) TO holdfast_shop;$", re.MULTILINE)
"""The rights of the role by which row-level security keeps shops apart."""

TABLE = re.compile(r"^CREATE TABLE (?P<name>\w+) \(\n(?P<body>.*?)^\)", re.MULTILINE | re.DOTALL)
COLUMN = re.compile(r'^    "?(?P<name>[a-z]\w*)"? ', re.MULTILINE)
CHECK = re.compile(r"^    CONSTRAINT (?P<name>\w+) CHECK .*?(?=,?\n(?:    CONSTRAINT|\Z))", re.MULTILINE | re.DOTALL)


def schema_file(process: Any) -> Path:
    """The file that shows the schema of a service."""
    return process.schema_folders[-1] / "schema.sql"


@cache
def read_objects(file: Path) -> tuple[SchemaObject, ...]:
    """What a `schema.sql` names."""
    return tuple(dict.fromkeys(_objects(file.read_text(encoding="utf-8"))))


def _objects(text: str) -> Iterator[SchemaObject]:
    for create in CREATE.finditer(text):
        kind, name = create["kind"].lower(), create["name"]
        if kind in {"trigger", "policy"}:
            name = f"{name} of {create['table']}"
        yield SchemaObject(kind, name, create[0] if create[0].endswith(";") else "")
    for security in ROW_SECURITY.finditer(text):
        yield SchemaObject("row security", security["table"], security[0])
    for constraint in CONSTRAINT.finditer(text):
        yield SchemaObject(
            "constraint", f"{constraint['name']} of {constraint['table']}", " ".join(constraint[0].split())
        )
    for grant in GRANT.finditer(text):
        for right in grant["rights"].lower().split(","):
            yield SchemaObject("right", f"{right} on {grant['table']}", grant[0])
    for table in TABLE.finditer(text):
        name, body = table.groups()
        for column in COLUMN.finditer(body):
            yield SchemaObject("column", f"{name}.{column['name']}", "")
        for check in CHECK.finditer(body):
            statement = " ".join(f"ALTER TABLE {name} ADD {check[0]};".split())
            yield SchemaObject("constraint", f"{check['name']} of {name}", statement)


OBJECTS: LiteralString = """
    with relation as (
        select *, relname::text as name, relkind in ('r', 'p') as is_table
          from pg_class where relnamespace = 'public'::regnamespace)
    select case when is_table then 'table' when relkind in ('i', 'I') then 'index' when relkind = 'v' then 'view'
                when relkind = 'S' then 'sequence' end, name
      from relation where is_table or relkind in ('i', 'I', 'v', 'S')
    union all
    select 'column', name || '.' || attname from relation join pg_attribute on attrelid = relation.oid
     where is_table and attnum > 0 and not attisdropped
    union all
    select 'row security', name from relation where is_table and relrowsecurity
    union all
    select 'constraint', conname || ' of ' || name from relation join pg_constraint on conrelid = relation.oid
     where contype in ('c', 'f', 'p', 'u', 'x')
    union all
    select 'trigger', tgname || ' of ' || name from relation join pg_trigger on tgrelid = relation.oid
     where not tgisinternal
    union all
    select 'policy', polname || ' of ' || name from relation join pg_policy on polrelid = relation.oid
    union all
    select 'right', lower(privilege_type) || ' on ' || name from relation
     cross join lateral aclexplode(relacl) as granted join pg_roles on pg_roles.oid = grantee
     where (is_table or relkind = 'v') and rolname = 'holdfast_shop'
    union all
    select 'function', proname::text from pg_proc where pronamespace = 'public'::regnamespace
    union all
    select 'type', typname::text from pg_type where typnamespace = 'public'::regnamespace and typtype = 'e'
"""
"""All objects of the database that a schema can name. A name without its table is unique in the schema."""

BROKEN_OBJECTS: LiteralString = """
    select format('The index %s is not valid, so it is not used.', relname),
           format('reindex index concurrently %s;', relname)
      from pg_index join pg_class on pg_class.oid = indexrelid
     where relnamespace = 'public'::regnamespace and not (indisvalid and indisready)
    union all
    select format('The trigger %s of %s is disabled.', tgname, relname),
           format('alter table %s enable trigger %s;', relname, tgname)
      from pg_trigger join pg_class on pg_class.oid = tgrelid
     where relnamespace = 'public'::regnamespace and tgenabled in ('D', 'R')
    union all
    select format('The constraint %s of %s was not checked for the rows that are there.', conname, conrelid::regclass),
           format('alter table %s validate constraint %s;', conrelid::regclass, conname)
      from pg_constraint where connamespace = 'public'::regnamespace and not convalidated
     order by 1
"""
"""Indexes that are not valid, triggers that are disabled, constraints that hold only for new rows."""
