"""Paths of requests: their parts, look-ups by path, and redirects of paths with a slash at their end."""

from collections.abc import Collection, Iterable, Sequence
from itertools import compress
from typing import Generic, TypeVar
from urllib.parse import unquote_to_bytes

from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from holdfast.kit.http.handler import NO_STORE, Reply
from holdfast.kit.http.query_parameters import known_parameters

T = TypeVar("T")


class Paths(Generic[T]):
    """Values by path, which may have fields: `/api/events/{event_id}`. A field is one part of a path, and not empty.

    The time of a look-up does not depend on the number of paths. Of several paths that match, the one with the fewest
    fields is found; of those with as many fields, the one whose fields come later.
    """

    def __init__(self) -> None:
        self._static: dict[str, T] = {}
        # By the number of parts, by the mask of literal parts, and by the literal parts.
        self._with_fields: dict[int, dict[tuple[bool, ...], dict[tuple[str, ...], T]]] = {}

    def setdefault(self, path: str, value: T) -> T:
        """The value of a path. A path without a value gets `value`."""
        if "{" not in path:
            return self._static.setdefault(path, value)
        parts = path.split("/")
        mask = tuple(not part.startswith("{") for part in parts)
        masks = self._with_fields.setdefault(len(parts), {})
        if mask not in masks:
            masks[mask] = {}
            in_order = sorted(masks, key=lambda shape: (sum(shape), shape), reverse=True)
            masks = self._with_fields[len(parts)] = {shape: masks[shape] for shape in in_order}
        index = masks[mask]
        return index.setdefault(tuple(compress(parts, mask)), value)

    def find(self, path: str, parts: Sequence[str]) -> T | None:
        """The value of a request's path, which is given as a text and in parts."""
        if (value := self._static.get(path)) is not None:
            return value
        for mask, index in self._with_fields.get(len(parts), {}).items():
            value = index.get(tuple(compress(parts, mask)))
            if value is not None and "" not in parts[1:]:
                return value
        return None


def fields_of(path: str) -> dict[str, int]:
    """The fields of a path, each with the index of its part."""
    return {part[1:-1]: place for place, part in enumerate(path.split("/")) if part.startswith("{")}


def segments(scope: Scope) -> list[str]:
    """The decoded parts of the path. A percent-encoded slash belongs to its part and does not split it.

    A part that is not UTF-8 becomes empty, and so matches nothing.
    """
    raw: bytes = scope.get("raw_path") or b""
    return [_unescaped(part) for part in raw.split(b"/")] if b"%" in raw else scope["path"].split("/")


def _unescaped(part: bytes) -> str:
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        return ""


def without_slash(scope: Scope) -> str | None:
    """The path without the slash at its end; None if it has none there, or an encoded one, or is only a slash."""
    path: str = scope["path"]
    raw: bytes = scope.get("raw_path") or path.encode()
    return path[:-1] if raw.endswith(b"/") and len(path) > 1 and not path.startswith("//") else None


def has_route(path: str, scope: Scope, routes: Iterable[BaseRoute]) -> bool:
    """Whether one of the routes matches a path."""
    return any(route.matches({**scope, "path": path})[0] is not Match.NONE for route in routes)


def redirect_without_slash(scope: Scope, parameters: Collection[str]) -> Reply:
    """A redirect, with the same method and body, to the same address without the slash at its end.

    parameters    the names of the query parameters that it keeps
    """
    query = known_parameters(scope["query_string"], parameters)
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    location = path.removesuffix(b"/") + (b"?" + query if query else b"")
    return Reply(308, headers=[NO_STORE, (b"location", location)])
