"""Paths of requests: their parts, and the slash at their end that leads nowhere."""

from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from holdfast.kit.handler import NO_STORE, Reply


def segments(scope: Scope) -> list[str]:
    """The parts of the path, decoded. A percent-encoded slash belongs to its part and does not divide it.

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
    """The path without the slash at its end; None if it has none, or nothing else."""
    path: str = scope["path"]
    return path[:-1] if path.endswith("/") and len(path) > 1 and not path.startswith("//") else None


def leads_somewhere(path: str, scope: Scope, routes: Iterable[BaseRoute]) -> bool:
    """Whether one of the routes is for a path."""
    return any(route.matches({**scope, "path": path})[0] is not Match.NONE for route in routes)


def moved(scope: Scope) -> Reply:
    """Redirects, with the same method and body, to the same address without the slash at its end."""
    query: bytes = scope["query_string"]
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    location = path.removesuffix(b"/") + (b"?" + query if query else b"")
    return Reply(308, headers=[NO_STORE, (b"location", location)])
