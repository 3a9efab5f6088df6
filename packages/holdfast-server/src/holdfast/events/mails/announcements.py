"""Announcements: turns each message to all registered people of an event into mails, one batch at a time.

In the same way it releases the mails of an organizer that were held until it proved its address. Any number of
processes may do this: each batch is a transaction that has locked its announcement, or its organizer.
"""

import asyncio

from holdfast.events.mails import sql
from holdfast.events.resources import Database
from holdfast.kit.postgres.notifications import POLL_SECONDS, wait_for_notification

CHANNEL = "mail_announcements"
BATCH_SIZE = 1_000


async def run(database: Database) -> None:
    """Turn announcements into mails and release held mails, whenever some are due, until cancelled."""
    waiting = asyncio.Event()
    with database.listen(CHANNEL, lambda _: waiting.set()):
        while True:
            waiting.clear()
            await process_due(database)
            await wait_for_notification(waiting, POLL_SECONDS)


async def process_due(database: Database) -> None:
    """Turn all due announcements into mails, and release mails that are no longer held. Skips locked rows."""
    while await database.transact(lambda tx: sql.announce_batch(tx, BATCH_SIZE)):
        pass
    while await database.transact(lambda tx: sql.release_batch(tx, BATCH_SIZE)):
        pass
