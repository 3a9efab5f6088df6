"""All that a database holds, to see that nothing was written, not even the same."""

from collections.abc import Awaitable, Callable
from typing import Any

Rows = dict[str, list[tuple[str, str]]]
"""The rows of each table as texts, each with the transaction that wrote it."""


async def read_all_rows(run_sql: Callable[..., Awaitable[list[tuple[Any, ...]]]], *left_out: str) -> Rows:
    """Every row there is. What agents did is left out: each call adds to it.

    run_sql     runs a statement in the database
    left_out    further tables that are left out
    """
    named = await run_sql("select quote_ident(tablename) from pg_tables where schemaname = 'public'")
    rows: Rows = {table: [] for (table,) in named if table not in {"agent_actions", *left_out}}
    selected = " union all ".join(f"select '{table}', t::text, t.xmin::text from {table} t" for table in rows)
    for table, row, transaction in await run_sql(f"{selected} order by 1, 2, 3"):
        rows[table].append((row, transaction))
    return rows
