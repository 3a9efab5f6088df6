"""Announcements: each message to all registered people of an event becomes mails, one batch at a time.

The held mails of an organizer are released in the same way when it proves its address. Any number of processes may do
this: each batch is a transaction that has locked its announcement, or its organizer.
"""

from holdfast.events.mails import sql
from holdfast.events.resources import Database
from holdfast.kit.background.loops import Loop, RowWaiters
from holdfast.kit.postgres.notifications import POLL_SECONDS

CHANNEL = "mail_announcements"

BATCH_SIZE = 1_000


async def announce(database: Database, _: RowWaiters) -> float:
    """Turn announcements into mails, and release held mails. Returns the seconds until the next check."""
    await process_due(database)
    return POLL_SECONDS


ANNOUNCEMENTS = Loop("sending.run_announcements", announce, (CHANNEL,))


async def process_due(database: Database) -> None:
    """Turn all due announcements into mails, and release mails that are no longer held. Skips locked rows."""
    while await database.transact(lambda tx: sql.announce_batch(tx, BATCH_SIZE)):
        pass
    while await database.transact(lambda tx: sql.release_batch(tx, BATCH_SIZE)):
        pass
