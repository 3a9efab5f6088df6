"""Headers of mails: texts, names with addresses, and names of files, encoded as RFC 2047 and RFC 2231 have it.

The standard library encodes words apart from each other. Decoders drop the spaces between encoded words, so spaces of
the text were lost, differently in each version of Python. Here a text is encoded whole, with its spaces inside.

This module imports nothing but the standard library, so that tests can run it in other versions of Python.
"""

import re
from base64 import b64encode
from collections.abc import Iterator
from urllib.parse import quote

MAX_WORD_LENGTH = 75
"""The most characters of an encoded word (RFC 2047, section 2)."""

MAX_LINE_LENGTH = 76
"""The most characters of a line with an encoded word (RFC 2047, section 2). Other lines have as many where they can."""

MAX_UNFOLDED_LENGTH = 900
"""The most characters of a word that is not encoded. A line may have 998 (RFC 5322, section 2.1.1)."""

_PREFIX, _SUFFIX = "=?utf-8?b?", "?="
_MAX_WORD_BYTES = (MAX_WORD_LENGTH - len(_PREFIX) - len(_SUFFIX)) // 4 * 3

_ATOMS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?: [A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
"""A name that needs no quotation marks (`phrase` of RFC 5322)."""

_ATTRIBUTE_CHARACTERS = "!#$&+-.^_`|~"
"""What stands for itself in a parameter, beside letters and digits (`attr-char` of RFC 8187, within RFC 2231)."""


def text(name: str, value: str) -> str:
    """The value of a header with any text, such as a subject. `name`: the name of the header, for the first line."""
    first = MAX_LINE_LENGTH - len(name) - 2
    if not _is_plain(value):
        return "\r\n ".join(_encoded_words(value, first))
    return _folded(value, first)


def mailbox(name: str, display_name: str, address: str) -> str:
    """The value of a header with one address, which is ASCII, and the name of its owner, which may be empty."""
    if not display_name:
        return address if len(name) + 2 + len(address) <= MAX_LINE_LENGTH else f"\r\n {address}"
    first = MAX_LINE_LENGTH - len(name) - 2
    if not _is_plain(display_name):
        return "\r\n ".join([*_encoded_words(display_name, first), f"<{address}>"])
    if not _ATOMS.fullmatch(display_name):
        display_name = '"' + re.sub(r'(["\\])', r"\\\1", display_name) + '"'
    return _folded(f"{display_name} <{address}>", first)


def disposition(kind: str, filename: str) -> str:
    """The value of Content-Disposition. `kind`: `attachment` or `inline`."""
    if filename.isascii() and filename.isprintable() and len(filename) < MAX_LINE_LENGTH - 16:
        quoted = re.sub(r'(["\\])', r"\\\1", filename)
        return f'{kind};\r\n filename="{quoted}"'
    parameter = f" filename*=utf-8''{quote(filename, safe=_ATTRIBUTE_CHARACTERS)}"
    if len(parameter) <= MAX_LINE_LENGTH:
        return f"{kind};\r\n{parameter}"
    parts = [
        f" filename*{number}*={part}"
        for number, part in enumerate(_percent_encoded(filename, MAX_LINE_LENGTH - len(" filename*100*=;")))
    ]
    return f"{kind};\r\n" + ";\r\n".join(parts)


def _is_plain(value: str) -> bool:
    """Whether a text can stand in a header as it is: no decoder changes it."""
    return (
        value.isascii()
        and value.isprintable()
        and "=?" not in value
        and "  " not in value
        and value == value.strip()
        and all(len(word) <= MAX_UNFOLDED_LENGTH for word in value.split(" "))
    )


def _folded(value: str, first: int) -> str:
    """A plain text, broken at spaces into lines. `first`: the room in the first line."""
    lines, room = [""], first
    for word in value.split(" "):
        separator = " " if lines[-1] else ""
        if lines[-1] and len(lines[-1]) + 1 + len(word) > room:
            lines.append(word)
            room = MAX_LINE_LENGTH - 1
        else:
            lines[-1] += separator + word
    return "\r\n ".join(lines)


def _encoded_words(value: str, first: int) -> Iterator[str]:
    """A text as encoded words, a line each. Decoders join them without the line ends between them."""
    room = min(_MAX_WORD_BYTES, (first - len(_PREFIX) - len(_SUFFIX)) // 4 * 3)
    word = b""
    for character in value:
        encoded = character.encode()
        if len(word) + len(encoded) > room:
            yield f"{_PREFIX}{b64encode(word).decode()}{_SUFFIX}"
            word, room = b"", (MAX_LINE_LENGTH - 1 - len(_PREFIX) - len(_SUFFIX)) // 4 * 3
        word += encoded
    yield f"{_PREFIX}{b64encode(word).decode()}{_SUFFIX}"


def _percent_encoded(filename: str, room: int) -> Iterator[str]:
    """The parts of a long name of a file. No character is divided."""
    part = "utf-8''"
    for character in filename:
        encoded = quote(character, safe=_ATTRIBUTE_CHARACTERS)
        if len(part) + len(encoded) > room:
            yield part
            part = ""
        part += encoded
    yield part
