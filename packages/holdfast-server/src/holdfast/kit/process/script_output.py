"""The output of commands: for scripts a line a row, with tabs between the fields; for terminals, lines that fit."""

import re
import shutil
import sys
import textwrap
from datetime import UTC, datetime

MIN_COLUMNS, MAX_COLUMNS = 60, 100


def columns() -> int:
    """The width of the text: that of the terminal, within bounds."""
    return max(MIN_COLUMNS, min(MAX_COLUMNS, shutil.get_terminal_size().columns))


def fitted(text: str, *, err: bool = False, indent: str = "") -> str:
    """A text in lines that fit the terminal. In a file or a pipe it keeps its lines.

    err       whether it is for standard error
    indent    what the second and later lines of a paragraph begin with
    """
    if not (sys.stderr if err else sys.stdout).isatty():
        return text
    return "\n".join(
        textwrap.fill(
            line,
            columns(),
            subsequent_indent=indent,
            replace_whitespace=False,
            drop_whitespace=True,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in text.split("\n")
    )


def tab_line(*fields: object) -> str:
    """A line with tabs between the fields, so that no field contains one. None is `-`."""
    return "\t".join("-" if field is None else printable(" ".join(str(field).split())) for field in fields)


def printable(text: str) -> str:
    """A text from an unknown author, with control characters of the terminal escaped, such as `\\x1b`."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def iso_time(at: datetime) -> str:
    """A time of the database, in whatever time zone its session has, as ISO 8601 in UTC with whole seconds."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def sentences(text: str) -> str:
    """A text whose last sentence ends with one mark. Parts of it may be messages of other programs."""
    text = re.sub(r"(?<!\.)([.!?])\.(?=\s|$)", r"\1", text.rstrip())
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
