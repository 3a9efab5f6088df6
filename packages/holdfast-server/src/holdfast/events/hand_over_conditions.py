"""Conditions for registrations of events that were handed over to another organizer.

A registration is stored with the organizer of its event. After a hand-over, a job (`events/events/hand_over_filing.py`)
stores the new organizer in all registrations of the event. Until the job has finished, the event is in the table
`event_hand_overs`. Lists leave out what an organizer has handed over, and add what was handed to it. So they are right
from the commit of the hand-over on.
"""

from collections.abc import Sequence
from typing import LiteralString

HANDED_OVER: LiteralString = "array(select event_hand_overs.event_id from event_hand_overs)"
"""The events that the job has not finished. It is looked up once in a statement, and nearly always empty."""

ORGANIZER: LiteralString = f"""
    case when registrations.event_id = any({HANDED_OVER})
         then (select events.organizer_id from events where events.id = registrations.event_id)
         else registrations.organizer_id end
"""
"""Whose event a row of `registrations` is for."""

HANDED_OVER_EVENTS: LiteralString = """
    array(select event_hand_overs.event_id from event_hand_overs where event_hand_overs.organizer_id = %(seen_by)s)
"""
"""The events that the organizer `seen_by` has handed over, and with which it is still stored somewhere."""

RECEIVED_EVENTS: LiteralString = (
    "array(select event_hand_overs.event_id from event_hand_overs where handed_to = %(seen_by)s)"
)
"""The events that were handed to `seen_by`, and with which another organizer is still stored somewhere."""

_HANDS_OVER: LiteralString = """
    (select exists (select from event_hand_overs where %(seen_by)s in (event_hand_overs.organizer_id, handed_to)))
"""


def of_organizer(condition: LiteralString) -> Sequence[LiteralString]:
    """Conditions of which the registrations for the events of the organizer `seen_by` meet exactly one.

    Nearly always nothing of the organizer is handed over. Then only the first is looked for, in an index that need not
    say which event a registration is for.

    condition    what the registrations meet besides
    """
    filed: LiteralString = f"organizer_id = %(seen_by)s and {condition}"
    return [
        f"{filed} and not {_HANDS_OVER}",
        f"{filed} and {_HANDS_OVER} and event_id <> all({HANDED_OVER_EVENTS})",
        f"{condition} and {_HANDS_OVER} and event_id = any({RECEIVED_EVENTS}) and organizer_id <> %(seen_by)s",
    ]
