"""The text of a file that a spreadsheet program saved.

Only UTF-8 and UTF-16 can be told apart for certain. Any other file may be in one of many old encodings: it is read in
the one in which its words look most like words, and the merchant is shown that and the other readings.
"""

import re
import unicodedata
from base64 import b64decode, b64encode
from binascii import Error
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from itertools import pairwise
from typing import NamedTuple

from holdfast.kit.contract.messages import Message, message
from holdfast.kit.contract.problems import invalid

ENCODINGS = {
    "cp1252": "Windows-1252",
    "mac_roman": "Mac Roman",
    "cp850": "DOS 850",
    "cp1250": "Windows-1250",
    "cp1251": "Windows-1251",
    "cp1253": "Windows-1253",
    "cp1254": "Windows-1254",
    "gb18030": "GBK, GB 18030",
    "cp932": "Shift-JIS",
    "big5": "Big5",
    "cp949": "EUC-KR",
    "cp1255": "Windows-1255",
    "cp1256": "Windows-1256",
    "iso8859_15": "ISO 8859-15",
    "iso8859_2": "ISO 8859-2",
    "cp437": "DOS 437",
    "cp852": "DOS 852",
    "cp866": "DOS 866",
    "koi8_r": "KOI8-R",
    "mac_latin2": "Mac Central European",
    "mac_cyrillic": "Mac Cyrillic",
}
"""The names of encodings that the file may have, by codec. If several readings look equally good, the first is
taken.
"""

MAX_SAMPLE_BYTES = 1_000
"""The most bytes of a file that are read in every encoding: of its first cells that are not ASCII."""

MAX_PREVIEW_CHARACTERS = 80
"""The most characters of each reading that are shown."""

CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0e-\x1f]")
NOT_ASCII = re.compile(rb'[^\r\n\t,;"]*[\x80-\xff][^\r\n\t,;"]*')
"""A cell that is not ASCII. No encoding has one of these characters as a part of another one."""

PUNCTUATION = "\u00a0€\u201a\u201e\u201c\u201d\u2018\u2019…\u2013—°²³½§«»¡¿©®™£№"
JAPANESE = {"HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"}
FREQUENT = "äöüÄÖÜßàçñşğıİ"


class Reading(NamedTuple):
    """The first cells of a file that are not ASCII, in one encoding.

    codec    the encoding
    name     its name for people
    words    what is read
    """

    codec: str
    name: str
    words: str


class FileText(NamedTuple):
    """The text of a file.

    readings    if its encoding is not known: the reading that was taken, then the other ones
    content     then: the file as Base64, so that a form can send it again
    """

    text: str
    readings: tuple[Reading, ...] = ()
    content: str = ""


def text_of(content: bytes) -> FileText:
    """The text of a file, and how else it could be read. Raises `validation_failed` if it is no text."""
    is_utf16 = content.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    text = _decoded(content, "utf-16" if is_utf16 else "utf-8-sig")
    if text is None and not is_utf16:
        readings = _readings(content)
        for index, reading in enumerate(readings):
            if (text := _decoded(content, reading.codec)) is not None:
                others = readings[:index] + readings[index + 1 :]
                return FileText(text, (reading, *others), b64encode(content).decode())
    if text is None:
        raise _no_text()
    return FileText(text)


def text_in_encoding(content: str, codec: str) -> FileText:
    """The text of a file in the encoding that the merchant has chosen. Raises `validation_failed`.

    content    the file as Base64
    """
    try:
        raw = b64decode(content, validate=True)
    except Error as error:
        raise _no_text() from error
    text = _decoded(raw, codec) if codec in ENCODINGS else None
    if text is None:
        raise _no_text()
    beginning = _sample(raw)
    chosen = _reading(codec, _decoded_beginning(beginning, codec) or "")
    others = [reading for reading in _readings(raw) if reading.words != chosen.words]
    return FileText(text, (chosen, *others), content)


def _readings(content: bytes) -> list[Reading]:
    """The different readings of a file, the likeliest first."""
    sample = _sample(content)
    texts = {codec: text for codec in ENCODINGS if (text := _decoded_beginning(sample, codec))}
    plausible = {codec: text for codec, text in texts.items() if not any(_is_no_character(char) for char in text)}
    likeliest = sorted(plausible or texts, key=lambda codec: _strangeness(texts[codec]))
    first = {texts[codec]: codec for codec in reversed(likeliest)}
    return [_reading(codec, texts[codec]) for codec in likeliest if first[texts[codec]] == codec]


def _reading(codec: str, text: str) -> Reading:
    return Reading(codec, ENCODINGS[codec], text.replace("\n", " · ")[:MAX_PREVIEW_CHARACTERS])


def _sample(content: bytes) -> bytes:
    """The first cells that are not ASCII, each once, on lines of their own."""
    cells: dict[bytes, None] = {}
    size = 0
    for match in NOT_ASCII.finditer(content):
        cell = match[0].strip()
        size += 0 if cell in cells else len(cell)
        cells[cell] = None
        if size > MAX_SAMPLE_BYTES:
            break
    return b"\n".join(cells)[:MAX_SAMPLE_BYTES]


def _decoded(content: bytes, codec: str) -> str | None:
    """A file in an encoding; None if it is none. A workbook or a picture has control characters in every encoding."""
    try:
        text = content.decode(codec)
    except UnicodeDecodeError:
        return None
    return None if CONTROL_CHARACTER.search(text) else text


def _decoded_beginning(content: bytes, codec: str) -> str | None:
    """The beginning of a file in an encoding, without a last character that is cut off; None if it is none."""
    try:
        return getincrementaldecoder(codec)().decode(content)
    except UnicodeDecodeError:
        return None


def _strangeness(text: str) -> float:
    """How unlike words a reading looks."""
    characters = sum(_character_strangeness(character) for character in text if not character.isascii())
    pairs = sum(_pair_strangeness(*pair) for pair in pairwise(text) if not "".join(pair).isascii())
    return characters + pairs


def _character_strangeness(character: str) -> float:
    if character in FREQUENT:
        return -0.3
    if character.isalpha():
        return -0.5 if "\u3040" <= character <= "\u30ff" else 0
    if character in PUNCTUATION or unicodedata.combining(character):
        return 0
    return 9 if _is_no_character(character) else 3


def _is_no_character(char: str) -> bool:
    """Whether no text has this character: a control character, a private one, or one that does not exist."""
    return char != "\n" and unicodedata.category(char) in {"Cc", "Cn", "Co"}


def _pair_strangeness(before: str, after: str) -> float:
    if not (before.isalpha() and after.isalpha()):
        is_inside = before.isalpha() or after.isalpha()
        return 1 if is_inside and not (before + after).isspace() and _is_symbol(before, after) else 0
    scripts = {_script(before), _script(after)}
    if len(scripts) > 1:
        return 3
    is_capital_inside = before.islower() and after.isupper()
    return 2 if is_capital_inside or (scripts == {"LATIN"} and not before.isascii() and not after.isascii()) else 0


def _is_symbol(before: str, after: str) -> bool:
    """Whether one of two characters is neither ASCII nor a letter, a space or the sign of degrees."""
    return any(not (char.isascii() or char.isalpha() or char.isspace() or char == "°") for char in (before, after))


def _script(letter: str) -> str:
    script = unicodedata.name(letter, "?").partition(" ")[0] if not letter.isascii() else "LATIN"
    return "CJK" if script in JAPANESE else script


def _no_text() -> Exception:
    wrong: Message = message("the file cannot be read as text: save the sheet as “CSV UTF-8”, and choose that file")
    return invalid({"text": [wrong]})
