"""The output of commands: for scripts a line a row, for terminals lines that fit, and the progress of long work."""

import contextlib
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Generator, Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

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


def names_text(names: Sequence[str], limit: int = 3) -> str:
    """Some names, and how many more there are."""
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more" if more > 0 else "")


def iso_time(at: datetime) -> str:
    """A time of the database, in whatever time zone its session has, as ISO 8601 in UTC with whole seconds."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def sentences(text: str) -> str:
    """A text whose last sentence ends with one mark. Parts of it may be messages of other programs."""
    text = re.sub(r"(?<!\.)([.!?])\.(?=\s|$)", r"\1", text.rstrip())
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


TERMINAL_SECONDS = 0.2
"""Seconds between two updates of the line on a terminal."""

LOG_SECONDS = 10
"""Seconds between two lines elsewhere, such as in a log."""

UNITS = ("bytes", "kB", "MB", "GB", "TB")

Count = Callable[[int], None]
"""Tells how many more bytes are done."""


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class Progress:
    """Writes lines about the work that goes on."""

    def __init__(self) -> None:
        self.is_terminal = sys.stderr.isatty()

    def line(self, text: str) -> None:
        """Write a line."""
        sys.stderr.write(f"{fitted(text, err=True)}\n")
        sys.stderr.flush()

    def show(self, text: str) -> None:
        """Show on a terminal how far it is, until the next text or line replaces it. Empty: show nothing any more."""
        if self.is_terminal:
            sys.stderr.write(f"{text}\x1b[K\r")
            sys.stderr.flush()

    @contextlib.contextmanager
    def phase(self, title: str, total_bytes: int = 0) -> Generator[Count]:
        """A part of the work: its bytes are counted, and a line says at the end what it took.

        total_bytes    0 if it is not known
        """
        started_at = printed_at = time.monotonic()
        size = 0

        def count(more: int) -> None:
            nonlocal size, printed_at
            size += more
            now = time.monotonic()
            if now - printed_at > (TERMINAL_SECONDS if self.is_terminal else LOG_SECONDS):
                printed_at = now
                (self.show if self.is_terminal else self.line)(
                    _progress_text(title, size, total_bytes, now - started_at)
                )

        yield count
        end = "\x1b[K" if self.is_terminal else ""
        self.line(f"{_progress_text(title, size, 0, time.monotonic() - started_at)}{end}")


def size_text(size: float) -> str:
    """A size in words, such as `12.3 MB`."""
    unit = 0
    while size >= 1000 and unit < len(UNITS) - 1:
        size /= 1000
        unit += 1
    return f"{size:.1f} {UNITS[unit]}" if unit else f"{size:.0f} {UNITS[0]}"


def _progress_text(title: str, size: int, total_bytes: int, seconds: float) -> str:
    of_total = f" of {size_text(total_bytes)}" if total_bytes else ""
    rate = f", {size_text(size / seconds)}/s" if seconds >= 1 else ""
    return f"{title}: {size_text(size)}{of_total}{rate}"


def print_json(value: object) -> None:
    """Print a value as JSON, indented."""
    import json

    typer.echo(json.dumps(value, indent=2, default=str))
