"""For how long documents and keys of clients are cached, by the headers that they come with."""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime

MAX_CACHE_SECONDS = 86_400
"""The maximum time for which a document is cached."""

DEFAULT_CACHE_SECONDS = 300
"""Seconds for which a document is cached if its headers do not say how long."""


def cache_seconds(headers: Mapping[str, str]) -> int:
    """For how many seconds an answer with these headers may be cached (RFC 9111)."""
    directives: dict[str, str] = {}
    for directive in headers.get("cache-control", "").lower().split(","):
        name, _, value = directive.strip().partition("=")
        directives[name] = value.strip('"')
    if directives.keys() & {"no-store", "no-cache"}:
        return 0
    if "max-age" in directives:
        lasts = _seconds(directives["max-age"]) - _seconds(headers.get("age", "0"))
    elif "expires" in headers:
        lasts = _seconds_between(headers.get("date", ""), headers["expires"])
    else:
        lasts = DEFAULT_CACHE_SECONDS
    return min(max(lasts, 0), MAX_CACHE_SECONDS)


def _seconds(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0


def _seconds_between(since: str, until: str) -> int:
    try:
        return int((parsedate_to_datetime(until) - parsedate_to_datetime(since)).total_seconds())
    except (ValueError, TypeError):
        return 0
