"""Web addresses in texts that strangers write, and where each ends.

Mail programs differ in what they show as a link. So an address is found whatever stands beside it, and however its
letters are written: the library that finds links wants a space or a bracket before a host, and letters of ASCII.

The library finds ends for ASCII alone. Other scripts write without spaces, and have marks of their own.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from html import unescape
from importlib.resources import files
from typing import Any, NamedTuple, cast

from linkify_it import LinkifyIt  # pyright: ignore[reportMissingTypeStubs]


@cache
def _endings() -> frozenset[str]:
    """The top-level domains of the public suffix list, such as `com` and `app`."""
    text = files("publicsuffixlist").joinpath("public_suffix_list.dat").read_text(encoding="utf-8")
    rules = [line.removeprefix("*.") for line in text.splitlines() if line and not line.startswith(("//", "!"))]
    return frozenset(rule for rule in rules if "." not in rule)


@cache
def link_finder() -> Any:
    """The library's finder of links. It takes 2 MB, so a process makes it for the first text that it reads."""
    finder: Any = LinkifyIt({}, {"fuzzy_ip": True})
    finder.tlds([*_endings()])
    for alias in ("hxxp:", "hxxps:"):
        finder.add(alias, "http:")  # a common way to write an address that is not a link
    return finder


LINK_BREAK = "\u200c"
"""An invisible character that no host name has there: behind a dot it keeps mail programs from making a link."""

_DOTS = str.maketrans("\u3002\uff0e\uff61", "...")
"""Browsers read these characters as dots in a host name."""

