"""Makes structures of rows: `into(**columns)`, which is compiled once for a structure and the names of its columns.

A call by a dictionary of names takes almost three times as long for a row of 40 columns.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from keyword import iskeyword
from typing import Any, TypeVar

from msgspec import Struct
from psycopg import AsyncCursor
from psycopg.pq import ExecStatus
from psycopg.rows import AsyncRowFactory, RowMaker, no_result

T = TypeVar("T")
S = TypeVar("S", bound=Struct)

MAX_KEPT_MAKERS = 2_000


def row_of(into: type[T]) -> AsyncRowFactory[T]:
    """A row as `into(**columns)`."""

    def factory(cursor: AsyncCursor[Any]) -> RowMaker[T]:
        names = _names(cursor)
        return no_result if names is None else _maker(into, names)

    return factory


def pair_of(first: type[T], second: type[S]) -> AsyncRowFactory[tuple[T, S]]:
    """A row as two structures: the last columns, as many as `second` has fields, and those before them."""
    count = len(second.__struct_fields__)

    def factory(cursor: AsyncCursor[Any]) -> RowMaker[tuple[T, S]]:
        names = _names(cursor)
        if names is None:
            return no_result
        make_first, make_second = _maker(first, names[:-count]), _maker(second, names[-count:])
        return lambda values: (make_first(values), make_second(values[-count:]))

    return factory


def _names(cursor: AsyncCursor[Any]) -> tuple[str, ...] | None:
    """The names of the columns; None if the statement returns no rows."""
    result = cursor.pgresult
    if result is None or (not result.nfields and result.status != ExecStatus.TUPLES_OK):
        return None
    return tuple([(result.fname(number) or b"").decode() for number in range(result.nfields)])


def _maker(into: Callable[..., T], names: tuple[str, ...]) -> Callable[[Sequence[Any]], T]:
    # Other callables may be made for each statement.
    if isinstance(into, type) and all(name.isidentifier() and not iskeyword(name) for name in names):
        return _compiled(into, names)
    return lambda values: into(**dict(zip(names, values, strict=False)))


@lru_cache(MAX_KEPT_MAKERS)
def _compiled(into: Callable[..., T], names: tuple[str, ...]) -> Callable[[Sequence[Any]], T]:
    arguments = ", ".join(f"{name}=values[{number}]" for number, name in enumerate(names))
    return eval(f"lambda values: into({arguments})", {"into": into})  # noqa: S307 - of names of columns
