"""Mails that say a number wait until the signed log has what they are about, so that their line covers it.

The log is sealed and signed about a second after the transaction that caused the mail. A log that cannot be sealed
delays no mail for long: after `MAX_WAIT` the mail is sent without the line.
"""

import datetime as dt

from holdfast.events.mails.kinds import KINDS
from holdfast.events.mails.model import RegistrationMail
from holdfast.events.resources import Database, Reader

MAX_WAIT = dt.timedelta(seconds=10)
"""The longest time after its cause that a mail waits for the log."""

PAUSE = dt.timedelta(seconds=0.5)
"""How long a mail that waits is not looked at. It is the pause between two seals (`log/sealing.py`)."""


async def hold(database: Database, contents: dict[int, RegistrationMail]) -> set[int]:
    """Remove from `contents` the mails that wait for the log. Returns their ids; they stay in the outbox."""
    waiting = {id for id, mail in contents.items() if _waits(mail)}
    if waiting:
        await database.autocommit(lambda reader: _postpone(reader, waiting))
    for id in waiting:
        del contents[id]
    return waiting


def _waits(mail: RegistrationMail) -> bool:
    known = mail.known
    has_number = KINDS[mail.kind].numbered and known.log_number is not None and known.arrivals is not None
    return has_number and not known.is_logged and known.now < mail.caused_at + MAX_WAIT


async def _postpone(reader: Reader, ids: set[int]) -> None:
    await reader.value(
        """
        with postponed as (
            update mails set due_at = now() + %(pause)s where id = any(%(ids)s) and ended_at is null returning 1)
        select count(*) from postponed
        """,
        {"ids": [*ids], "pause": PAUSE},
    )
