"""Web addresses in texts that strangers write."""

from importlib.resources import files
from typing import Any, cast

from linkify_it import LinkifyIt  # pyright: ignore[reportMissingTypeStubs]

_DOTS = str.maketrans("\u3002\uff0e\uff61", "...")
"""Browsers read these characters as dots in a host name."""


def _endings() -> list[str]:
    """The top-level domains of the public suffix list, such as `com` and `app`."""
    text = files("publicsuffixlist").joinpath("public_suffix_list.dat").read_text(encoding="utf-8")
    rules = [line.removeprefix("*.") for line in text.splitlines() if line and not line.startswith(("//", "!"))]
    return [rule for rule in rules if "." not in rule]


_LINKS: Any = LinkifyIt({}, {"fuzzy_ip": True}).tlds(_endings())  # pyright: ignore[reportUnknownMemberType] - not annotated
for _alias in ("hxxp:", "hxxps:"):
    _LINKS.add(_alias, "http:")  # a common way to write an address that is not a link


def has_link(text: str) -> bool:
    """Whether a mail program would show a part of the text as a link. Mails contain names, and
    strangers choose both the name and the recipient."""
    return _LINKS.test(text.translate(_DOTS))


def replace_links(text: str, replacement: str) -> str:
    """The text in which `replacement` replaces each part that a mail program would show as a link."""
    parts: list[str] = []
    end = 0
    for link in cast("list[Any]", _LINKS.match(text.translate(_DOTS)) or []):
        parts += [text[end : link.index], replacement]
        end = link.last_index
    return "".join([*parts, text[end:]])
