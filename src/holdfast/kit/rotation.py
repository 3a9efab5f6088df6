"""What is stored sealed; and the rotation of the secret, which seals all of it again."""

from collections.abc import Sequence
from typing import Any, LiteralString, NamedTuple

import psycopg

from holdfast.kit.database import Database, Tx
from holdfast.kit.secrets import HasSecret, Unreadable

AT_ONCE = 200
"""Rows that are sealed again in one transaction, and locked meanwhile."""


class Sealed(NamedTuple):
    """A table with a column `sealed`, and its primary key with the key's type."""

    table: LiteralString
    key: LiteralString
    type: LiteralString


class Resealed(NamedTuple):
    """How many rows of a table were sealed again, and how many could not be read, and so stay as they are."""

    table: str
    rows: int
    unreadable: int


def is_anything_sealed(url: str, tables: Sequence[Sealed]) -> bool:
    """Whether a database has contents that only its secret opens."""
    with psycopg.connect(url, connect_timeout=10) as connection:
        return any(_has_sealed(connection, each.table) for each in tables)


def _has_sealed(connection: psycopg.Connection[Any], table: LiteralString) -> bool:
    if connection.execute("select to_regclass(%s)", [table]).fetchone() == (None,):
        return False
    return connection.execute(f"select from {table} where sealed <> '' limit 1").fetchone() is not None


async def reseal(database: Database[Any], tables: Sequence[Sealed]) -> list[Resealed]:
    """Seal everything again. It may be repeated, and services may run meanwhile."""
    async with database.pool:
        return [await _table(database, each) for each in tables]


async def _table(database: Database[Any], of: Sealed) -> Resealed:
    done, left, last = await database.transact(lambda tx: _some(tx, of, None))
    while last is not None:
        more, unreadable, last = await database.transact(lambda tx, after=last: _some(tx, of, after))
        done, left = done + more, left + unreadable
    return Resealed(of.table, done, left)


async def _some(tx: Tx[HasSecret], of: Sealed, after: Any) -> tuple[int, int, Any]:
    """Seal the next rows again. Returns how many were and were not, and the key of the last, None at the end."""
    rows = await tx.tuples(
        f"""
        select {of.key}, sealed from {of.table}
         where %(after)s::{of.type} is null or {of.key} > %(after)s::{of.type}
         order by {of.key} limit %(most)s for update
        """,
        {"after": after, "most": AT_ONCE},
    )
    fresh: dict[Any, bytes] = {}
    for key, sealed in rows:
        try:
            fresh[key] = tx.resources.secret.reseal(sealed)
        except Unreadable:
            continue
    if fresh:
        await tx.run(
            f"""
            update {of.table} set sealed = fresh.sealed
              from unnest(%(keys)s::{of.type}[], %(sealed)s::bytea[]) as fresh (key, sealed)
             where {of.table}.{of.key} = fresh.key
            """,
            {"keys": list(fresh), "sealed": list(fresh.values())},
        )
    return len(fresh), len(rows) - len(fresh), rows[-1][0] if rows else None
