"""Long lists, a page at a time: a cursor stands for the last item seen, so pages neither skip nor repeat."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Annotated, TypeVar

from msgspec import Meta

from holdfast.kit.command import Command
from holdfast.kit.problems import Problem, invalid

T = TypeVar("T")


class Listed(Command, kw_only=True):
    """A command that reads a list page by page."""

    limit: Annotated[int, Meta(ge=1, le=200, description="Items on the page.")] = 50
    cursor: Annotated[
        str, Meta(max_length=100, description="`next_cursor` of the page before; none for the first.")
    ] = ""

    @property
    def after(self) -> int | None:
        """The id of the last item seen; None on the first page. Raises `validation_failed`."""
        if not self.cursor:
            return None
        try:
            id = int(urlsafe_b64decode(self.cursor.encode("ascii")))
        except (ValueError, binascii.Error) as error:
            raise _not_ours() from error
        if not 0 <= id < 2**63:
            raise _not_ours()
        return id


def _not_ours() -> Problem:
    return invalid({"cursor": ["is not one of ours: send the next_cursor of the page before, or leave it out"]})


def paged(rows: list[T], command: Listed, id: Callable[[T], int]) -> tuple[list[T], str | None]:
    """The page out of `limit + 1` rows, and the cursor of the next one, if there is one."""
    page = rows[: command.limit]
    more = len(rows) > command.limit
    return page, urlsafe_b64encode(str(id(page[-1])).encode()).decode() if more else None
