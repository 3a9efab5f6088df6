"""Repairs paths of links as people pass them on: `/console)`, `/Events/1`, `//console`, `/event/1.`

Mail programs and chats take the punctuation behind an address for a part of it, and people type capitals. A path is
repaired only if nothing was found at it, so other requests cost nothing. A repaired path is always that of a route, and
is written again from it: so no redirect leads to another site.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from urllib.parse import unquote_to_bytes

from starlette.types import Scope

from holdfast.kit.http.answers import known_parameters
from holdfast.kit.http.index import PathIndex

PATH_REPAIR = "holdfast.path_repair"
"""In the scope of a request: the `PathRepair` of the service."""

_FOREIGN = re.compile(r"[^A-Za-z0-9/._~-]")
"""A character that no address of a page has."""

_JOINING = re.compile("[\u00ad\u2060\ufeff]")
"""Invisible marks inside a word."""

_TURNING = "[\u200b-\u200f\u202a-\u202e\u2066-\u2069]+"
_BESIDE_SLASH = re.compile(f"(?<=/){_TURNING}|{_TURNING}(?=/)")
"""Invisible marks with which programs break long lines. Elsewhere they end the address."""

_WORDS = {"Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "So", "Co", "Cn"}
"""Categories of characters of Unicode."""

_MAX_PATH_LENGTH = 2_000


class PathRepair:
    """The paths of the pages of a service, and how other paths become one of them.

    paths               with fields, such as `/events/{event_id}`. A field `slug` has no capitals
    parameters          the query parameters that a redirect keeps
    program_prefixes    the prefixes of paths that are for programs, and never repaired
    """

    def __init__(
        self, paths: Iterable[str], parameters: Collection[str], program_prefixes: tuple[str, ...] = ()
    ) -> None:
        self._parameters = parameters
        self._program_prefixes = program_prefixes
        self._paths: PathIndex[str] = PathIndex()
        self._singular_paths: PathIndex[str] = PathIndex()
        for path in paths:
            parts = path.split("/")
            if f"{path}/".startswith(program_prefixes):
                continue
            if all("{" not in part or re.fullmatch(r"\{[a-z_]+\}", part) for part in parts):
                self._paths.setdefault(_folded(parts), path)
                self._singular_paths.setdefault(_folded(parts, singular=True), path)

    def location(self, scope: Scope) -> bytes | None:
        """The address to which a request is redirected; None if its path is not that of a page with something glued on.

        It has the known parameters of the query, and no other.
        """
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        if scope["method"] not in {"GET", "HEAD"} or len(raw) > _MAX_PATH_LENGTH:
            return None
        if f"{scope['path'].lower()}/".startswith(self._program_prefixes):
            return None
        path = next((path for path in map(self._path_of, _candidates(raw)) if path and path.encode() != raw), None)
        if path is None:
            return None
        query = known_parameters(scope["query_string"], self._parameters)
        return path.encode() + (b"?" + query if query else b"")

    def _path_of(self, path: str) -> str | None:
        """The path of a page, as the service writes it."""
        parts = path.split("/")
        lower = [part.lower() for part in parts]
        pattern_and_fields = self._paths.find(path.lower(), lower)
        if pattern_and_fields is None:
            singular = [_singular(part) for part in lower]
            pattern_and_fields = self._singular_paths.find("/".join(singular), singular)
        if pattern_and_fields is None:
            return None
        names = pattern_and_fields[0].split("/")
        return "/".join(
            _value(name, part) if name.startswith("{") else name for name, part in zip(names, parts, strict=True)
        )


def _value(field: str, part: str) -> str:
    return part.lower() if field == "{slug}" else part


def _folded(parts: Sequence[str], *, singular: bool = False) -> str:
    """A path with its fields as they are, and its words in small letters."""
    words = [part if part.startswith("{") else part.lower() for part in parts]
    return "/".join(_singular(word) if singular and not word.startswith("{") else word for word in words)


def _singular(word: str) -> str:
    return word.removesuffix("s") if len(word) > 3 else word


def _candidates(raw: bytes) -> Iterable[str]:
    """What may have been meant with a path, the least changed first."""
    text = _JOINING.sub("", unquote_to_bytes(raw).decode(errors="replace"))
    text = _BESIDE_SLASH.sub("", text)
    foreign = _FOREIGN.search(text)
    if foreign and foreign[0] < " " and not foreign[0].isspace():
        return
    address, rest = (text[: foreign.start()], text[foreign.start() :]) if foreign else (text, "")
    path = re.sub("/{2,}", "/", address).rstrip("./") or "/"
    # "/)" is the start page. A word behind the slash is something else.
    glued = re.split("[?#&]", rest, maxsplit=1)[0]
    if path == "/" and any(unicodedata.category(character) in _WORDS for character in glued):
        return
    yield path
    # A sentence that goes on behind the number of an event without a space.
    yield re.sub(r"(?<=/)([0-9]+)\.[^/]*$", r"\1", path)
    yield path.rstrip("-_~") or "/"
