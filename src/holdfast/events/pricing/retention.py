"""Thins the price histories of events that took place more than 30 days ago.

Of the changes that followed each other within an hour for the same reason, by time (`tick`) or by registrations, one is
kept: it goes from the price before the first of them to the price after the last. So each change still begins with the
price with which the one before it ended. The first price, and every change that somebody made, are kept as they are.
"""

from holdfast.events.pricing import sql
from holdfast.events.resources import Tx

PORTION = 50
"""Events whose histories are thinned in one transaction."""


async def thin_histories(tx: Tx) -> int:
    """Thin the histories of some events. Returns how many events there were."""
    return await sql.thin_price_changes(tx, PORTION)
