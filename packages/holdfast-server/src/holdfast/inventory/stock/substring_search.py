"""Searches a list for rows that contain a text, at a cost that does not grow with the table.

Both sides are folded by one rule, the function `fold_text`: without case, accents and characters that are not visible.

A common text fills a page soon when the list is read in its order, so the first rows are scanned. A rare text is found
by an index of parts of texts (the functions `…_containing`), which would match too many rows for a common text.
"""

from collections.abc import Awaitable, Callable
from typing import LiteralString, NamedTuple, TypeVar

from holdfast.kit.postgres.database import Params

T = TypeVar("T")

SCANNED_ROWS: LiteralString = "2000"
"""How many rows are scanned before the index is used. That takes 2 ms, and 20 ms in other scripts."""


class SearchedTable(NamedTuple):
    """A table that can be searched.

    table        its name; the function `<table>_containing` finds its rows by an index
    column       the column with the searched text
    order        the order of the list, for which there is an index
    condition    on the rows of the list, as far as that index supports it
    """

    table: LiteralString
    column: LiteralString
    order: LiteralString
    condition: LiteralString = "shop_id = %(shop_id)s"


async def search(
    read: Callable[[LiteralString, Params], Awaitable[list[T]]],
    searched: SearchedTable,
    statement: Callable[[LiteralString], LiteralString],
    params: Params,
) -> list[T]:
    """The first rows of a list that contain a text.

    read        runs a statement
    statement   returns the statement that lists rows in their order, from what follows its `from`
    params      its parameters; `query` is the text, `limit` the most rows that it returns
    """
    table, column, order, condition = searched
    first: LiteralString = f"""
        (select * from (select * from {table} where {condition} order by {order} limit {SCANNED_ROWS}) as first
          where fold_text({column}) like (select search_pattern(%(query)s))) as {table}
    """
    rows = await read(statement(first), params)
    if len(rows) >= params["limit"]:
        return rows
    return await read(statement(f"{table}_containing(%(query)s) as {table}"), params)
