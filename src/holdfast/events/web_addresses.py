"""Web addresses in texts that strangers write."""

from importlib.resources import files
from typing import Any, cast

from linkify_it import LinkifyIt  # pyright: ignore[reportMissingTypeStubs]

_DOTS = str.maketrans("\u3002\uff0e\uff61", "...")
"""Browsers read these characters as dots in a host name."""

_DOT_CHARACTERS = frozenset(".\u3002\uff0e\uff61")


def _endings() -> list[str]:
    """The top-level domains of the public suffix list, such as `com` and `app`."""
    text = files("publicsuffixlist").joinpath("public_suffix_list.dat").read_text(encoding="utf-8")
    rules = [line.removeprefix("*.") for line in text.splitlines() if line and not line.startswith(("//", "!"))]
    return [rule for rule in rules if "." not in rule]


LINKS: Any = LinkifyIt({}, {"fuzzy_ip": True}).tlds(_endings())  # pyright: ignore[reportUnknownMemberType] - not annotated
for _alias in ("hxxp:", "hxxps:"):
    LINKS.add(_alias, "http:")  # a common way to write an address that is not a link


LINK_BREAK = "\u200c"
"""An invisible character that no host name has there: behind a dot it keeps mail programs from making a link."""


def has_link(text: str) -> bool:
    """Whether a person would take a part of the text for an address.

    Mails contain names, and strangers choose both the name and the recipient.
    """
    return any(not _is_doubtful(link) for link in _find(text))


def replace_links(text: str, replacement: str) -> str:
    """The text without any link that a mail program would show.

    `replacement` stands in the place of each address. What only looks like one, such as "ASP.NET", stays, and its link
    is broken.
    """
    parts: list[str] = []
    end = 0
    for link in _find(text):
        raw = text[link.index : link.last_index]
        parts += [text[end : link.index], _broken(raw) if _is_doubtful(link) else replacement]
        end = link.last_index
    return "".join([*parts, text[end:]])


def _find(text: str) -> list[Any]:
    """What a mail program would show as links."""
    return cast("list[Any]", LINKS.match(text.translate(_DOTS)) or [])


def _is_doubtful(link: Any) -> bool:
    """Whether a host alone may be a title or an abbreviation: `M.Sc`, `Dr.med` and `ASP.NET` have capitals."""
    raw: str = link.raw
    is_host_alone = not link.schema and "/" not in raw and "?" not in raw and ":" not in raw and "#" not in raw
    return is_host_alone and raw != raw.lower() and not raw.lower().startswith("www.")


def _broken(host: str) -> str:
    return "".join(f"{character}{LINK_BREAK}" if character in _DOT_CHARACTERS else character for character in host)
