"""Routes, and the index that finds what answers a path.

The path of a route has literal parts and fields: `/api/events/{event_id}`. A field is a part, or the middle of a part
(`cover-{version}.png`), and is not empty. A last field `{key:path}` is all that is left of a path, even nothing.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import unquote_to_bytes

from starlette.types import Scope

from holdfast.kit.http.handler import NO_FIELDS, Reply, Request

T = TypeVar("T")
Fields = Mapping[str, str]


class Endpoint(Protocol):
    """What answers the requests of one path.

    methods    the methods that it answers. It raises, or renders, `method_not_allowed` for others
    """

    @property
    def methods(self) -> Sequence[str]: ...

    async def __call__(self, request: Request) -> Reply: ...


class Route(NamedTuple):
    """A path, and what answers it.

    refuses_parameters    whether it refuses query parameters that it does not know
    """

    path: str
    endpoint: Endpoint
    refuses_parameters: bool = False


_FIELD = re.compile(r"\{([a-z_]+)(:path)?\}")


class _PartWithField(NamedTuple):
    """A part of a path, by its place, with a field inside: the name of the field, and what surrounds it."""

    position: int
    name: str
    before: str
    after: str

    def matches(self, part: str) -> bool:
        return (
            len(part) > len(self.before) + len(self.after)
            and part.startswith(self.before)
            and part.endswith(self.after)
        )

    def value(self, part: str) -> str:
        return part[len(self.before) : len(part) - len(self.after)]


class _Pattern(NamedTuple, Generic[T]):
    """The parts of a path that are not literal, and the value of the path.

    whole_fields    the index of each field that is a whole part
    inside          the fields that are the middle of a part
    rest            the index of the first part of the last field, which is all that is left, and its name
    """

    value: T
    whole_fields: Mapping[str, int]
    inside: Sequence[_PartWithField]
    rest: tuple[int, str] | None

    def surroundings(self) -> Sequence[tuple[int, str, str]]:
        """What surrounds its fields, whatever their names."""
        return [(part.position, part.before, part.after) for part in self.inside]

    def fields(self, parts: Sequence[str]) -> Fields:
        fields = {name: parts[index] for name, index in self.whole_fields.items()}
        if self.inside:
            fields |= {part.name: part.value(parts[part.position]) for part in self.inside}
        if self.rest:
            fields[self.rest[1]] = "/".join(parts[self.rest[0] :])
        return fields


class _PatternsOfLength(Generic[T]):
    """Patterns with the same number of parts: by their masks of literal parts, and by the literal parts."""

    def __init__(self) -> None:
        self._masks: dict[tuple[bool, ...], dict[tuple[str, ...], list[_Pattern[T]]]] = {}

    def setdefault(self, parts: Sequence[str], pattern: _Pattern[T]) -> T:
        mask = tuple("{" not in part for part in parts)
        if mask not in self._masks:
            self._masks[mask] = {}
            in_order = sorted(self._masks, key=lambda mask: (sum(mask), mask), reverse=True)
            self._masks = {mask: self._masks[mask] for mask in in_order}
        patterns = self._masks[mask].setdefault(tuple(compress(parts, mask)), [])
        for earlier in patterns:
            if earlier.surroundings() == pattern.surroundings():
                return earlier.value
        patterns.append(pattern)
        patterns.sort(key=lambda pattern: len(pattern.inside), reverse=True)
        return pattern.value

    def find(self, parts: Sequence[str]) -> _Pattern[T] | None:
        if parts.count("") > 1:  # the first part is always empty
            return None
        for mask, patterns in self._masks.items():
            for pattern in patterns.get(tuple(compress(parts, mask)), ()):
                if not pattern.inside or all(part.matches(parts[part.position]) for part in pattern.inside):
                    return pattern
        return None


class PathIndex(Generic[T]):
    """Values by path. The time of a look-up does not depend on the number of paths.

    If several paths match, the one with the most literal parts is found; if several have as many, the one whose fields
    come later. A path that ends with all that is left is found only if no other matches.
    """

    def __init__(self) -> None:
        self._literal: dict[str, T] = {}
        self._by_length: dict[int, _PatternsOfLength[T]] = {}
        self._by_start: dict[int, _PatternsOfLength[T]] = {}

    def setdefault(self, path: str, value: T) -> T:
        """The value of a path. A path without a value gets `value`."""
        if "{" not in path:
            return self._literal.setdefault(path, value)
        whole_fields: dict[str, int] = {}
        inside: list[_PartWithField] = []
        parts = path.split("/")
        rest: tuple[int, str] | None = None
        for index, part in enumerate(parts):
            if "{" not in part:
                continue
            field = _FIELD.search(part)
            assert field, f"{path} has no field in {part}"
            if field[2]:
                rest = index, field[1]
            elif field[0] == part:
                whole_fields[field[1]] = index
            else:
                inside.append(_PartWithField(index, field[1], part[: field.start()], part[field.end() :]))
        lengths, parts = (self._by_start, parts[: rest[0]]) if rest else (self._by_length, parts)
        patterns = lengths.setdefault(len(parts), _PatternsOfLength())
        return patterns.setdefault(parts, _Pattern(value, whole_fields, inside, rest))

    def find(self, path: str, parts: Sequence[str]) -> tuple[T, Fields] | None:
        """The value of a request's path, which is given as a text and in parts, and the fields of the path."""
        if (value := self._literal.get(path)) is not None:
            return value, NO_FIELDS
        patterns = self._by_length.get(len(parts))
        pattern = patterns and patterns.find(parts)
        if not pattern:
            starts = sorted((length for length in self._by_start if length < len(parts)), reverse=True)
            candidates = (self._by_start[length].find(parts[:length]) for length in starts)
            pattern = next((candidate for candidate in candidates if candidate), None)
        return (pattern.value, pattern.fields(parts)) if pattern else None


def field_names(path: str) -> Sequence[str]:
    """The names of the fields of a path."""
    return [field[1] for field in _FIELD.finditer(path)]


def segments(scope: Scope) -> list[str]:
    """The decoded parts of the path. A percent-encoded slash belongs to its part and does not split it.

    A part that is not UTF-8 becomes empty, and so no field matches it.
    """
    raw: bytes = scope.get("raw_path") or b""
    return [_unescaped(part) for part in raw.split(b"/")] if b"%" in raw else scope["path"].split("/")


def _unescaped(part: bytes) -> str:
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        return ""
