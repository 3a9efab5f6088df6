"""Searching a list for rows that contain a text, at a cost that does not grow with what is stored.

A common text fills a page soon when a list is read in its order, so the first rows are looked at one by one. A rare one
is found down an index of parts of texts (see migration 0018), which would find too much of a common one.
"""

from collections.abc import Awaitable, Callable
from typing import LiteralString, NamedTuple, TypeVar

from holdfast.kit.database import Params

T = TypeVar("T")

FIRST: LiteralString = "2000"
"""How many rows are looked at one by one. That takes about half a millisecond."""


class Place(NamedTuple):
    """What is searched.

    table    the table; `<table>_containing` is the function that finds its rows by an index
    column   its column that has the searched text in lower case
    order    the order of the list, which an index has
    among    the rows that the list may have, as far as that index is searched for them
    """

    table: LiteralString
    column: LiteralString
    order: LiteralString
    among: LiteralString = "shop_id = %(shop_id)s"


async def search(
    read: Callable[[LiteralString, Params], Awaitable[list[T]]],
    place: Place,
    statement: Callable[[LiteralString], LiteralString],
    params: Params,
) -> list[T]:
    """The first rows of a list that contain a text, in either case of any letter.

    read        runs a statement
    statement   makes the one that lists rows in the order of the place, from what stands behind its `from`
    params      its parameters; `query` is the text, `limit` the most rows that it returns
    """
    table, column, order, among = place
    first: LiteralString = f"""
        (select * from (select * from {table} where {among} order by {order} limit {FIRST}) as first
          where strpos({column}, lower(%(query)s)) > 0) as {table}
    """
    found = await read(statement(first), params)
    if len(found) >= params["limit"]:
        return found
    return await read(statement(f"{table}_containing(%(query)s) as {table}"), params)
