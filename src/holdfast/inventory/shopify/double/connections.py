"""Lists of the Admin API: a page at a time, found again by cursors."""

import base64
import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from graphql import GraphQLResolveInfo

from holdfast.inventory.shopify.double.errors import failed

MOST = 250

Key = tuple[Any, int]
"""What a thing is sorted by, and its id."""

View = dict[str, Any]
"""The fields of an object, by their names. Those that are functions are asked when somebody wants them."""

Info: TypeAlias = GraphQLResolveInfo[Any]


def lazy(act: Callable[[], Any]) -> Callable[..., Any]:
    """A field that is found when somebody wants it."""
    return lambda *_, **__: act()


def field(act: Callable[[Info, View], Any]) -> Callable[..., Any]:
    """A field that depends on who asks, and on its arguments."""

    def resolve(info: Info, **given: Any) -> Any:
        return act(info, given)

    return resolve


class Slice(NamedTuple):
    """A part of a list: so many, from behind a key, forwards or backwards."""

    after: Key | None
    reverse: bool
    most: int


Source = Callable[[Slice], Sequence[tuple[Key, Any]]]


class Paging:
    """How lists are read in one request.

    bulk      whether everything is read; then `after` is where the outermost list goes on, and `most` how far
    shifted   whether pages begin one too early, as when something was put in before them meanwhile
    """

    def __init__(self, *, shifted: bool = False, bulk: bool = False) -> None:
        self.shifted = shifted
        self.bulk = bulk
        self.after: Key | None = None
        self.most = MOST
        self.ended = False

    def connection(self, source: Source, view: Callable[[Any], View]) -> Callable[..., View]:
        """A field that is a list."""

        def resolve(info: Info, **arguments: Any) -> View:
            if self.bulk:
                return self._all(info, source, view, bool(arguments.get("reverse")))
            return self._page(info, source, view, arguments)

        return resolve

    def _page(self, info: Info, source: Source, view: Callable[[Any], View], given: View) -> View:
        first, last = given.get("first"), given.get("last")
        size: Any = last if first is None else first
        if (first is None) == (last is None):
            raise failed(f"you must provide one of first or last for {info.field_name}", "BAD_REQUEST")
        if not 0 < size <= MOST:
            raise failed(f"{info.field_name}: first and last are between 1 and {MOST}.", "BAD_REQUEST")
        forwards = first is not None
        if given.get("before" if forwards else "after"):
            raise failed("first goes with after, last goes with before.", "BAD_REQUEST")
        begin = given.get("after" if forwards else "before")
        key = None if begin is None else decoded(begin)
        if key and self.shifted:
            key = (key[0], key[1] - 1)
        found = source(Slice(key, bool(given.get("reverse")) == forwards, size + 1))
        more, found = len(found) > size, found[:size]
        if not forwards:
            found = found[::-1]
        return _shown(
            found, view, next=more if forwards else key is not None, previous=(not forwards and more) or key is not None
        )

    def _all(self, info: Info, source: Source, view: Callable[[Any], View], reverse: bool) -> View:
        if info.path.prev is not None:
            return _shown(source(Slice(None, reverse, -1)), view)
        found = source(Slice(self.after, reverse, self.most))
        self.ended = len(found) < self.most
        self.after = found[-1][0] if found else self.after
        return _shown(found, view)


def _shown(
    found: Sequence[tuple[Key, Any]], view: Callable[[Any], View], *, next: bool = False, previous: bool = False
) -> View:
    edges = [{"cursor": encoded(key), "node": view(thing)} for key, thing in found]
    ends = {"startCursor": edges[0]["cursor"], "endCursor": edges[-1]["cursor"]} if edges else {}
    page_info = {"hasNextPage": next, "hasPreviousPage": previous, **ends}
    return {"edges": edges, "nodes": [each["node"] for each in edges], "pageInfo": page_info}


def of(things: Iterable[Any], key: Callable[[Any], Key]) -> Source:
    """The source of a short list."""
    keyed = [(key(each), each) for each in things]

    def source(part: Slice) -> Sequence[tuple[Key, Any]]:
        found = sorted(keyed, key=lambda pair: pair[0], reverse=part.reverse)
        if part.after is not None:
            after = part.after
            found = [pair for pair in found if (pair[0] < after if part.reverse else pair[0] > after)]
        return found if part.most < 0 else found[: part.most]

    return source


def encoded(key: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode()


def decoded(cursor: str) -> Key:
    """The key in a cursor. Raises `GraphQLError`."""
    try:
        value, id = json.loads(base64.urlsafe_b64decode(cursor))
        return value, int(id)
    except (ValueError, TypeError) as error:
        raise failed("Invalid cursor for current pagination sort.", "BAD_REQUEST") from error


_TERM = re.compile(r"""(?:(\w+):)?(>=|<=|>|<)?(?:"([^"]*)"|'([^']*)'|(\S+))\s*""")


class Term(NamedTuple):
    """A part of a search: `sku:HONEY-6` or a word, whose field is empty."""

    field: str
    sign: str
    value: str


def terms(query: str | None) -> list[Term]:
    """The parts of a search, all of which have to be true. Raises `GraphQLError` for what the double does not know."""
    found: list[Term] = []
    for field, sign, double, single, plain in _TERM.findall(query or ""):
        value = double or single or plain
        if (not field and value in {"OR", "NOT"}) or value.startswith(("(", "-")):
            raise failed(f"The double knows no {value} in searches.", "BAD_REQUEST")
        if field or value != "AND":
            found.append(Term(field, sign or "=", value))
    return found
