"""What statements need that write to the public logs of the order: nonces, and who makes a change."""

import os
from typing import Literal, LiteralString

Changer = Literal["organizer", "person", "service"]
"""Who changes a registration: the organizer, the person registered, or the service by its rules."""


def new_nonces(count: int) -> bytes:
    """Nonces of so many commitments, one after the other: 16 random bytes each."""
    return os.urandom(16 * count)


def changed_by(changer: Changer) -> LiteralString:
    """SQL for FROM: says for the log who makes the changes of this statement. Triggers log them at its end.

    Each statement that changes the status of registrations, or deletes them, has it.
    """
    return f"set_config('holdfast.changed_by', '{changer}', true) as changed_by"
