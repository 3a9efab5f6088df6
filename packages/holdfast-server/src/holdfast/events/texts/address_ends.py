"""Where a web address in a text ends: behind it stand closing quotes, punctuation, or the next sentence.

The library finds ends for ASCII alone. Other scripts write without spaces, and have marks of their own.
"""

import re
import unicodedata
from html import unescape
from typing import NamedTuple

_INNER_MARKS = "\u2019\u00b7\u30fb\u05f3\u05f4"
"""Marks that stand inside words, such as the apostrophe, and the dot of Japanese names. They only end an address if
nothing follows them."""

_JOINERS = "\u200c\u200d"
"""They change the shape of letters, as in Persian, so addresses have them between letters."""

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


def bare_address(written: str) -> BareAddress:
    """The address at the beginning of what was found as one. Its address is empty if nothing is left of it."""
    end = len(written)
    for position, character in enumerate(written):
        if _ends_address(character) or written.startswith("**", position):
            end = position
            break
    for entity in _LAST_ENTITY.finditer(written, 0, end):
        character = unescape(entity[0])
        if character == "'" or any(map(_ends_address, character)):
            end = entity.start()
            break
    host = _SCHEME_AND_HOST.match(written, 0, end)
    if host and (label := _LABEL_AND_WORDS.search(host[0])):
        end = label.end()
    while end and (written[end - 1] in _TRAILING or written[end - 1] in _REMOVED_MARKS or _is_unopened(written, end)):
        end -= 1
    address = _ESCAPE.sub(r"\1", _unescape_entities(written[:end]))
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


def _is_unopened(written: str, end: int) -> bool:
    """Whether the last character closes a bracket that the address has not opened."""
    closing = written[end - 1]
    opening = {")": "(", "]": "[", "}": "{"}.get(closing)
    return opening is not None and written.count(closing, 0, end) > written.count(opening, 0, end)


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
