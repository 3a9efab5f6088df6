"""The order of the list of registrations by one of its columns.

The list is read in order of arrival. For another order all of it is read and sorted here, up to a number.
"""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from holdfast.events.registrations.search import RegistrationView

MAX_SORTED = 2_000
"""The most registrations that are sorted by a column other than the time of their arrival."""

_STATUSES = ("registered", "held", "waitlisted", "pending", "in_draw", "rejected")
_NEVER = dt.datetime.max.replace(tzinfo=dt.UTC)

KEYS: Mapping[str, Callable[[RegistrationView], Any]] = {
    "address": lambda row: (row.email is None, row.email),
    "name": lambda row: (row.name is None, (row.name or "").casefold()),
    "state": lambda row: (_STATUSES.index(row.status), row.place),
    "paid": lambda row: (row.paid_by_card or 0) if row.amount_due is not None else row.amount_paid,
    "in": lambda row: row.entered_at or _NEVER,
    "received": lambda row: row.received_at,
}
"""The columns, with the value of a registration in each."""


class Sort(NamedTuple):
    """A column, and whether its greatest value comes first."""

    key: str
    is_descending: bool


def read(text: str) -> Sort | None:
    """The order that a query names, such as `name`, or `-name` for the reverse. None if it names none."""
    key = text.removeprefix("-")
    return Sort(key, text.startswith("-")) if key in KEYS else None


def read_offset(text: str) -> int:
    """The number of registrations before a page of a sorted list; 0 if the query names none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0


def sort(rows: Sequence[RegistrationView], by: Sort) -> list[RegistrationView]:
    """The registrations in an order. Those with the same value stay in theirs."""
    return sorted(rows, key=KEYS[by.key], reverse=by.is_descending)
