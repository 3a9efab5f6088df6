"""Pages of lists, selected by offset and limit."""

from typing import Annotated, Any, Generic, LiteralString, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from holdfast.kit.contract.command import Command
from holdfast.kit.postgres.database import Params, Reader

T = TypeVar("T")


class OffsetPage(Command):
    """A command that reads one page of a list, by its place in the list."""

    offset: Annotated[int, Meta(ge=0, le=100_000, description="Items to skip.")] = 0
    limit: Annotated[int, Meta(ge=1, le=500, description="Page size.")] = 100


TOOL_PAGE_SIZE = 20
"""The default page size of tools. It is short because a model reads every item."""


def with_short_pages(kind: type[OffsetPage]) -> type[OffsetPage]:
    """A copy of the command with shorter pages."""
    # All fields are declared again, because a single one would move behind the others.
    defaults = {info.name: info.default for info in msgspec.structs.fields(kind)} | {"limit": TOOL_PAGE_SIZE}
    fields = [(info.name, info.type, field(default=defaults[info.name])) for info in msgspec.structs.fields(kind)]
    shorter = msgspec.defstruct(kind.__name__, fields, bases=(kind,), kw_only=True, forbid_unknown_fields=True)
    assert issubclass(shorter, OffsetPage)
    return shorter


class Pagination(Struct):
    """Where a page lies in its list."""

    count: Annotated[int, Meta(description="Items in this response.")]
    offset: int
    limit: int
    has_more: Annotated[bool, Meta(description="True when more items exist beyond the page.")]


class Page(Struct, Generic[T]):
    """One page of a list."""

    data: list[T]
    pagination: Pagination


def offset_page(rows: list[T], command: OffsetPage) -> Page[T]:
    """The page made from at most `limit + 1` rows. A row beyond the limit means that the list has more items."""
    data = rows[: command.limit]
    return Page(data, Pagination(len(data), command.offset, command.limit, len(rows) > command.limit))


MAX_PAGE_BYTES = 2_000_000
"""The approximate maximum size of a page of long items, in bytes. Such a page ends early, and its `limit` is the number
of its items: the next page begins at `offset` + `count`, which is `offset` + `limit`."""


class ListedPlace(Struct):
    """Where an item stands: whether another one follows it in the list, and whether it is on the page."""

    has_next: bool
    fits: bool


async def page_of_long_items(
    reader: Reader[Any],
    into: type[T],
    items: LiteralString,
    params: Params,
    command: OffsetPage,
    *,
    table: LiteralString,
    where: LiteralString,
    size: LiteralString,
) -> Page[T]:
    """A page of a list with long items, in the order of their ids. It has at least one item unless the list has ended.

    The database sends only items that fit. It skips items before the offset without reading them.

    items     the statement that selects items, without conditions; one of its columns is their `id`
    table     the table with their ids
    where     the condition on the rows of this table; an index should have them in the order of their ids
    size      the approximate size of an item in bytes, an expression over its columns
    """
    first: LiteralString = (
        f"and {table}.id >= (select id from {table} where {where} order by id offset %(offset)s limit 1)"
        if command.offset
        else ""
    )
    rows = await reader.pairs(
        into,
        ListedPlace,
        f"""
        select * from (
            select listed.*, lead(true, 1, false) over before as has_next,
                   row_number() over before <= %(limit)s and coalesce(sum({size}) over before, 0) < %(bytes)s as fits
              from ({items} where {where} {first} order by {table}.id limit %(limit)s + 1) as listed
            window before as (order by id rows between unbounded preceding and 1 preceding)) as items
         where fits
         order by id
        """,
        {**params, "offset": command.offset, "limit": command.limit, "bytes": MAX_PAGE_BYTES},
    )
    has_more = bool(rows) and rows[-1][1].has_next
    limit = len(rows) if has_more else command.limit
    return Page([row for row, _ in rows], Pagination(len(rows), command.offset, limit, has_more))
