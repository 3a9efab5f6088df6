"""Looks at the schema of a database."""

from typing import Any, LiteralString

import psycopg


def rows(url: str, statement: LiteralString) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(statement).fetchall()


def tables(url: str) -> list[str]:
    return [name for (name,) in rows(url, "select tablename from pg_tables where schemaname = 'public' order by 1")]