_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""Characters that are not shown, beside those of the category Cf."""

_LABEL = r"[^\W_](?:(?:[^\W_]|-){0,61}[^\W_])?"
_HOSTS = tuple(re.compile(rf"(?<![^\W_]){_LABEL}(?:\.{_LABEL})+", flags) for flags in (re.UNICODE, re.ASCII))
"""What has the form of a host name, and may have one before it. In the second one letters of other scripts end it."""

_WITH_SCHEME = re.compile(r"(?:[a-z][a-z0-9+.-]*:[/\\]+|(?:https?|ftp|hxxps?):)(?=\S*[^\W_])\S+", re.IGNORECASE)
_PATH = re.compile(r"(?::\d+)?(?:[/\\?#]\S*)?")
_SIGNS_AT_END = ".,;:!?)]}'\"\u201c\u201d\u00bb\u2026"


class _Part(NamedTuple):
    """A part of a text that a mail program may show as a link. `is_host`: it is a host alone."""

    start: int
    end: int
    is_host: bool


class _Link(NamedTuple):
    """A part of a text. `is_doubtful`: it may be no address."""

    start: int
    end: int
    is_doubtful: bool


def has_link(text: str) -> bool:
    """Whether a person would take a part of the text for an address.

    Mails contain names, and strangers choose both the name and the recipient.
    """
    return any(not link.is_doubtful for link in _find(text))


def replace_links(text: str, replacement: str) -> str:
    """The text without any link that a mail program would show.

    `replacement` stands in the place of each address. What only looks like one, such as "ASP.NET", stays, and its link
    is broken.
    """
    parts: list[str] = []
    end = 0
    for link in _find(text):
        raw = text[link.start : link.end]
        parts += [text[end : link.start], _broken(raw) if link.is_doubtful else replacement]
        end = link.end
    return "".join([*parts, text[end:]])


def _find(text: str) -> list[_Link]:
    """What a mail program may show as links, in order. None overlaps another."""
    links: list[_Link] = []
    for part in sorted(_find_in_readings(text)):
        link = _Link(part.start, part.end, part.is_host and _is_doubtful(text[part.start : part.end]))
        if links and link.start < links[-1].end:
            last = links.pop()
            link = _Link(last.start, max(link.end, last.end), link.is_doubtful and last.is_doubtful)
        links.append(link)
    return links


def _find_in_readings(text: str) -> Iterator[_Part]:
    """The parts of a text, also overlapping ones: programs may leave out invisible characters, or end there."""
    plain = "".join(_plain(character) for character in text)
    if not {".", ":"} & {*plain}:
        return
    yield from _find_in(plain)
    indexes = [index for index, character in enumerate(text) if not _is_invisible(character)]
    if len(indexes) < len(text):
        for start, end, is_host in _find_in("".join(plain[index] for index in indexes)):
            yield _Part(indexes[start], indexes[end - 1] + 1, is_host)


def _find_in(text: str) -> Iterator[_Part]:
    for link in cast("Sequence[Any]", link_finder().match(text) or ()):
        yield _Part(link.index, link.last_index, not link.schema and not {*"/?:#"} & {*link.raw})
    for match in _WITH_SCHEME.finditer(text):
        yield _Part(match.start(), match.start() + len(match[0].rstrip(_SIGNS_AT_END)), is_host=False)
    for hosts in _HOSTS:
        for match in hosts.finditer(text):
            if _has_ending(match[0], text[match.end() : match.end() + 1]):
                path = _PATH.match(text, match.end())
                more = path[0].rstrip(_SIGNS_AT_END) if path else ""
                yield _Part(_word_start(text, match.start()), match.end() + len(more), is_host=not more)


def _word_start(text: str, index: int) -> int:
    """Where the word begins that has a character of the text, with dots, dashes and underscores in it."""
    while index and (text[index - 1].isalnum() or text[index - 1] in "._-"):
        index -= 1
    return index


def _has_ending(host: str, following: str) -> bool:
    """Whether a host has a top-level domain. `following`: the character after it, which may go on with the word."""
    ending = host.rpartition(".")[2].lower()
    if ending not in _endings() and not ending.startswith("xn--"):
        return False
    return not (following.isalpha() and "LATIN" in unicodedata.name(following, ""))


def _is_doubtful(host: str) -> bool:
    """Whether a host alone may be a title or an abbreviation: `M.Sc`, `Dr.med` and `ASP.NET` have capitals."""
    return host != host.lower() and not host.lower().startswith("www.")


def _plain(character: str) -> str:
    """The character as browsers read it in an address, such as the full-width letters of ASCII."""
    plain = unicodedata.normalize("NFKC", character)
    return (plain if len(plain) == 1 else character).translate(_DOTS)


def _is_invisible(character: str) -> bool:
    if character == LINK_BREAK:
        return False
    return unicodedata.category(character) == "Cf" or bool(_INVISIBLE.match(character))


def _broken(host: str) -> str:
    return "".join(f"{character}{LINK_BREAK}" if _plain(character) == "." else character for character in host)


_INNER_MARKS = "\u2019\u00b7\u30fb\u05f3\u05f4"
"""Marks that stand inside words, such as the apostrophe, and the dot of Japanese names. They only end an address if
nothing follows them."""

_JOINERS = "\u200c\u200d"
"""Characters that change the shape of letters, as in Persian, so addresses have them between letters."""

_REMOVED_MARKS = "\u00ad\u2060\ufeff"
"""Invisible marks inside a word, which programs add where a line may or may not break. No address has them."""

_NAME_OF_ENTITY = r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31})"
_ENTITY = re.compile(f"{_NAME_OF_ENTITY};")
_LAST_ENTITY = re.compile(f"{_NAME_OF_ENTITY}(?:;|$)")
"""The library leaves out a semicolon at the end."""

_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_SCHEME_AND_HOST = re.compile(r"[a-z]+://[^/?#]*", re.IGNORECASE)
_LABEL_AND_WORDS = re.compile(r"\.[a-z]{2,}(?=[^\x00-\u024f])", re.IGNORECASE)
"""The last label of a host, such as `.com`, and a letter of another script behind it. No top-level domain has both."""

_TRAILING = ".,;:!?'\"*~|([{" + _INNER_MARKS + _JOINERS + "\u2013\u2014"


class BareAddress(NamedTuple):
    """An address that stands in a text without brackets.

    length     the characters of the text that it takes
    address    as it is shown, and as it is opened
    """

    length: int
    address: str


def bare_address(text: str) -> BareAddress:
    """The address at the beginning of what was found as one. Its address is empty if nothing is left of it."""
    end = len(text)
    for position, character in enumerate(text):
        if _ends_address(character) or text.startswith("**", position):
            end = position
            break
    for entity in _LAST_ENTITY.finditer(text, 0, end):
        character = unescape(entity[0])
        if character == "'" or any(map(_ends_address, character)):
            end = entity.start()
            break
    host = _SCHEME_AND_HOST.match(text, 0, end)
    if host and (label := _LABEL_AND_WORDS.search(host[0])):
        end = label.end()
    while end and (text[end - 1] in _TRAILING or text[end - 1] in _REMOVED_MARKS or _is_unopened(text, end)):
        end -= 1
    address = _ESCAPE.sub(r"\1", _unescape_entities(text[:end]))
    for mark in _REMOVED_MARKS:
        address = address.replace(mark, "")
    return BareAddress(end, "" if address.endswith("://") else address)


def without_ends(text: str) -> str:
    """The text with a space for each character of another script that ends an address. The library knows only ASCII."""
    if text.isascii():
        return text
    return "".join(" " if not character.isascii() and _ends_address(character) else character for character in text)


def _unescape_entities(text: str) -> str:
    """The text with the characters that entities such as `&amp;` stand for. Parameters such as `&copy=1` are none."""
    return _ENTITY.sub(lambda entity: unescape(entity[0]), text)


def _is_unopened(text: str, end: int) -> bool:
    """Whether the last character closes a bracket that the address has not opened."""
    closing = text[end - 1]
    opening = {")": "(", "]": "[", "}": "{"}.get(closing)
    return opening is not None and text.count(closing, 0, end) > text.count(opening, 0, end)


def _ends_address(character: str) -> bool:
    """Whether no address has a character inside."""
    if character in '<>"`':
        return True
    if character.isascii():
        return character.isspace() or not character.isprintable()
    if character in _INNER_MARKS or character in _JOINERS or character in _REMOVED_MARKS:
        return False
    category = unicodedata.category(character)
    # Spaces, controls and marks of direction; brackets and quotes; marks of sentences.
    return category[0] in "ZC" or category in {"Ps", "Pe", "Pi", "Pf", "Po"}
