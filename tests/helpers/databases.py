"""Databases of tests' own: clones of a migrated template, which are used again after tests that left only rows."""

import contextlib
import functools
import itertools
import os
from collections import defaultdict
from collections.abc import Generator, Iterable
from typing import Any, LiteralString, NamedTuple

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.json import Jsonb

from holdfast.kit.process.service_process import ServiceProcess
from tests.helpers import connections

CLONE: LiteralString = "template {source} strategy file_copy"
"""What a scratch database is made from. So small a database is copied in half the time as files."""

USES = 50
"""How often a database is used before it is dropped: the rows of earlier tests leave dead space."""

AS_REPLICA = "-c session_replication_role=replica"
"""Deletes rows as a replica does: without triggers, so that nothing is said, sent or refused.

To set it in a transaction would forget the plans of the session: most of what it costs to make a database as new.
"""

_numbers = itertools.count(1)
_ended: list[str] = []
"""Databases that are to be dropped."""

_returned: dict[str, list[tuple[str, int]]] = defaultdict(list)
"""Databases that may be used again, with how often they were used, by the template that they are clones of."""

_states: dict[str, "State"] = {}
"""What each template was like."""

_renewing: dict[str, psycopg.Connection[Any]] = {}
"""A connection to each database that may be used again, which may do everything."""


@contextlib.contextmanager
def template_database(server_url: str, purpose: str, product: ServiceProcess[Any, Any]) -> Generator[str]:
    """A migrated database of a service, on the server of another one, for as long as the block lasts."""
    with scratch_database(server_url, purpose, "template template1") as url:
        with alone_on_server(server_url):
            product.migrate(url)
        # The first connection after a change of the schema writes what all others then read, those to clones too.
        with as_superuser(url) as connection:
            if connection is not None:
                _states[url] = _state(connection)
        yield url
        for returned, _ in _returned.pop(url, ()):
            _end(returned)


@contextlib.contextmanager
def alone_on_server(server_url: str) -> Generator[None]:
    """While the block lasts, no other worker is in one on this server: roles belong to all databases together."""
    with psycopg.connect(make_conninfo(server_url, dbname="postgres"), autocommit=True) as connection:
        connection.execute("select pg_advisory_lock(hashtextextended('holdfast tests', 0))")
        yield


@contextlib.contextmanager
def scratch_database(url: str, purpose: str, options: LiteralString = CLONE) -> Generator[str]:
    """A database for as long as the block lasts: a clone of the one at `url`, or of a special kind."""
    url = _create_database(url, purpose, options)
    yield url
    _end(url)


def _create_database(url: str, purpose: str, options: LiteralString) -> str:
    name = f"{purpose}_{os.getpid()}_{next(_numbers)}"
    names = {"name": sql.Identifier(name), "source": sql.Identifier(_name(url))}
    with psycopg.connect(make_conninfo(url, dbname="postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("create database {name} " + options).format(**names))
        # Only now: the server waits 100 ms for connections that are still closing, and by now they have closed.
        drop_ended(connection)
    return make_conninfo(url, dbname=name)


def _end(url: str) -> None:
    """Let a database be dropped."""
    connections.end(url)
    if renewing := _renewing.pop(url, None):
        renewing.close()
    _ended.append(_name(url))


@contextlib.contextmanager
def clone(template_url: str) -> Generator[str]:
    """A clone of a template: a new one, or one that an earlier test has used and that is as new again."""
    url, uses = _renewed_clone(template_url)
    if url is None:
        url = _create_database(template_url, "test", CLONE)
    yield url
    if uses + 1 < USES and template_url in _states:
        _returned[template_url].append((url, uses + 1))
    else:
        _end(url)


def can_empty(template_url: str) -> bool:
    """Whether the user of the tests may delete all rows of a clone of this template."""
    return template_url in _states


def shared_or_own(
    request: pytest.FixtureRequest, template_url: str, *own_names: str, shared: str, unshared: str
) -> Any:
    """The value of a fixture that tests share; of one of the test's own if it names one of these fixtures.

    template_url    the template of the database, which must be as new for each test
    """
    is_shared = {*own_names}.isdisjoint(request.fixturenames) and can_empty(template_url)
    return request.getfixturevalue(shared if is_shared else unshared)


def empty_database(url: str, template_url: str) -> None:
    """Delete the rows of a clone of a template while a service uses it. Ids begin at 1 again."""
    restore_database(url, _states[template_url])


def state_of(url: str) -> "State":
    """What the tables of a database hold now. To restore it costs less than to make it again."""
    with _to_renew(url) as connection:
        return _state(connection)


def restore_database(url: str, state: "State") -> None:
    """Put back the rows of a state into a database, while a service uses it."""
    with _to_renew(url) as connection:
        # A transaction of the service could not end while this waits for it.
        connection.execute("set local lock_timeout = '10s'")
        assert _restore_rows(connection, state), "a test changed what cannot be restored"


def drop_ended(connection: psycopg.Connection[Any]) -> None:
    """Drop the scratch databases whose blocks have ended."""
    for name in [*_ended]:
        # The session of a superuser may still be closing. Then the database is dropped another time.
        with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
            connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))
            _ended.remove(name)


