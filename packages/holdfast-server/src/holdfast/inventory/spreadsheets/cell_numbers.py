"""Whole numbers in cells. A number is read if it is written with digits only, and a minus sign before them.

Other spellings mean different numbers in different countries: `1.000` is a thousand in German, and one in English. They
are refused with the numbers that they can mean.
"""

import re
import unicodedata

from holdfast.kit.contract.messages import Message, message, translatable

PLAIN = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
SHORTENED = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)?[eE][+-]?[0-9]+")
"""What programs write for a long number that does not fit its column, with fewer digits than it has."""

SPACES_AND_QUOTES = re.compile("(?<=[0-9])[ \u00a0\u2009\u202f'\u2019](?=[0-9]{3}(?![0-9]))")
"""Separators of thousands that are no decimal signs anywhere."""

GROUPS = re.compile(r"([+-]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+)(?:,0+)?|([+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+)(?:\.0+)?")
"""A number with separators of thousands, and maybe with decimal places that are zero."""

DECIMALS = re.compile(r"([+-]?[0-9]+)[.,]([0-9]+)")
DIGITS = re.compile(r"[+-]?[0-9]+")
MAX_DIGITS = 40
"""The most characters of a cell whose number is named in a refusal."""


def whole_number(cell: str) -> int | str:
    """The number of a cell; the cell itself if it is no number at all.

    Raises ValueError with a message that names what the cell can mean, if that is not certain.
    """
    if PLAIN.fullmatch(cell):
        return int(cell)
    if refusal := _refusal(cell):
        raise ValueError(refusal)
    return cell


def _refusal(cell: str) -> Message | None:
    text = _ascii(cell)
    if len(text) > MAX_DIGITS:
        return None
    if SHORTENED.fullmatch(text):
        return message(
            "%(given)s was shortened, and digits may be lost: show the column as numbers without decimal places, "
            "and save it again",
            given=cell,
        )
    grouped = _grouped(text)
    if decimal := DECIMALS.fullmatch(text):
        integer, has_fraction = int(decimal[1]), bool(decimal[2].strip("0"))
        if grouped is not None:
            return _two_readings(cell, grouped, integer, has_fraction=has_fraction)
        return None if has_fraction else _only_reading(cell, integer)
    if grouped is not None:
        return _only_reading(cell, grouped)
    return _only_reading(cell, int(text)) if DIGITS.fullmatch(text) else None


def _ascii(cell: str) -> str:
    """The cell with digits and signs of ASCII, and without separators that cannot be decimal signs."""
    spaced = SPACES_AND_QUOTES.sub("", cell)
    return unicodedata.normalize("NFKC", spaced).replace("\N{MINUS SIGN}", "-")


def _grouped(text: str) -> int | None:
    """The number of a text with separators of thousands; None if it has none, or others."""
    groups = GROUPS.fullmatch(text)
    return int(re.sub("[.,]", "", groups[1] or groups[2])) if groups else None


def _two_readings(cell: str, grouped: int, integer: int, *, has_fraction: bool) -> Message:
    """The message about a cell with one separator, which may be of thousands or of decimal places."""
    text = translatable("%(given)s can mean %(one)s or %(other)s: write the number without separators")
    if has_fraction:
        text = translatable(
            "%(given)s can mean %(one)s, or %(other)s and a fraction: write the number without separators"
        )
    return message(text, given=cell, one=f"{grouped}", other=f"{integer}")


def _only_reading(cell: str, number: int) -> Message:
    return message("write %(number)s, not %(given)s", number=f"{number}", given=cell)
