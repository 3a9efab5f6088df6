"""Which events are public: the condition of everything that others than the organizer see of an event.

An event is public from when it is published until it becomes a draft again. It stays public when it is cancelled or
over, and when its organizer is erased. See decision 92.
"""

from typing import LiteralString


def is_public(events: LiteralString = "events") -> LiteralString:
    """SQL condition: an event is public. `events` is the name of the table in the statement."""
    return f"{events}.published"