def _renewed_clone(template_url: str) -> tuple[str | None, int]:
    """A used clone that is as new again, and how often it was used; None if there is none."""
    # The one that was used last: the others are looked at when it cannot be used.
    while _returned[template_url]:
        url, uses = _returned[template_url].pop()
        with contextlib.suppress(psycopg.OperationalError), _to_renew(url) as connection:
            if _renew(connection, url, _states[template_url]):
                return url, uses
        _end(url)
    return None, 0


def _renew(connection: psycopg.Connection[Any], url: str, state: "State") -> bool:
    """Make a database as its template was. Returns whether that could be done."""
    # Sessions of the last test may still be closing. One that it forgot would go on in the next.
    connection.execute(END_OTHERS, [connections.session_pids(url)])
    if _one(connection, SCHEMA) != state.schema:
        _mend_schema(connection, state)
        if _one(connection, SCHEMA) != state.schema:
            return False
    return _restore_rows(connection, state)


def _mend_schema(connection: psycopg.Connection[Any], state: "State") -> None:
    """Drop the tables that a test has made, and enable the triggers that it has disabled."""
    for (table,) in connection.execute(TABLES).fetchall():
        if table not in state.tables:
            connection.execute(sql.SQL("drop table {} cascade").format(_identifier(table)))
    for table, trigger in connection.execute(DISABLED_TRIGGERS).fetchall():
        names = {"table": _identifier(table), "trigger": sql.Identifier(trigger)}
        connection.execute(sql.SQL("alter table {table} enable trigger {trigger}").format(**names))


def _restore_rows(connection: psycopg.Connection[Any], state: "State") -> bool:
    if filled := _one(connection, state.filled):
        # Sent together: to send one statement and to wait for it costs more than most deletions.
        connection.execute(b"; ".join(map(_deletion, filled)), prepare=False)
    connection.execute(POSITION, [Jsonb(state.positions)])
    if _one(connection, state.checksums) == state.seeds:
        return True
    for table, rows in state.seeded.items():
        connection.execute(_deletion(table))
        connection.execute(_insertion(table, state.columns[table]), [rows])
    return _one(connection, state.checksums) == state.seeds


def _state(connection: psycopg.Connection[Any]) -> "State":
    tables = [table for (table,) in connection.execute(TABLES).fetchall()]
    rows = {table: _one(connection, sql.SQL(ROWS).format(_identifier(table))) for table in tables}
    seeded = {table: rows for table, rows in rows.items() if rows}
    looks = [
        sql.SQL("case when exists (select from {}) then {} end").format(_identifier(table), table)
        for table in tables
        if table not in seeded
    ]
    sums = _array(sql.SQL(CHECKSUM).format(_identifier(table)) for table in seeded)
    checksums = sql.SQL("select {}").format(sums).as_bytes()
    return State(
        schema=_one(connection, SCHEMA),
        tables={*tables},
        filled=sql.SQL("select array_remove({}::text[], null)").format(_array(looks)).as_bytes(),
        seeded=seeded,
        columns={table: columns for table, columns in connection.execute(COLUMNS).fetchall() if table in seeded},
        checksums=checksums,
        seeds=_one(connection, checksums),
        positions=_one(connection, POSITIONS),
    )


class State(NamedTuple):
    """What a template holds, or another database.

    seeded     the rows of the tables that have some, as JSON
    columns    the columns of these tables that can be written
    checksums  computes the checksums of these tables
    seeds      their checksums
    filled     tells which of the others have rows
    positions  those of its sequences
    """

    schema: Any
    tables: set[str]
    filled: bytes
    seeded: dict[str, str]
    columns: dict[str, list[str]]
    checksums: bytes
    seeds: list[Any]
    positions: Any


