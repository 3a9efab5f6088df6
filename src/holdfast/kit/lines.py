"""What commands print for scripts: a line for each row, with tabs between the fields."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


def line(*fields: object) -> str:
    """A line with tabs between the fields, so that no field contains one. None is `-`."""
    return "\t".join("-" if each is None else visible(" ".join(str(each).split())) for each in fields)


def visible(text: str) -> str:
    """A text that a stranger may have written. What would act on the terminal is shown as `\\x1b`."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def moment(at: "datetime") -> str:
    """A time of the database, as ISO 8601 in UTC with whole seconds."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
