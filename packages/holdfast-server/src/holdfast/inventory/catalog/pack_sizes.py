"""Reads pack sizes from titles: "6-pack", "Pack of 12", "12 Stück", "2x", "x3", "Single", "Dozen"."""

import re
from typing import NamedTuple

MAX_SIZE = 1_000
"""The largest pack that a title is believed to name. A larger number is something else, such as a year."""

_NUMBER = r"(?P<size>[0-9]{1,4})"
_PACK = r"(?:pack(?:s|age|ung)?|set|box(?:es)?|case|carton|karton|kiste|bundle|tray|palette)"
_PIECES = r"(?:pcs?\b\.?|pieces?|st(?:ü|ue)ck|stk\b\.?|ct\b\.?|count|units?|einheiten)"

_SIZES = (
    re.compile(rf"\b{_PACK}\s*(?:of|with|mit|von|à|a)?\s*{_NUMBER}\b(?!\s*[,.x][0-9])"),
    re.compile(rf"(?<![0-9.,])\b{_NUMBER}\s*-?\s*(?:er)?\s*-?\s*(?:{_PACK}|{_PIECES})(?!\w)"),
    re.compile(rf"(?<![0-9.,])\b{_NUMBER}er\b"),
    # 6 x 250 ml is a pack of six, 10 x 15 cm is not.
    re.compile(rf"(?<![0-9.,x])\b{_NUMBER}\s?x(?=\s*(?:[0-9.,]+\s?(?:k?g|m?l|cl|oz|lb)\b|[^\W0-9]{{3}}|$|[^\w\s]))"),
    re.compile(rf"(?<!\w)(?<![0-9]\s)x\s?{_NUMBER}\b"),
)
"""The ways to write a size with digits."""

_WORDS = (
    (re.compile(r"\bhalf[ -]dozen\b|\bhalbes dutzend\b"), 6),
    (re.compile(r"\b(?:dozen|dutzend)\b"), 12),
    (re.compile(r"\b(?:twin|duo|double|doppel|zweier)[ -]?pack\b"), 2),
    (re.compile(r"\b(?:trio|triple|dreier)[ -]?pack\b"), 3),
    (re.compile(r"\b(?:single|singles|einzeln|einzelst(?:ü|ue)ck|einzelpackung|individual)\b"), 1),
)
"""The sizes that have words."""

_EDGES = " \t-\N{EN DASH}\N{EM DASH}/|\N{MIDDLE DOT},;:()[]"


class PackTitle(NamedTuple):
    """A title without the pack size in it, and that size; None if it names none."""

    rest: str
    size: int | None


def read_pack_size(title: str) -> PackTitle:
    """Return the pack size in a title, such as 6 for "Honey jars, 6-pack", and the title without it ("Honey jars")."""
    text = title.lower().replace("\N{MULTIPLICATION SIGN}", "x")
    if len(text) != len(title):  # a letter whose small form is longer: places in both would differ
        return PackTitle(title, None)
    for pattern in _SIZES:
        if (match := pattern.search(text)) and 1 <= (size := int(match["size"])) <= MAX_SIZE:
            return PackTitle(_without(title, match), size)
    for pattern, size in _WORDS:
        if match := pattern.search(text):
            return PackTitle(_without(title, match), size)
    return PackTitle(title.strip(_EDGES), None)


def _without(title: str, match: re.Match[str]) -> str:
    """Return a title without a part of it, and without the signs that joined the part to the rest."""
    parts = (title[: match.start()].rstrip(_EDGES), title[match.end() :].lstrip(_EDGES))
    return " ".join(part for part in parts if part).strip(_EDGES)
