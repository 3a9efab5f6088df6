"""Thins the price histories of events that took place more than 30 days ago.

Changes that follow each other within an hour for the same reason, by time (`tick`) or by registrations, are joined to
one: it goes from the price before the first of them to the price after the last. So each change still begins with the
price at which the one before it ended. The first price, and every change that an organizer made, stay as they are.
"""

from holdfast.events.pricing import sql
from holdfast.events.resources import Tx

BATCH_SIZE = 50
"""Events whose histories are thinned in one transaction."""


async def thin_histories(tx: Tx) -> int:
    """Thin the histories of a batch of events. Returns the number of events."""
    return await sql.thin_price_changes(tx, BATCH_SIZE)
