"""What the list of an event's registrations can be reduced to: a status, or a filter."""

from collections.abc import Mapping, Sequence
from typing import Literal, LiteralString

ListedStatus = Literal["registered", "held", "waitlisted", "pending", "in_draw", "rejected"]
ListFilter = Literal["unpaid", "absent"]
"""unpaid: people with a seat who have not paid for it; absent: people with a seat who have not entered"""

MAX_FILTERED_ROWS = 2_000
"""Registrations that are read for a part with a filter. So a part may be short, or empty, and still not be the last."""

STATUS_CONDITIONS: Mapping[str | None, LiteralString] = {
    "registered": "event_id = %(event_id)s and status = 'registered'",
    "held": "event_id = %(event_id)s and status = 'held'",
    "waitlisted": "event_id = %(event_id)s and status = 'waitlisted'",
    "pending": "event_id = %(event_id)s and status = 'pending'",
    "in_draw": "event_id = %(event_id)s and status = 'in_draw'",
    "rejected": "event_id = %(event_id)s and status = 'rejected'",
}
"""The index of an event has the rows of each condition in order."""

FILTERS: Mapping[str | None, tuple[Sequence[str], LiteralString]] = {
    "unpaid": (
        ("registered", "held"),
        """
        status in ('registered', 'held') and (select pricing_mode from events where id = %(event_id)s) <> 'free'
        and case when amount_due is null then amount_paid = 0
                 else not exists (select from payments
                                   where event_id = registrations.event_id and user_id = registrations.user_id
                                     and arrival = registrations.arrival and state = 'paid') end
        """,
    ),
    "absent": (
        ("registered",),
        """
        status = 'registered' and not exists (select from check_in_scans
                                                where event_id = %(event_id)s and user_id = registrations.user_id
                                                  and is_entry)
        """,
    ),
}
"""The statuses of each filter, and its condition on a row of `registrations`."""


def condition(state: str | None) -> LiteralString:
    """SQL for the condition of a filter on a row of `registrations`; `true` for a status."""
    return FILTERS[state][1] if state in FILTERS else "true"


def sources(state: str | None, after: LiteralString) -> Sequence[LiteralString]:
    """SQL for the conditions of the statuses that have the registrations of a status, of a filter, or all (None).

    after    a further condition of each; it may be empty
    """
    statuses = FILTERS[state][0] if state in FILTERS else [state] if state else STATUS_CONDITIONS
    return [f"{of_status} {after}" for status, of_status in STATUS_CONDITIONS.items() if status in statuses]
