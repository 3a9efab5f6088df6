"""Announcements: what everybody who is registered for an event is told becomes mails, a portion at a time.

Any number of processes may do it: each portion is a transaction that has locked its announcement.
"""

import asyncio

from holdfast.events.mails import sql
from holdfast.events.resources import Database
from holdfast.kit.notifications import notified

CHANNEL = "mail_announcements"
PORTION = 1_000
PATROL_SECONDS = 5
"""Seconds between checks without a notification, in case one was lost with a connection."""


async def run(database: Database) -> None:
    """Turn announcements into mails whenever there are some, until cancelled."""
    waiting = asyncio.Event()
    with database.listen(CHANNEL, lambda _: waiting.set()):
        while True:
            waiting.clear()
            await tell(database)
            await notified(waiting, PATROL_SECONDS)


async def tell(database: Database) -> None:
    """Turn all announcements that others have not locked into mails."""
    while await database.transact(lambda tx: sql.tell_a_portion(tx, PORTION)):
        pass