@functools.cache
def _deletion(table: str) -> bytes:
    """Deletes all rows. To compose a statement takes as long as to run it."""
    return sql.SQL("delete from {}").format(_identifier(table)).as_bytes()


def _insertion(table: str, columns: list[str]) -> sql.Composed:
    """Inserts rows that are given as JSON."""
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    return sql.SQL(INSERTION).format(table=_identifier(table), columns=names)


def _array(items: Iterable[sql.Composed]) -> sql.Composed:
    return sql.SQL("array[{}]").format(sql.SQL(", ").join(items))


def _identifier(table: str) -> sql.Identifier:
    return sql.Identifier(*table.split("."))


def _one(connection: psycopg.Connection[Any], statement: Any, *values: Any) -> Any:
    row = connection.execute(statement, values or None).fetchone()
    assert row
    return row[0]


@contextlib.contextmanager
def _to_renew(url: str) -> Generator[psycopg.Connection[Any]]:
    """A transaction of a superuser in a database that is used time and again."""
    if url not in _renewing:
        _renewing[url] = psycopg.connect(_superuser(url), autocommit=True, prepare_threshold=0, options=AS_REPLICA)
    with _renewing[url].transaction():
        yield _renewing[url]


@contextlib.contextmanager
def as_superuser(url: str) -> Generator[psycopg.Connection[Any] | None]:
    """A connection that may do everything; None if the server gives none."""
    with psycopg.connect(_superuser(url)) as connection:
        yield connection if _one(connection, "select rolsuper from pg_roles where rolname = current_user") else None


def _superuser(url: str) -> str:
    return url if "HOLDFAST_TEST_DATABASE_URL" in os.environ else make_conninfo(url, user="postgres")


def _name(url: str) -> str:
    return str(conninfo_to_dict(url).get("dbname"))


END_OTHERS = """
    select pg_terminate_backend(pid, 10000) from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and pid <> all(%s)
"""

TABLES = """
    select nspname || '.' || relname from pg_class join pg_namespace on pg_namespace.oid = relnamespace
     where relkind = 'r' and nspname not in ('pg_catalog', 'information_schema')
     order by 1
"""

DISABLED_TRIGGERS = """
    select nspname || '.' || relname, tgname
      from pg_trigger join pg_class on pg_class.oid = tgrelid join pg_namespace on pg_namespace.oid = relnamespace
     where tgenabled = 'D'
"""

COLUMNS = """
    select nspname || '.' || relname, array_agg(attname::text)
      from pg_attribute join pg_class on pg_class.oid = attrelid join pg_namespace on pg_namespace.oid = relnamespace
     where relkind = 'r' and attnum > 0 and not attisdropped and attgenerated = ''
     group by 1
"""

ROWS: LiteralString = "select json_agg(t)::text from {} t"
INSERTION: LiteralString = """
    insert into {table} ({columns}) overriding system value
    select {columns} from json_populate_recordset(null::{table}, %s)
"""
CHECKSUM: LiteralString = "(select coalesce(sum(hash_record_extended(t, 0)), 0) from {} t)"

# Each change of a catalog makes a new version of a row, by a transaction with another number. A trigger that was
# disabled and is enabled again has only another version.
SCHEMA = """
    select sum(hashtextextended(part, 0)) from (
        select 'class ' || oid || xmin from pg_class union all
        select 'column ' || attrelid || ' ' || attnum || ' ' || xmin from pg_attribute where attrelid >= 16384 union all
        select 'default ' || oid || ' ' || xmin from pg_attrdef union all
        select 'constraint ' || oid || ' ' || xmin from pg_constraint union all
        select 'trigger ' || hash_record_extended(pg_trigger, 0) from pg_trigger union all
        select 'function ' || oid || ' ' || xmin from pg_proc where oid >= 16384 union all
        select 'policy ' || oid || ' ' || xmin from pg_policy union all
        select 'enum ' || oid || ' ' || xmin from pg_enum union all
        select 'setting ' || setrole || ' ' || xmin from pg_db_role_setting
         where setdatabase = (select oid from pg_database where datname = current_database())
    ) as parts (part)
"""

POSITIONS = """
    select coalesce(json_object_agg(seqrelid::int8, json_build_array(coalesce(last, seqstart), last is not null)), '{}')
      from pg_sequence cross join lateral pg_sequence_last_value(seqrelid) as last
"""

POSITION = """
    select setval(key::bigint::oid::regclass, (value -> 0)::bigint, (value -> 1)::boolean) from jsonb_each(%s::jsonb)
"""
