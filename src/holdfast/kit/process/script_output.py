"""The output of commands for scripts: one line for each row, with tabs between the fields."""

from datetime import UTC, datetime


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
