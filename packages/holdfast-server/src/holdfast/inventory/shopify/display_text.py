"""Texts of the platform that are only shown to people. Whatever they are, nothing is refused because of them."""

import re
from typing import Any

MAX_CHARACTERS = 300
"""The most characters of a text that are kept."""

_UNSTORABLE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")

_ESCAPE = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.", re.DOTALL)
"""An escape of JSON; the two halves of one character are one."""


def storable_json(content: bytes) -> bytes:
    r"""Return JSON whose strings can be stored: `\u0000` and halves of characters become U+FFFD."""
    return _ESCAPE.sub(_storable_escape, content) if _UNSTORABLE.search(content) else content


def _storable_escape(escape: re.Match[bytes]) -> bytes:
    text = escape[0]
    return b"\\ufffd" if len(text) == 6 and _UNSTORABLE.match(text) else text


def display_text(value: Any) -> str:
    """A decoded value as a text of at most `MAX_CHARACTERS` characters; "" for null, a list or an object."""
    match value:
        case str():
            return value[:MAX_CHARACTERS]
        case bool() | int() | float():
            return str(value)[:MAX_CHARACTERS]
        case _:
            return ""
