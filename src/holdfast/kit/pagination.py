"""Lists in pages, which are selected by offset and limit."""

from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from holdfast.kit.command import Command

T = TypeVar("T")


class OffsetPage(Command):
    """A command that reads one page of a list, by its place in the list."""

    offset: Annotated[int, Meta(ge=0, le=100_000, description="Items to skip.")] = 0
    limit: Annotated[int, Meta(ge=1, le=500, description="Items on the page.")] = 100


SHORT = 20
"""Items on a page of a tool, unless its caller says otherwise: a model reads every one of them."""


def in_short_pages(kind: type[OffsetPage]) -> type[OffsetPage]:
    """The same command with shorter pages."""
    # All fields are named again, because one that is named alone would move behind the others.
    defaults = {each.name: each.default for each in msgspec.structs.fields(kind)} | {"limit": SHORT}
    fields = [(each.name, each.type, field(default=defaults[each.name])) for each in msgspec.structs.fields(kind)]
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
    """The page made from at most `limit + 1` rows: a row beyond the limit means that the list has more."""
    data = rows[: command.limit]
    return Page(data, Pagination(len(data), command.offset, command.limit, len(rows) > command.limit))
