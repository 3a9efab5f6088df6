"""Lists in pages: a cursor stands for the last item seen, so pages neither skip nor repeat items."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, cast

import msgspec
from msgspec import Meta

from holdfast.kit.contract.command import Command, normalized
from holdfast.kit.contract.problems import Problem, invalid

K = TypeVar("K")
T = TypeVar("T")


class CursorPage(Command, kw_only=True):
    """A command that reads one page of a list, after the last item seen."""

    limit: Annotated[int, Meta(ge=1, le=200, description="Page size.")] = 20
    cursor: Annotated[str, Meta(max_length=300, description="next_cursor of the page before.")] = ""

    def after(self, kind: type[K]) -> K | None:
        """The key of the last item seen; None on the first page. Raises `validation_failed`."""
        if not self.cursor:
            return None
        try:
            last_item = normalized(msgspec.json.decode(urlsafe_b64decode(self.cursor.encode("ascii")), type=kind))
        except (ValueError, binascii.Error) as error:
            raise _unknown_cursor() from error
        if not _is_storable(last_item):
            raise _unknown_cursor()
        return last_item


def cursor_page(rows: list[T], command: CursorPage, key: Callable[[T], Any]) -> tuple[list[T], str | None]:
    """The page out of at most `limit + 1` rows, and the cursor of the next page, if there is one.

    key    returns the unique key of an item, in the order of the list
    """
    page = rows[: command.limit]
    more = len(rows) > command.limit
    return page, cursor_after(key(page[-1])) if more else None


def cursor_after(key: object) -> str:
    """The cursor of the items after the one with a key."""
    return urlsafe_b64encode(msgspec.json.encode(key)).decode()


def _is_storable(last_item: object) -> bool:
    match last_item:
        case int():
            return 0 <= last_item < 2**63
        case tuple():
            return all(map(_is_storable, cast(tuple[object, ...], last_item)))
        case _:
            return True


def _unknown_cursor() -> Problem:
    return invalid({"cursor": ["is not one of ours: send the next_cursor of the page before, or leave it out"]})
