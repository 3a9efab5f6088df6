"""Hundreds of thousands of rows, as copies of rows that the service itself has written."""

import contextlib
from collections.abc import Generator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.helpers.databases import as_superuser

TABLES = "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
ALONE = """
    do $$ declare name regclass; begin
        for name in select oid from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace loop
            execute format('alter table %s set (autovacuum_enabled = false)', name);
        end loop;
    end $$
"""


@contextlib.contextmanager
def filling_database(url: str) -> Generator[psycopg.Connection[Any]]:
    """Write rows without triggers and checks of other tables; nothing then updates statistics by itself."""
    with as_superuser(url) as connection:
        if connection is None:
            pytest.skip("Only a superuser can fill a database without its triggers.")
        connection.execute("set session_replication_role = replica")
        connection.execute(ALONE)
        yield connection
        _move_sequences(connection)


def small_tables(url: str, least: int) -> set[str]:
    """The tables with fewer rows than that."""
    with psycopg.connect(url) as connection:
        names = [name for (name,) in connection.execute(TABLES)]
        return {
            name
            for name in names
            for (count,) in connection.execute(
                sql.SQL("select count(*) from (select from {} limit {}) as rows").format(sql.Identifier(name), least)
            )
            if count < least
        }


def fill_accounts(connection: psycopg.Connection[Any], name: str, first: int) -> None:
    """Many people with such names, who have signed in. `first`: the number before that of the first of them."""
    connection.execute(
        sql.SQL(
            """
            insert into sign_in_links (email, return_to) select {name} || g || '@example.com', '/console'
              from generate_series(1, 20000) as g;
            insert into stopped_mails (mailbox)
            select sha256(('mailbox ' || g)::bytea) from generate_series(1, 20000) as g;
            insert into known_browsers (hash, account_id, known_at)
            select sha256(('known ' || g)::bytea), 10000 + g, now() - g * interval '1 second'
              from generate_series(1, 60000) as g;
            insert into sessions (hash, account_id, way, browser)
            select sha256(('session ' || g)::bytea), {first} + g, 'link', 'Firefox' from generate_series(1, 20000) as g
            """
        ).format(name=name, first=first)
    )


def fill_webhooks(connection: psycopg.Connection[Any]) -> None:
    """Many endpoints of webhooks of others, and many messages: half of them for the first endpoint."""
    copies(connection, "webhook_endpoints", 5, "id = 1", id="100 + g")
    others = {"id": "1000 + g", "tenant_id": "2000 + g", "next_due_at": "null"}
    copies(connection, "webhook_endpoints", 20_000, "id = 1", **others)
    connection.execute(
        """
        insert into webhook_messages (tenant_id, type, subject, data, is_fanned_out, created_at)
        select case when g % 2 = 0 then 1 else 2000 + g end, 'event.changed', 'subject ' || g, '{}', true,
               now() - g * interval '1 minute'
          from generate_series(1, 20000) as g;
        insert into webhook_subjects (endpoint_id, subject, last_number)
        select case when g % 2 = 0 then 1 else 1000 + g end, 'subject ' || g, 1 from generate_series(1, 20000) as g;
        insert into webhook_deliveries (subject_id, number, endpoint_id, message_id, status, ended_at)
        select webhook_subjects.id, 1, webhook_subjects.endpoint_id, webhook_messages.id, 'delivered', now()
          from webhook_subjects join webhook_messages using (subject) on conflict do nothing;
        insert into webhook_attempts (endpoint_id, message_id, status, milliseconds)
        select webhook_deliveries.endpoint_id, message_id, 204, 10 from webhook_deliveries
        """
    )


def copies(connection: psycopg.Connection[Any], table: str, count: int, where: str = "true", **changed: str) -> None:
    """Copy the rows of a table that fit, this many times each.

    changed    what differs from copy to copy, by column: an expression with the columns of the row and the number `g`
               of the copy, which begins with 1
    """
    columns = [
        name
        for (name,) in connection.execute(
            """
            select attname from pg_attribute where attrelid = %s::regclass and attnum > 0
               and not attisdropped and attgenerated = '' order by attnum
            """,
            [table],
        )
    ]
    assert {*changed} <= {*columns}, f"{table} has no column { ({*changed} - {*columns}) }; it has {columns}"
    values = sql.SQL(", ").join(
        sql.SQL(changed[name]) if name in changed else sql.Identifier(name)  # pyright: ignore[reportArgumentType]
        for name in columns
    )
    connection.execute(
        sql.SQL(
            """
            insert into {table} ({columns}) overriding system value
            select {values} from (select * from {table} where {where}) as row
             cross join generate_series(1, {count}) as g
            """
        ).format(
            table=sql.Identifier(table),
            columns=sql.SQL(", ").join(map(sql.Identifier, columns)),
            values=values,
            where=sql.SQL(where),  # pyright: ignore[reportArgumentType]
            count=count,
        )
    )


def _move_sequences(connection: psycopg.Connection[Any]) -> None:
    """Let the numbers that the database gives go on after those that are there."""
    for table, column in connection.execute(
        """
        select attrelid::regclass::text, attname from pg_attribute join pg_class on pg_class.oid = attrelid
         where attidentity <> '' and relkind = 'r' and relnamespace = 'public'::regnamespace
        """
    ).fetchall():
        connection.execute(
            sql.SQL("select setval(pg_get_serial_sequence({}, {}), (select coalesce(max({}), 0) + 1 from {}))").format(
                table, column, sql.Identifier(column), sql.Identifier(table)
            )
        )
