"""Sealed contents of the database, and the rotation of the secret, which seals all of them again."""

from collections.abc import Sequence
from typing import Any, LiteralString, NamedTuple

import psycopg

from holdfast.kit.postgres.database import Database, Tx
from holdfast.kit.security.secrets import HasSecret, UnsealError

BATCH_SIZE = 200
"""Rows that one transaction locks and seals again."""


class SealedTable(NamedTuple):
    """A table with a column `sealed`, and the name and type of its primary key."""

    table: LiteralString
    key: LiteralString
    type: LiteralString


class ResealedTable(NamedTuple):
    """The number of rows of a table that were sealed again, and of rows that are unreadable and stay unchanged."""

    table: str
    rows: int
    unreadable: int


def is_anything_sealed(url: str, tables: Sequence[SealedTable]) -> bool:
    """Whether a database has contents that were sealed with its secret."""
    with psycopg.connect(url, connect_timeout=10) as connection:
        return any(_has_sealed(connection, table.table) for table in tables)


def _has_sealed(connection: psycopg.Connection[Any], table: LiteralString) -> bool:
    if connection.execute("select to_regclass(%s)", [table]).fetchone() == (None,):
        return False
    return connection.execute(f"select from {table} where sealed <> '' limit 1").fetchone() is not None


async def reseal(database: Database[Any], tables: Sequence[SealedTable]) -> list[ResealedTable]:
    """Seal all contents again. It may be repeated, and services may run meanwhile."""
    async with database.pool:
        return [await _reseal_table(database, table) for table in tables]


async def _reseal_table(database: Database[Any], of: SealedTable) -> ResealedTable:
    done, left, last = await database.transact(lambda tx: _reseal_batch(tx, of, None))
    while last is not None:
        more, unreadable, last = await database.transact(lambda tx, after=last: _reseal_batch(tx, of, after))
        done, left = done + more, left + unreadable
    return ResealedTable(of.table, done, left)


async def _reseal_batch(tx: Tx[HasSecret], of: SealedTable, after: Any) -> tuple[int, int, Any]:
    """Seal the next rows again. Returns how many were sealed, how many were not, and the last key (None at the end)."""
    rows = await tx.tuples(
        f"""
        select {of.key}, sealed from {of.table}
         where %(after)s::{of.type} is null or {of.key} > %(after)s::{of.type}
         order by {of.key} limit %(most)s for update
        """,
        {"after": after, "most": BATCH_SIZE},
    )
    fresh: dict[Any, bytes] = {}
    for key, sealed in rows:
        try:
            fresh[key] = tx.resources.secret.reseal(sealed)
        except UnsealError:
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
