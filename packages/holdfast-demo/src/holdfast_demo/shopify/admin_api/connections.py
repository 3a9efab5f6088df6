"""Lists of the Admin API: pages with cursors."""

import base64
import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from graphql import GraphQLResolveInfo

from holdfast_demo.shopify.errors import graphql_error

MAX_PAGE_SIZE = 250

Key = tuple[Any, int]
"""The sort value of a thing, and its id."""

Fields = dict[str, Any]
"""The fields of an object or an input, by name. Fields that are functions are called when a query selects them."""

Info: TypeAlias = GraphQLResolveInfo[Any]


def lazy(compute: Callable[[], Any]) -> Callable[..., Any]:
    """A field that is computed when a query selects it."""
    return lambda *_, **__: compute()


def field(compute: Callable[[Info, Fields], Any]) -> Callable[..., Any]:
    """A field that depends on the resolve info and its arguments."""

    def resolve(info: Info, **arguments: Any) -> Any:
        return compute(info, arguments)

    return resolve


class Slice(NamedTuple):
    """A part of a list: at most `max_count` things after a key, forwards or backwards."""

    after: Key | None
    reverse: bool
    max_count: int


Source = Callable[[Slice], Sequence[tuple[Key, Any]]]


class Paging:
    """How lists are read in one request.

    bulk      whether whole lists are read; then `after` is the key where the outermost list continues, `max_count`
              the count
    shifted   whether pages begin one thing too early, as after an insertion before them
    """

    def __init__(self, *, shifted: bool = False, bulk: bool = False) -> None:
        self.shifted = shifted
        self.bulk = bulk
        self.after: Key | None = None
        self.max_count = MAX_PAGE_SIZE
        self.ended = False

    def connection(self, source: Source, view: Callable[[Any], Fields]) -> Callable[..., Fields]:
        """A field that is a list."""

        def resolve(info: Info, **arguments: Any) -> Fields:
            if self.bulk:
                return self._all(info, source, view, bool(arguments.get("reverse")))
            return self._page(info, source, view, arguments)

        return resolve

    def _page(self, info: Info, source: Source, view: Callable[[Any], Fields], arguments: Fields) -> Fields:
        first, last = arguments.get("first"), arguments.get("last")
        size: Any = last if first is None else first
        if (first is None) == (last is None):
            raise graphql_error(f"you must provide one of first or last for {info.field_name}", "BAD_REQUEST")
        if not 0 < size <= MAX_PAGE_SIZE:
            raise graphql_error(f"{info.field_name}: first and last are between 1 and {MAX_PAGE_SIZE}.", "BAD_REQUEST")
        forwards = first is not None
        if arguments.get("before" if forwards else "after"):
            raise graphql_error("first goes with after, last goes with before.", "BAD_REQUEST")
        begin = arguments.get("after" if forwards else "before")
        key = None if begin is None else decoded(begin)
        if key and self.shifted:
            key = (key[0], key[1] - 1)
        things = source(Slice(key, bool(arguments.get("reverse")) == forwards, size + 1))
        more, things = len(things) > size, things[:size]
        if not forwards:
            things = things[::-1]
        return _connection(
            things,
            view,
            next=more if forwards else key is not None,
            previous=(not forwards and more) or key is not None,
        )

    def _all(self, info: Info, source: Source, view: Callable[[Any], Fields], reverse: bool) -> Fields:
        if info.path.prev is not None:
            return _connection(source(Slice(None, reverse, -1)), view)
        things = source(Slice(self.after, reverse, self.max_count))
        self.ended = len(things) < self.max_count
        self.after = things[-1][0] if things else self.after
        return _connection(things, view)


def _connection(
    things: Sequence[tuple[Key, Any]], view: Callable[[Any], Fields], *, next: bool = False, previous: bool = False
) -> Fields:
    edges = [{"cursor": encoded(key), "node": view(thing)} for key, thing in things]
    ends = {"startCursor": edges[0]["cursor"], "endCursor": edges[-1]["cursor"]} if edges else {}
    page_info = {"hasNextPage": next, "hasPreviousPage": previous, **ends}
    return {"edges": edges, "nodes": [edge["node"] for edge in edges], "pageInfo": page_info}


def list_source(things: Iterable[Any], key: Callable[[Any], Key]) -> Source:
    """The source of a short list."""
    keyed = [(key(thing), thing) for thing in things]

    def source(part: Slice) -> Sequence[tuple[Key, Any]]:
        pairs = sorted(keyed, key=lambda pair: pair[0], reverse=part.reverse)
        if part.after is not None:
            after = part.after
            pairs = [pair for pair in pairs if (pair[0] < after if part.reverse else pair[0] > after)]
        return pairs if part.max_count < 0 else pairs[: part.max_count]

    return source


def encoded(key: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode()


def decoded(cursor: str) -> Key:
    """The key in a cursor. Raises `GraphQLError`."""
    try:
        value, id = json.loads(base64.urlsafe_b64decode(cursor))
        return value, int(id)
    except (ValueError, TypeError) as error:
        raise graphql_error("Invalid cursor for current pagination sort.", "BAD_REQUEST") from error


_TERM = re.compile(r"""(?:(\w+):)?(>=|<=|>|<)?(?:"([^"]*)"|'([^']*)'|(\S+))\s*""")


class Term(NamedTuple):
    """A part of a search: `sku:HONEY-6` or a word, whose field is empty."""

    field: str
    sign: str
    value: str


def terms(query: str | None) -> list[Term]:
    """The terms of a search, which are combined by AND. Raises `GraphQLError` for unsupported terms."""
    result: list[Term] = []
    for field, sign, double, single, plain in _TERM.findall(query or ""):
        value = double or single or plain
        if (not field and value in {"OR", "NOT"}) or value.startswith(("(", "-")):
            raise graphql_error(f"The double knows no {value} in searches.", "BAD_REQUEST")
        if field or value != "AND":
            result.append(Term(field, sign or "=", value))
    return result
